"""
Settings of the metadata topic, brokers and tiered topics that contradict or hurt. Pure. Unknown
settings are not judged: a note names each check that credentials do not allow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from rlmm.findings.finding import Finding
from rlmm.inspection.doctor_findings import (
    BROKERS_DIFFER,
    BROKERS_UNKNOWN,
    COMPACT_TIERED,
    COPY_DISABLED,
    DELETE_ON_DISABLE,
    FINITE_RETENTION,
    LISTENER_UNSET,
    LOCAL_OVER_TOTAL,
    METADATA_COMPACTED,
    METADATA_TIERED,
    METADATA_TOPIC_ABSENT,
    MIN_ISR_1,
    NO_LEADER,
    NOTHING_LOCAL_SAVED,
    PARTITION_COUNT,
    REPLICATION_LOW,
    RIGHTS_MISSING,
    RIGHTS_WIDE,
    SETTINGS_UNKNOWN,
    SMALL_SEGMENTS,
    TIERING_OFF,
    UNCLEAN_ELECTION,
    UNDER_REPLICATED,
)
from rlmm.inspection.usage import RETENTION_MARGIN_MS, SMALL_SEGMENT_BYTES, longest_of
from rlmm.retention.retention import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlmm.findings.finding import FindingKind
    from rlmm.inspection.cluster_facts import ClusterSetting, Rights, TopicFacts

METADATA_TOPIC = "__remote_log_metadata"
_COUNT_KEY = "rlmm.config.remote.log.metadata.topic.num.partitions"
_COUNT_DEFAULT = 50
_SAME_EVERYWHERE = (
    "remote.log.storage.system.enable",
    "remote.log.metadata.manager.class.name",
    "remote.log.storage.manager.class.name",
    _COUNT_KEY,
)
_REPLICAS_MIN = 3
"""Kafka's own default for this topic."""
_LISTED_MAX = 10
_AS_TOTAL = -2
"""Of `local.retention.*`: as long as the whole."""


@dataclass(frozen=True, slots=True)
class DoctorFacts:
    metadata_topic: TopicFacts | None
    topics: Mapping[str, TopicFacts]
    brokers: Mapping[int, Mapping[str, ClusterSetting] | None] = field(default_factory=dict)
    rights: Rights | None = None
    null_keys: int | None = None
    """Records of the metadata topic that have no key, of those that were looked at."""
    keys_seen: int = 0


def examine(facts: DoctorFacts) -> list[Finding]:
    topic = facts.metadata_topic
    found = list(_rights(facts))
    if topic is not None:
        found += _replicas(topic)
        found += _metadata_settings(topic, facts)
    elif facts.rights is None or facts.rights.on_topic.get(METADATA_TOPIC) != frozenset():
        found.append(Finding(METADATA_TOPIC_ABSENT, METADATA_TOPIC, "the cluster has none"))
    found += _brokers(facts)
    for one in facts.topics.values():
        found += _tiered_topic(one)
    return found


# ---------------------------------------------------------------------------- metadata topic


def _replicas(topic: TopicFacts) -> Iterator[Finding]:
    places = topic.partitions
    without = [number for number, place in places.items() if place.leader is None]
    if without:
        yield _about(topic, NO_LEADER, f"partitions {_listed(without)}", partitions=without)
    behind = [n for n, place in places.items() if len(place.in_sync) < len(place.replicas)]
    if behind:
        yield _about(topic, UNDER_REPLICATED, f"partitions {_listed(behind)}", partitions=behind)
    least = min((len(place.replicas) for place in places.values()), default=None)
    if least is not None and least < _REPLICAS_MIN:
        yield _about(topic, REPLICATION_LOW, f"{least} replicas", replicas=least)
    min_isr = number(topic.setting("min.insync.replicas"))
    if min_isr == 1 and (least or 0) > 1:
        yield _about(topic, MIN_ISR_1, f"{least} replicas, min.insync.replicas=1", replicas=least)


