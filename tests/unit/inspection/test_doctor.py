"""Settings that will hurt: each rule fails on one change of a sound cluster, and only then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.cluster_facts import ClusterSetting, PartitionPlace, Rights, TopicFacts
from rlmm.inspection.doctor import METADATA_TOPIC, DoctorFacts, examine
from rlmm.inspection.doctor_findings import KINDS
from rlmm.metadata.ids import Uuid
from tests.support.kafka.fake_cluster import settings

if TYPE_CHECKING:
    from collections.abc import Callable

MANAGER = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
COUNT = "rlmm.config.remote.log.metadata.topic.num.partitions"
WELL_PLACED = PartitionPlace(1, 5, (1, 2, 3), (1, 2, 3))
BROKER = {
    **settings(remote_log_storage_system_enable="true"),
    "remote.log.metadata.manager.class.name": ClusterSetting(MANAGER, is_explicit=False),
    "remote.log.metadata.manager.listener.name": ClusterSetting("PLAINTEXT", is_explicit=True),
    COUNT: ClusterSetting("50", is_explicit=True),
}
READER = frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS"})

METADATA = TopicFacts(
    METADATA_TOPIC, Uuid.of(0, 1), dict.fromkeys(range(50), WELL_PLACED),
    settings(cleanup_policy="delete", retention_ms="-1", retention_bytes="-1",
             min_insync_replicas="2", unclean_leader_election_enable="false",
             remote_storage_enable="false"),
)  # fmt: skip
ORDERS = TopicFacts(
    "orders", Uuid.of(0, 2), {0: WELL_PLACED},
    settings(remote_storage_enable="true", cleanup_policy="delete", retention_ms="604800000",
             local_retention_ms="3600000", retention_bytes="-1", local_retention_bytes="-2",
             segment_bytes="1073741824", remote_log_copy_disable="false",
             remote_log_delete_on_disable="false"),
)  # fmt: skip
WELL = DoctorFacts(
    METADATA, {"orders": ORDERS}, {1: BROKER, 2: BROKER, 3: BROKER},
    Rights(READER, {METADATA_TOPIC: READER}), 0, 100,
)  # fmt: skip


def with_metadata(**changed: str) -> DoctorFacts:
    now = {**(METADATA.settings or {}), **settings(**changed)}
    return replace(WELL, metadata_topic=replace(METADATA, settings=now))


def with_place(place: PartitionPlace) -> DoctorFacts:
    return replace(
        WELL, metadata_topic=replace(METADATA, partitions={**METADATA.partitions, 7: place})
    )


def with_orders(**changed: str) -> DoctorFacts:
    now = {**(ORDERS.settings or {}), **settings(**changed)}
    return replace(WELL, topics={"orders": replace(ORDERS, settings=now)})


def with_broker(key: str, value: str | None, *brokers: int) -> DoctorFacts:
    now = {**BROKER, key: ClusterSetting(value, is_explicit=True)}
    return replace(
        WELL, brokers={one: now if one in (brokers or (1, 2, 3)) else BROKER for one in (1, 2, 3)}
    )


def with_rights(*granted: str) -> DoctorFacts:
    return replace(WELL, rights=Rights(READER, {METADATA_TOPIC: frozenset(granted)}))


def short_of(count: int) -> DoctorFacts:
    place = PartitionPlace(1, 5, tuple(range(count)), tuple(range(count)))
    return replace(
        WELL, metadata_topic=replace(METADATA, partitions=dict.fromkeys(range(50), place))
    )


RULES: list[tuple[str, Callable[[], DoctorFacts], str]] = [
    ("METADATA-TOPIC-ABSENT", lambda: replace(WELL, metadata_topic=None), "none"),
    ("NO-LEADER", lambda: with_place(replace(WELL_PLACED, leader=None)), "partitions 7"),
    ("UNDER-REPLICATED", lambda: with_place(replace(WELL_PLACED, in_sync=(1, 2))), "partitions 7"),
    ("REPLICATION-LOW", lambda: short_of(2), "2 replicas"),
    ("MIN-ISR-1", lambda: with_metadata(min_insync_replicas="1"), "min.insync.replicas=1"),
    ("METADATA-COMPACTED", lambda: replace(with_metadata(cleanup_policy="compact"), null_keys=9),
     "9 of 100 records have no key"),
    ("FINITE-RETENTION", lambda: with_metadata(retention_ms="5"), "for 604800000 ms"),
    ("FINITE-RETENTION", lambda: with_metadata(retention_bytes="5"), "retention.bytes=5"),
    ("UNCLEAN-ELECTION", lambda: with_metadata(unclean_leader_election_enable="true"), "=true"),
    ("METADATA-TIERED", lambda: with_metadata(remote_storage_enable="true"), "=true"),
    ("SETTINGS-UNKNOWN", lambda: replace(WELL, metadata_topic=replace(METADATA, settings=None)),
     "did not tell"),
    ("BROKERS-UNKNOWN", lambda: replace(WELL, brokers={1: BROKER, 2: None}), "of brokers 2"),
    ("BROKERS-DIFFER", lambda: with_broker("remote.log.storage.manager.class.name", "x", 2),
     "unset on 1, 3; x on 2"),
    ("TIERING-OFF", lambda: with_broker("remote.log.storage.system.enable", "false"), "=false"),
    ("LISTENER-UNSET", lambda: with_broker("remote.log.metadata.manager.listener.name", None),
     "is unset"),
    ("PARTITION-COUNT", lambda: with_broker(COUNT, "16"), "16 partitions"),
    ("DELETE-ON-DISABLE", lambda: with_orders(remote_log_delete_on_disable="true"), "still on"),
    ("COPY-DISABLED", lambda: with_orders(remote_log_copy_disable="true"), "=true"),
    ("COMPACT-TIERED", lambda: with_orders(cleanup_policy="compact,delete"), "compact,delete"),
    ("LOCAL-OVER-TOTAL", lambda: with_orders(local_retention_ms="604800001"), "604800001"),
    ("LOCAL-OVER-TOTAL", lambda: with_orders(local_retention_ms="-1"), "=-1"),
    ("NOTHING-LOCAL-SAVED", lambda: with_orders(local_retention_ms="-2"), "of the whole"),
    ("SMALL-SEGMENTS", lambda: with_orders(segment_bytes="1048576"), "1048576"),
    ("RIGHTS-MISSING", lambda: with_rights("READ"), "DESCRIBE, DESCRIBE_CONFIGS"),
    ("RIGHTS-WIDE", lambda: with_rights(*READER, "WRITE"), "WRITE"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "facts", "said"), RULES, ids=[rule[0] for rule in RULES])
def test_f70_doctor_when_one_thing_is_wrong_then_names_it_with_reason_and_fix(
    code: str, facts: Callable[[], DoctorFacts], said: str
) -> None:
    """The check finds exactly the one fault, with reason and fix."""
    found = examine(facts())
    assert {one.kind.code for one in found} == {code}
    assert said in found[0].detail


def test_f70_doctor_when_all_is_well_then_finds_nothing() -> None:
    """The reference configuration has no finding, and each kind has a failing case."""
    assert examine(WELL) == []
    assert {code for code, _, _ in RULES} == {kind.code for kind in KINDS}


def test_doctor_when_nobody_was_allowed_to_tell_then_judges_nothing_else() -> None:
    """Settings that the client may not read are unknown and cause no finding."""
    silent = DoctorFacts(
        replace(METADATA, settings=None), {"orders": replace(ORDERS, settings=None)}
    )
    assert [one.kind.code for one in examine(silent)] == ["SETTINGS-UNKNOWN", "SETTINGS-UNKNOWN"]
    facts = with_metadata(retention_ms="5")
    unknown = replace(facts, topics={"orders": replace(ORDERS, settings=settings(a="b"))})
    assert "is not known" in next(
        one.detail for one in examine(unknown) if one.kind.code == "FINITE-RETENTION"
    )


def test_doctor_when_brokers_keep_the_partition_count_to_themselves_then_does_not_judge_it() -> (
    None
):
    """The check does not judge the partition count when a broker does not return its setting."""
    facts = with_broker(COUNT, None)
    few = replace(METADATA, partitions=dict.fromkeys(range(5), WELL_PLACED))
    for one in (facts, replace(facts, metadata_topic=few)):
        (found,) = examine(one)
        assert (found.kind.code, found.subject) == ("BROKERS-UNKNOWN", COUNT)
        assert "1, 2, 3" in found.detail
        assert "rlmm verify" in found.fix
    unset = {key: value for key, value in BROKER.items() if key != COUNT}
    (found,) = examine(replace(WELL, metadata_topic=few, brokers={1: unset}))
    assert found.kind.code == "PARTITION-COUNT"
    assert "it reckons with 50 partitions" in found.detail


@pytest.mark.parametrize(
    ("facts", "codes"),
    [
        pytest.param(with_rights(), {"RIGHTS-MISSING"}, id="without-the-right-to-describe-it"),
        pytest.param(
            with_broker("remote.log.storage.system.enable", "false"),
            {"METADATA-TOPIC-ABSENT", "TIERING-OFF"}, id="brokers-are-examined",
        ),
    ],
)  # fmt: skip
def test_doctor_when_the_metadata_topic_is_absent_then_says_so_only_where_it_may_see_it(
    facts: DoctorFacts, codes: set[str]
) -> None:
    """A topic may look absent to a client without the right to DESCRIBE it."""
    assert {one.kind.code for one in examine(replace(facts, metadata_topic=None))} == codes


@pytest.mark.parametrize(("days", "is_found"), [(14, False), (13, True)])
def test_f70_doctor_when_metadata_outlives_all_tiered_data_then_finite_retention_is_fine(
    days: int, *, is_found: bool
) -> None:
    """Finite retention is fine when it exceeds tiered data by the advised week."""
    found = examine(with_metadata(retention_ms=str(days * 86_400_000)))
    assert bool(found) is is_found
