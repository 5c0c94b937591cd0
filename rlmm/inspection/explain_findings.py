"""The findings of `rlmm explain`: why an offset is found, is not found, or is not read. Pure."""

from __future__ import annotations

from rlmm.findings.finding import error, note, warning

PARTITION_UNKNOWN = warning(
    "PARTITION-UNKNOWN",
    "no event of the user partition was ever stored",
    "nothing of it was ever tiered, or it is another partition that is meant",
    "see that `remote.storage.enable` is true for the topic and that a segment was closed since; "
    "`rlmm segments list` shows what there is",
)
PARTITION_NOT_READ = warning(
    "PARTITION-NOT-READ",
    "the metadata partition of it is not read here",
    "the service was not given it, or its folder was not copied: nothing can be said of it",
    "ask the service that has it, or the cluster itself with --bootstrap-server",
)
PARTITION_DELETED = warning(
    "PARTITION-DELETED",
    "the user partition was deleted, with everything that was tiered of it",
    "what is asked for was there and is gone",
    "nothing to do, if the topic was meant to go",
)
PARTITION_BEING_DELETED = warning(
    "PARTITION-BEING-DELETED",
    "the user partition is being deleted",
    "its segments go one by one; brokers do not read it any more",
    "see `rlmm stuck` if that takes long",
)
EPOCH_UNKNOWN = warning(
    "EPOCH-UNKNOWN",
    "no segment lists the leader epoch",
    "a look-up goes by the epoch alone: in an unknown one it finds nothing",
    "ask with an epoch that is listed, or without --epoch",
)
OTHER_EPOCH = warning(
    "OTHER-EPOCH",
    "the offset is tiered in another leader epoch",
    "a broker asks with the epoch that its own log has for the offset, and with no other: records "
    "of another epoch are other records",
    "compare with the leader's epochs (leader-epoch-checkpoint); after an unclean election what an "
    "old leader had copied is not part of the log any more",
)
COPY_UNFINISHED = warning(
    "COPY-UNFINISHED",
    "only copies that are not finished hold the offset",
    "an open copy is never read: its objects may be whole or not be there",
    "brokers still have these records locally and try again; see `rlmm stuck` for one that is open "
    "for long",
)
SEGMENT_BEING_DELETED = warning(
    "SEGMENT-BEING-DELETED",
    "the segment that held the offset is being deleted",
    "brokers do not read it any more, and its objects go",
    "nothing to do if retention is right; it does not come back",
)
SEGMENT_DELETED = warning(
    "SEGMENT-DELETED",
    "the segment that held the offset was deleted",
    "its data was there and is gone",
    "nothing to do if retention is right; if it is not, correct it for what is left",
)
OFFSET_BELOW_TIER = warning(
    "OFFSET-BELOW-TIER",
    "the offset lies before everything that is tiered",
    "it was deleted before this log of events begins, or was never copied",
    "consumers go on from the log's start: compare with `kafka-get-offsets --time earliest`",
)
OFFSET_ABOVE_TIER = note(
    "OFFSET-ABOVE-TIER",
    "the offset lies behind everything that is tiered",
    "brokers have it on their disks; it is copied once its segment is closed and stable",
    "nothing to do; see `rlmm lag` if it should have been copied",
)
OFFSET_BEYOND_LOG = warning(
    "OFFSET-BEYOND-LOG",
    "the offset lies behind the end of the log",
    "nothing was ever written there, or what was written has been cut off",
    "compare with `kafka-get-offsets --time latest`",
)
STILL_LOCAL = note(
    "STILL-LOCAL",
    "the offset is on the brokers' disks as well",
    "brokers read it there; from the tier only once the local part is gone",
    "nothing to do",
)
STOCK_LOOKUP_EMPTY = warning(
    "STOCK-LOOKUP-EMPTY",
    "a stock broker finds nothing at this offset, though a finished segment holds it",
    "another segment took the slot and does not reach so far (KAFKA-20932 and its neighbours); the "
    "rule `cover-lookup` finds it all the same, see docs/kafka-semantics.md",
    "brokers that ask this service get it; for stock ones have the range copied again",
)
NOT_IN_EPOCH = warning(
    "NOT-IN-EPOCH",
    "a segment has the offset in its range, and not in this leader epoch",
    "what it holds there belongs to a later epoch, or lies before the offset that it lists",
    "ask without --epoch to see in which one it is found",
)
OBJECT_MISSING = error(
    "OBJECT-MISSING",
    "objects of the segment are not in the store",
    "a reader gets an error: a lifecycle rule, another prefix, or a deletion by hand",
    "see that --store and --prefix are those of the brokers; else restore them from a version or a "
    "backup of the bucket: the records are nowhere else once the local part is gone",
)
OBJECT_DAMAGED = error(
    "OBJECT-DAMAGED",
    "objects of the segment are not what was written",
    "a reader gets an error, or wrong records",
    "restore them from a version or a backup of the bucket",
)
OBJECT_UNKNOWN = warning(
    "OBJECT-UNKNOWN",
    "whether the objects are whole could not be found out",
    "they are archived, or came and went while they were looked at",
    "ask again, or have them restored from their storage class",
)
KINDS = (
    PARTITION_UNKNOWN, PARTITION_NOT_READ, PARTITION_DELETED, PARTITION_BEING_DELETED,
    EPOCH_UNKNOWN, OTHER_EPOCH, COPY_UNFINISHED, SEGMENT_BEING_DELETED, SEGMENT_DELETED,
    OFFSET_BELOW_TIER, OFFSET_ABOVE_TIER, OFFSET_BEYOND_LOG, STILL_LOCAL, STOCK_LOOKUP_EMPTY,
    NOT_IN_EPOCH, OBJECT_MISSING, OBJECT_DAMAGED, OBJECT_UNKNOWN,
)  # fmt: skip