def _metadata_settings(topic: TopicFacts, facts: DoctorFacts) -> Iterator[Finding]:
    if topic.settings is None:
        yield _about(topic, SETTINGS_UNKNOWN, "the broker did not tell them")
        return
    policy = topic.setting("cleanup.policy") or ""
    if "compact" in policy:
        said = "how many records have no key is not known"
        if facts.null_keys is not None:
            said = f"{facts.null_keys} of {facts.keys_seen} records have no key"
        yield _about(topic, METADATA_COMPACTED, f"cleanup.policy={policy}; {said}",
                     null_keys=facts.null_keys)  # fmt: skip
    for key in ("retention.ms", "retention.bytes"):
        limit = number(topic.setting(key))
        if "delete" in policy and limit is not None and 0 <= limit < _needed(key, facts):
            yield _about(topic, FINITE_RETENTION, _against_topics(key, limit, facts), setting=key,
                         value=limit)  # fmt: skip
    if topic.setting("unclean.leader.election.enable") == "true":
        yield _about(topic, UNCLEAN_ELECTION, "unclean.leader.election.enable=true")
    if topic.is_tiered:
        yield _about(topic, METADATA_TIERED, "remote.storage.enable=true")


def _needed(key: str, facts: DoctorFacts) -> float:
    longest = longest_of(number(one.setting(key)) for one in facts.topics.values())
    if key != "retention.ms" or longest is None or longest < 0:
        return inf
    return longest + RETENTION_MARGIN_MS


def _against_topics(key: str, limit: int, facts: DoctorFacts) -> str:
    if key != "retention.ms":
        return f"{key}={limit}"
    longest = longest_of(number(one.setting(key)) for one in facts.topics.values())
    if longest is None:
        return f"{key}={limit}; what tiered topics keep is not known"
    kept = "without limit" if longest < 0 else f"for {longest} ms"
    return f"{key}={limit}, and tiered topics keep their data {kept}"


# ----------------------------------------------------------------------------------- brokers


def _brokers(facts: DoctorFacts) -> Iterator[Finding]:
    told = {broker: one for broker, one in facts.brokers.items() if one is not None}
    silent = sorted(set(facts.brokers) - set(told))
    if silent:
        yield Finding(BROKERS_UNKNOWN, "brokers", f"of brokers {_listed(silent)}",
                      fields={"brokers": silent})  # fmt: skip
    secret = sorted(broker for broker, one in told.items() if _is_secret(one, _COUNT_KEY))
    if secret:
        yield Finding(
            BROKERS_UNKNOWN, _COUNT_KEY, f"of brokers {_listed(secret)}",
            "nothing to grant: Kafka does not tell the settings of plugins; `rlmm verify` finds "
            "events in the wrong partitions",
            {"brokers": secret, "setting": _COUNT_KEY},
        )  # fmt: skip
    for key in _SAME_EVERYWHERE:
        values: dict[str, list[int]] = {}
        for broker, settings in told.items():
            values.setdefault(_value(settings, key) or "", []).append(broker)
        if len(values) > 1:
            said = "; ".join(f"{value or 'unset'} on {_listed(those)}"
                             for value, those in sorted(values.items()))  # fmt: skip
            yield Finding(BROKERS_DIFFER, key, said, fields={"setting": key})
    topic = facts.metadata_topic
    for broker, settings in sorted(told.items()):
        yield from _of_broker(broker, settings, topic, has_tiered=any(
            one.is_tiered for one in facts.topics.values()
        ))  # fmt: skip


def _of_broker(
    broker: int,
    settings: Mapping[str, ClusterSetting],
    topic: TopicFacts | None,
    *,
    has_tiered: bool,
) -> Iterator[Finding]:
    name = f"broker {broker}"
    enabled = _value(settings, "remote.log.storage.system.enable")
    if enabled == "false" and has_tiered:
        yield Finding(TIERING_OFF, name, "remote.log.storage.system.enable=false")
    if enabled != "true":
        return
    manager = _value(settings, "remote.log.metadata.manager.class.name") or ""
    is_kafkas = manager.endswith("TopicBasedRemoteLogMetadataManager")
    if is_kafkas and not _value(settings, "remote.log.metadata.manager.listener.name"):
        yield Finding(LISTENER_UNSET, name, "remote.log.metadata.manager.listener.name is unset")
    if topic is None or not (is_kafkas or _COUNT_KEY in settings):
        return
    if _is_secret(settings, _COUNT_KEY):
        return
    told = _value(settings, _COUNT_KEY)
    count = number(told) if told is not None else _COUNT_DEFAULT
    if count is not None and count != len(topic.partitions):
        yield Finding(
            PARTITION_COUNT, name,
            f"it reckons with {count} partitions, {METADATA_TOPIC} has {len(topic.partitions)}",
            fields={"configured": count, "partitions": len(topic.partitions)},
        )  # fmt: skip


