"""The findings of `rlmm doctor`: each kind with its reason and its remedy. Data only."""

from __future__ import annotations

from rlmm.findings.finding import error, note, warning

METADATA_TOPIC_ABSENT = error(
    "METADATA-TOPIC-ABSENT",
    "the metadata topic does not exist",
    "nothing is tiered, or another metadata manager is used that keeps its state elsewhere",
    "brokers create it when the first topic is tiered; see that "
    "`remote.log.storage.system.enable` is true on them",
)
NO_LEADER = error(
    "NO-LEADER",
    "partitions of the metadata topic have no leader",
    "nothing can be copied, deleted or looked up for the user partitions whose events live there",
    "bring their brokers back; see `kafka-topics --describe --unavailable-partitions`",
)
UNDER_REPLICATED = warning(
    "UNDER-REPLICATED",
    "partitions of the metadata topic lack replicas",
    "another broker away, and events that were acknowledged can be lost",
    "bring the missing brokers back, or reassign the partitions",
)
REPLICATION_LOW = warning(
    "REPLICATION-LOW",
    "the metadata topic has too few replicas",
    "when their disks are lost, the segments in the store are not known any more",
    "raise it with `kafka-reassign-partitions` to 3, and set "
    "`rlmm.config.remote.log.metadata.topic.replication.factor=3`",
)
MIN_ISR_1 = warning(
    "MIN-ISR-1",
    "the metadata topic is acknowledged by a single replica",
    "an event that only one broker has is lost with its disk, and its segment is "
    "never read again (KIP-1235)",
    "`kafka-configs --alter --entity-type topics --entity-name __remote_log_metadata "
    "--add-config min.insync.replicas=2`; Kafka 4.3 does so for new topics only",
)
METADATA_COMPACTED = error(
    "METADATA-COMPACTED",
    "the metadata topic is compacted",
    "the cleaner drops every record without a key, and brokers write none: segments are forgotten; "
    "new ones are refused, so that nothing is copied any more",
    "set `cleanup.policy=delete` and `retention.ms=-1`; see `rlmm rehearse-compaction` for "
    "what is lost already",
)
FINITE_RETENTION = warning(
    "FINITE-RETENTION",
    "the metadata topic forgets",
    "a segment that lives longer than the metadata is not known any more after brokers restart",
    "set `retention.ms=-1` and `retention.bytes=-1` on it; `rlmm usage` says which retention "
    "would be safe",
)
UNCLEAN_ELECTION = error(
    "UNCLEAN-ELECTION",
    "the metadata topic may lose acknowledged events",
    "an unclean election cuts what the new leader does not have: copies that were finished "
    "are open again",
    "set `unclean.leader.election.enable=false` on it",
)
METADATA_TIERED = error(
    "METADATA-TIERED",
    "the metadata topic is to be tiered itself",
    "what tells where segments are would be in segments",
    "set `remote.storage.enable=false` on it; brokers refuse it from 3.9 on",
)
SETTINGS_UNKNOWN = note(
    "SETTINGS-UNKNOWN",
    "settings were not told",
    "checks that need them were left out",
    "grant DESCRIBE_CONFIGS on the topic",
)
BROKERS_UNKNOWN = note(
    "BROKERS-UNKNOWN",
    "brokers did not tell their settings",
    "checks that need them were left out",
    "grant DESCRIBE_CONFIGS on the cluster, or see that they are reached",
)
BROKERS_DIFFER = error(
    "BROKERS-DIFFER",
    "brokers do not agree on a setting",
    "whether a partition is tiered, and where look-ups go, depends on its leader",
    "give all brokers the same value, one after the other",
)
TIERING_OFF = error(
    "TIERING-OFF",
    "a broker does not tier, and there are tiered topics",
    "partitions that it leads are not copied, and their old data cannot be read",
    "set `remote.log.storage.system.enable=true` and restart it",
)
LISTENER_UNSET = error(
    "LISTENER-UNSET",
    "the metadata manager does not know how to reach its broker",
    "Kafka's manager needs a listener's name, and does not start without one",
    "set `remote.log.metadata.manager.listener.name` to the name of a listener that brokers use",
)
PARTITION_COUNT = error(
    "PARTITION-COUNT",
    "a broker reckons with another number of metadata partitions",
    "it looks for events where they are not: its tier is empty, and no other broker finds what it "
    "writes (KAFKA-13984)",
    "set `rlmm.config.remote.log.metadata.topic.num.partitions` to the number that the topic "
    "has, and never add partitions to it",
)
DELETE_ON_DISABLE = warning(
    "DELETE-ON-DISABLE",
    "switching tiering off deletes the remote data",
    "one change of a setting, and everything that is only in the store is gone",
    "set `remote.log.delete.on.disable=false` unless that is what is meant",
)
COPY_DISABLED = warning(
    "COPY-DISABLED",
    "a tiered topic is not copied",
    "its local disks fill up; a window of a copy job may have been left open",
    "set `remote.log.copy.disable=false`; see `rlmm tier status` first",
)
COMPACT_TIERED = error(
    "COMPACT-TIERED",
    "a compacted topic is tiered",
    "brokers do not tier compacted topics: the copies would not be what is in the log",
    "set `cleanup.policy=delete`, or switch tiering off",
)
LOCAL_OVER_TOTAL = error(
    "LOCAL-OVER-TOTAL",
    "local retention is longer than the whole",
    "brokers refuse such settings when they are changed together, and behave as if they were "
    "equal where defaults meet",
    "set `local.retention.*` below `retention.*`, or to -2",
)
NOTHING_LOCAL_SAVED = note(
    "NOTHING-LOCAL-SAVED",
    "everything is kept locally as long as remotely",
    "tiering costs storage twice and frees no disk",
    "set `local.retention.ms` or `local.retention.bytes` below the whole",
)
SMALL_SEGMENTS = note(
    "SMALL-SEGMENTS",
    "segments are small",
    "each is several objects and two events: requests and metadata cost more than they should",
    "raise `segment.bytes`, or `segment.ms`, of the topic",
)
RIGHTS_MISSING = warning(
    "RIGHTS-MISSING",
    "credentials lack rights",
    "checks and commands that need them are left out, or fail",
    "grant them by `kafka-acls --add`; see docs/security.md",
)
RIGHTS_WIDE = note(
    "RIGHTS-WIDE",
    "credentials may do more than looking needs",
    "a stranger who obtains them can change the metadata topic",
    "use credentials with READ, DESCRIBE and DESCRIBE_CONFIGS alone for these commands",
)
KINDS = (
    METADATA_TOPIC_ABSENT,
    NO_LEADER,
    UNDER_REPLICATED,
    REPLICATION_LOW,
    MIN_ISR_1,
    METADATA_COMPACTED,
    FINITE_RETENTION,
    UNCLEAN_ELECTION,
    METADATA_TIERED,
    SETTINGS_UNKNOWN,
    BROKERS_UNKNOWN,
    BROKERS_DIFFER,
    TIERING_OFF,
    LISTENER_UNSET,
    PARTITION_COUNT,
    DELETE_ON_DISABLE,
    COPY_DISABLED,
    COMPACT_TIERED,
    LOCAL_OVER_TOTAL,
    NOTHING_LOCAL_SAVED,
    SMALL_SEGMENTS,
    RIGHTS_MISSING,
    RIGHTS_WIDE,
)
