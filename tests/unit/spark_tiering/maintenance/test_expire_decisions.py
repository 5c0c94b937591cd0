"""Decisions of expire about partitions, and about the owner of a topic."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import ConfigError
from rlmm.inspection.cluster_facts import TopicFacts
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.retention.retention import RetentionSettings
from spark_tiering.maintenance.expire.decision import (
    ExpireOptions,
    PartitionExpirePlan,
    SegmentAmount,
    decide,
    may_be_at_work,
)
from spark_tiering.maintenance.expire.topic_ownership import (
    TopicOwner,
    TopicOwners,
    rules_of,
    standing_of,
)
from tests.support.builders import TOPIC_ID, partition_delete, started, tp
from tests.support.kafka.fake_cluster import settings

CS, CF, DS, _ = SegmentState
NOW_MS = 10_000
MARKED = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED)


def segments(*states: SegmentState) -> list[Any]:
    return [
        started(at, at * 100, at * 100 + 99, size_bytes=10, max_timestamp_ms=at * 1_000,
                event_timestamp_ms=at, state=state)
        for at, state in enumerate(states)
    ]  # fmt: skip


def decided(
    found: list[Any], rules: RetentionSettings | None = None, **said: Any
) -> PartitionExpirePlan:
    options: dict[str, Any] = {
        "standing": TopicOwner.OURS,
        "options": ExpireOptions(),
        "now_ms": NOW_MS,
    }
    return decide(tp(), found, rules=rules or RetentionSettings(), **(options | said))


def going(plan: PartitionExpirePlan) -> list[tuple[int, str]]:
    return [(one.segment.start_offset, one.reason.value) for one in plan.doomed]


def test_plan_when_a_limit_reaches_segments_then_says_what_goes_and_where_the_log_begins() -> None:
    """The plan shows bytes, reasons and the new log start of each partition."""
    plan = decided(
        segments(CF, CF, CF, CF), RetentionSettings(retention_ms=8_500, retention_bytes=10)
    )
    assert going(plan) == [(0, "retention-ms"), (100, "retention-ms"), (200, "retention-bytes")]
    assert (plan.start_before, plan.start_after) == (0, 300)
    assert (plan.amount, plan.kept) == (SegmentAmount(3, 30), SegmentAmount(1, 10))
    assert plan.by_reason() == {"retention-bytes": 1, "retention-ms": 2}
    nothing = decided(segments(CF), RetentionSettings(retention_ms=0))
    assert (nothing.start_before, nothing.start_after) == (0, None)


def test_f120_copies_that_may_be_at_work_are_young_or_of_a_living_job() -> None:
    """A copy may be at work by its age, or by its living job."""
    found = segments(CF, CS, CF)
    young = may_be_at_work(found, (), open_for_ms=NOW_MS - 1, now_ms=NOW_MS)
    assert young == {found[1].id}
    assert may_be_at_work(found, (), open_for_ms=NOW_MS - 2, now_ms=NOW_MS) == set()
    assert may_be_at_work(found, [found[1].id], open_for_ms=0, now_ms=NOW_MS) == young


SECOND, THIRD = ({one.id} for one in segments(CF, CS, CS)[1:])
ALL, BY_TIME = RetentionSettings(retention_ms=0), RetentionSettings(retention_ms=8_500)
ENDS = ExpireOptions(ends_open_copies=True)
PLANS: dict[str, tuple[list[SegmentState], dict[str, Any], list[tuple[int, str]]]] = {
    "no limit": ([CF, DS, CS], {}, [(100, "deletion-begun")]),
    "nothing begun": ([CF, CS], {}, []),
    # A job may complete an open copy.
    "f115 open copy": ([CF, CS, CF], {}, []),
    "f115 open copy by limits": (
        [CF, CS, CF], {"rules": BY_TIME}, [(0, "retention-ms"), (100, "retention-ms")]
    ),
    "f115 open copy by request": ([CF, CS, CF], {"options": ENDS}, [(100, "open-copy")]),
    "f120 copy at work": (
        [CF, CS, CF], {"rules": ALL, "at_work": SECOND}, [(0, "retention-ms")]
    ),
    "f120 copy at work by request": (
        [CF, CS, CF], {"rules": ALL, "at_work": SECOND, "options": ENDS},
        [(0, "retention-ms")],
    ),
    "f116 deleted partition": (
        [CF, DS, CS], {"delete": MARKED},
        [(0, "partition-deleted"), (100, "deletion-begun"), (200, "partition-deleted")],
    ),
    "f116 copy at work in a deleted partition": (
        [CF, DS, CS], {"delete": MARKED, "at_work": THIRD},
        [(0, "partition-deleted"), (100, "deletion-begun")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("states", "said", "expected"), PLANS.values(), ids=PLANS)
def test_f115_f116_f120_plan_of_segments_then_goes_by_limits_and_what_was_begun(
    states: list[SegmentState], said: dict[str, Any], expected: list[tuple[int, str]]
) -> None:
    """Limits, begun deletions and requests decide, and copies at work stay with those behind."""
    plan = decided(segments(*states), **said)
    assert going(plan) == expected
    assert plan.is_idle == (not expected)
    assert plan.is_whole == ("delete" in said)
    assert plan.last_event_ms == len(states) - 1
    gone = {start for start, _ in expected}
    waiting = [at for at, state in enumerate(states) if state is CS and 100 * at not in gone]
    assert plan.waiting == SegmentAmount(len(waiting), 10 * len(waiting))
    assert not decided([], delete=MARKED).is_idle


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (TopicOwner.LIVE, []),
        (TopicOwner.UNTOLD, []),
        (TopicOwner.GONE, [(100, "deletion-begun")]),
        (TopicOwner.DELETED, [(0, "topic-deleted"), (100, "deletion-begun")]),
    ],
)
def test_limits_apply_to_our_topics(standing: TopicOwner, expected: list[tuple[int, str]]) -> None:
    """No limit applies to topics of live brokers; of deleted topics begun deletions go."""
    plan = decided(segments(CF, DS), RetentionSettings(retention_ms=0), standing=standing)
    assert going(plan) == expected
    assert standing.is_refused == plan.is_idle == (not expected)


def test_plan_when_epochs_were_replaced_then_their_segments_go_only_when_asked_for() -> None:
    """Segments of replaced epochs go only by request when no cluster confirms the epochs."""
    found = [
        started("old", 50, 99, {1: 50}, size_bytes=10, state=CF),
        started("new", 40, 149, {2: 40}, size_bytes=10, state=CF),
    ]
    plan = decided(found)
    assert (going(plan), plan.replaced) == ([], SegmentAmount(1, 10))
    plan = decided(found, options=ExpireOptions(drops_old_epochs=True))
    assert (going(plan), plan.replaced) == ([(50, "old-epochs")], SegmentAmount())


def facts(is_own_log: bool, untold: str = "", **topics: Any) -> TopicOwners:
    there = {
        name: TopicFacts(name, TOPIC_ID, {}, None if said is None else settings(**said))
        for name, said in topics.items()
    }
    starts = {tp("orders"): 70}
    return TopicOwners("cluster", is_own_log, there, frozenset({untold}), starts)


USUAL, DROPS = ExpireOptions(), ExpireOptions(drops_deleted_topics=True)
OWNER, RULES = TopicOwner, RetentionSettings
TIERED = {"remote_storage_enable": "true", "retention_ms": "500"}
PLAIN = {"remote_storage_enable": "false", "retention_ms": "500", "retention_bytes": "-1"}


@pytest.mark.parametrize(
    ("told", "topic_id", "options", "standing"),
    [
        (None, TOPIC_ID, USUAL, OWNER.OURS),
        (facts(True, orders=TIERED), TOPIC_ID, USUAL, OWNER.LIVE),
        (facts(False, orders=TIERED), TOPIC_ID, USUAL, OWNER.LIVE),
        (facts(True, orders=PLAIN), TOPIC_ID, USUAL, OWNER.OURS),
        (facts(True, orders={}), TOPIC_ID, USUAL, OWNER.OURS),
        (facts(True, orders=None), TOPIC_ID, USUAL, OWNER.UNTOLD),
        (facts(True, untold="orders"), TOPIC_ID, USUAL, OWNER.UNTOLD),
        (facts(False, untold="orders"), TOPIC_ID, USUAL, OWNER.UNTOLD),
        (facts(True, orders=TIERED), Uuid.of(0, 1), USUAL, OWNER.GONE),
        (facts(True), TOPIC_ID, USUAL, OWNER.GONE),
        (facts(True), TOPIC_ID, DROPS, OWNER.DELETED),
        (facts(True, untold="orders"), TOPIC_ID, DROPS, OWNER.UNTOLD),
        (facts(False), TOPIC_ID, USUAL, OWNER.OURS),
        (facts(False, orders=TIERED), Uuid.of(0, 1), USUAL, OWNER.OURS),
    ],
)
def test_standing_when_the_cluster_is_asked_then_says_whose_business_a_topic_is(
    told: TopicOwners | None, topic_id: Uuid, options: ExpireOptions, standing: TopicOwner
) -> None:
    """The cluster decides whose topic it is."""
    assert standing_of("orders", topic_id, told, options) is standing


@pytest.mark.parametrize(
    ("told", "options", "rules"),
    [
        (None, USUAL, RULES()),
        (None, ExpireOptions(1, 2, {("orders", 7): 3}), RULES(1, 2, 3)),
        (facts(True, orders=PLAIN), USUAL, RULES(500, -1, 70)),
        (facts(False, orders=PLAIN), USUAL, RULES(500, -1, None)),
        (facts(False, orders=PLAIN), ExpireOptions(asks_log_start=True), RULES(500, -1, 70)),
        (facts(True, orders=PLAIN), ExpireOptions(-1, 9, {("orders", 7): 3}), RULES(-1, 9, 3)),
        (facts(True), USUAL, RULES()),
    ],
)
def test_rules_when_something_is_given_then_it_counts_before_what_the_cluster_says(
    told: TopicOwners | None, options: ExpireOptions, rules: RetentionSettings
) -> None:
    """Given limits precede the cluster's; an archive ignores its log start unless asked."""
    assert rules_of(tp("orders"), told, options) == rules


@pytest.mark.parametrize("said", [{"max_delete": 0}, {"open_for_ms": -1}])
def test_wish_when_it_cannot_be_meant_then_refused(said: dict[str, int]) -> None:
    """An impossible request is refused in one line."""
    with pytest.raises(ConfigError):
        ExpireOptions(**said)  # type: ignore[arg-type]