# ----------------------------------------------------------------------------- tiered topics


def _tiered_topic(topic: TopicFacts) -> Iterator[Finding]:
    if topic.settings is None:
        yield _about(topic, SETTINGS_UNKNOWN, "the broker did not tell them")
        return
    is_on = topic.is_tiered
    deletes = topic.setting("remote.log.delete.on.disable") == "true"
    if deletes:
        said = "tiering is still on" if is_on else "tiering is off: what is tiered is deleted"
        yield _about(topic, DELETE_ON_DISABLE, said)
    if not is_on:
        return
    if topic.setting("remote.log.copy.disable") == "true":
        yield _about(topic, COPY_DISABLED, "remote.log.copy.disable=true")
    if "compact" in (topic.setting("cleanup.policy") or ""):
        yield _about(topic, COMPACT_TIERED, f"cleanup.policy={topic.setting('cleanup.policy')}")
    saved = []
    for unit in ("ms", "bytes"):
        local, total = (number(topic.setting(f"{kind}retention.{unit}")) for kind in ("local.", ""))
        if local is None or total is None:
            continue
        if total >= 0 and (local > total or local == -1):
            yield _about(topic, LOCAL_OVER_TOTAL,
                         f"local.retention.{unit}={local}, retention.{unit}={total}")  # fmt: skip
        saved.append(local not in {_AS_TOTAL, total})
    if saved and not any(saved):
        yield _about(topic, NOTHING_LOCAL_SAVED, "local.retention.* are those of the whole")
    size = number(topic.setting("segment.bytes"))
    if size is not None and size < SMALL_SEGMENT_BYTES:
        yield _about(topic, SMALL_SEGMENTS, f"segment.bytes={size}", segment_bytes=size)


# ------------------------------------------------------------------------------------ rights


def _rights(facts: DoctorFacts) -> Iterator[Finding]:
    rights = facts.rights
    if rights is None:
        return
    on_topic = rights.on_topic.get(METADATA_TOPIC)
    if on_topic is not None:
        missing = {"READ", "DESCRIBE", "DESCRIBE_CONFIGS"} - on_topic
        if missing:
            yield Finding(RIGHTS_MISSING, METADATA_TOPIC, f"missing: {', '.join(sorted(missing))}",
                          fields={"missing": sorted(missing)})  # fmt: skip
        wide = {"WRITE", "DELETE", "ALTER", "ALTER_CONFIGS"} & on_topic
        if wide:
            yield Finding(RIGHTS_WIDE, METADATA_TOPIC, f"granted: {', '.join(sorted(wide))}",
                          fields={"granted": sorted(wide)})  # fmt: skip
    if rights.on_cluster is not None and "DESCRIBE_CONFIGS" not in rights.on_cluster:
        yield Finding(RIGHTS_MISSING, "cluster", "missing: DESCRIBE_CONFIGS",
                      fields={"missing": ["DESCRIBE_CONFIGS"]})  # fmt: skip


def _about(topic: TopicFacts, kind: FindingKind, detail: str, **fields: object) -> Finding:
    return Finding(kind, topic.name, detail, fields={"topic": topic.name, **fields})


def _value(settings: Mapping[str, ClusterSetting], key: str) -> str | None:
    found = settings.get(key)
    return None if found is None else found.value


def _is_secret(settings: Mapping[str, ClusterSetting], key: str) -> bool:
    found = settings.get(key)
    return found is not None and found.value is None


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:_LISTED_MAX]))
    left = len(numbers) - _LISTED_MAX
    return shown if left <= 0 else f"{shown} and {left} more"
