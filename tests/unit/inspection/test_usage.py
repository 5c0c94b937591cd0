"""Totals of the tier: their groups, waste, bytes that retention deletes soon, and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.usage import (
    Grouping,
    PriceClock,
    Prices,
    TopicUsage,
    UsageSums,
    live_records,
    longest_of,
)
from rlmm.inspection.verify import hidden_of
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentState
from rlmm.retention.retention import RetentionSettings, due_of
from tests.support.builders import finished, segment_id, started
from tests.support.cli.metadata_history import moment_of

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
CLOCK = PriceClock(NOW_MS, copy_open_ms=3_600_000)
PAYMENTS = TopicIdPartition(Uuid.of(0, 5), "payments", 0)


async def summed(grouping: Grouping) -> UsageSums:
    """Sum a topic with segments of two and 40 days, displaced and unfinished, and another one."""
    other = segment_id("p", PAYMENTS)
    events: list[Event] = [
        started("a", 0, 99, size_bytes=1_000, max_timestamp_ms=NOW_MS - 40 * DAY_MS),
        finished("a"),
        started("b", 0, 199, size_bytes=2_000, max_timestamp_ms=NOW_MS - 2 * DAY_MS),
        finished("b"),
        started("open", 200, 299, {1: 200}, size_bytes=500, event_timestamp_ms=NOW_MS - DAY_MS),
        started(other, 0, 9, size_bytes=50, max_timestamp_ms=NOW_MS), finished(other),
    ]  # fmt: skip
    moment, usage = await moment_of(events), UsageSums(grouping, CLOCK)
    for one in await moment.user_partitions():
        shard = await moment.state(one.partition)
        dues = due_of(shard.segments(one.partition), RetentionSettings(), NOW_MS)
        usage.add(dues, hidden_of(shard, one.partition))
    return usage


@pytest.mark.parametrize(
    ("grouping", "expected"),
    [
        (Grouping.TOPIC, [("orders", 3, 3_500), ("payments", 1, 50)]),
        (Grouping.STATE, [("COPY_SEGMENT_FINISHED", 3, 3_050), ("COPY_SEGMENT_STARTED", 1, 500)]),
        (Grouping.EPOCH, [("0", 3, 3_050), ("1", 1, 500)]),
        (Grouping.AGE, [("< 1d", 1, 50), ("< 7d", 1, 2_000), ("< 90d", 1, 1_000),
                        ("unknown", 1, 500)]),
    ],
)  # fmt: skip
async def test_usage_by_what_is_asked_for_adds_up_to_the_total(
    grouping: Grouping, expected: list[tuple[str, int, int]]
) -> None:
    """Every segment is in one group, whatever its state."""
    usage = await summed(grouping)
    groups = [(one.name, one.all.segments, one.all.size_bytes) for one in usage.groups()]
    assert groups == expected
    assert (usage.total.all.segments, usage.total.all.size_bytes) == (4, 3_550)


async def test_usage_when_copies_were_given_up_or_displaced_then_they_are_waste() -> None:
    """The waste is `a`, which lies wholly in the later `b`, and `open`, open for a day."""
    total = (await summed(Grouping.TOPIC)).total
    assert total.displaced.size_bytes == 1_000
    assert total.abandoned.size_bytes == 500
    assert total.waste_bytes == 1_500
    assert (total.finished.segments, total.open.segments) == (3, 1)
    assert (total.oldest_ms, total.newest_ms) == (NOW_MS - 40 * DAY_MS, NOW_MS)
    assert total.is_small


async def test_usage_when_prices_are_given_then_reckons_with_them() -> None:
    """Three objects for each segment were written."""
    total = (await summed(Grouping.TOPIC)).total
    assert total.cost(Prices(gib_month=2**30 / 3_550)) == 1.0
    assert total.put_cost(Prices(put_thousand=1_000)) == 12.0
    assert not Prices().is_known


def test_metadata_topic_tells_dead_records_and_the_retention_that_loses_nothing() -> None:
    """Retention loses nothing if it keeps the first and the last record of each living segment."""
    counts = {SegmentState.COPY_SEGMENT_STARTED: 1, SegmentState.COPY_SEGMENT_FINISHED: 3}
    assert live_records(counts, 2) == 9
    topic = TopicUsage(36, 9, NOW_MS - 40 * DAY_MS, 30 * DAY_MS)
    assert topic.dead_ratio == 0.75
    assert topic.safe_retention_ms(NOW_MS) == 47 * DAY_MS
    assert TopicUsage(36, 9, None, -1).safe_retention_ms(NOW_MS) == -1
    assert TopicUsage(36, 9, None, None).safe_retention_ms(NOW_MS) is None
    assert TopicUsage(0, 0, None, None).dead_ratio == 0.0


def test_longest_retention_is_unlimited_or_unknown_as_soon_as_one_is() -> None:
    """The longest retention is unknown or unlimited as soon as one of the topics is."""
    assert longest_of([5, 7]) == 7
    assert longest_of([5, -1]) == -1
    assert longest_of([5, None]) is None
    assert longest_of([]) is None
