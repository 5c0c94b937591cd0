"""Segments by an offset, a time or their properties, and their order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.inspection.moment import PartitionSummary
from rlmm.inspection.segment_search import (
    ORDERS,
    SegmentFilter,
    epochs_of,
    holding,
    newest_from,
    sort_key,
)
from rlmm.inspection.selectors import parse_topic_partitions
from rlmm.metadata.segment import SegmentState
from tests.support.builders import delete_started, finished, segment_id, started, tp
from tests.support.cli.metadata_history import moment_of

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.shard import Shard


async def shard_of(*events: Event) -> Shard:
    return await (await moment_of(events)).state(tp())


def whole(label: str, start: int, last: int, epoch: int = 0, newest_ms: int = -1) -> list[Event]:
    begun = started(label, start, last, {epoch: start}, max_timestamp_ms=newest_ms)
    return [begun, finished(label)]


TWO = *whole("a", 0, 99), *whole("b", 100, 199, epoch=2)
LINEAGES = *whole("a", 0, 99, epoch=1), *whole("b", 50, 149, epoch=2)
GONE = *whole("gone", 100, 199), delete_started("gone")
HOLE = (
    *whole("a", 0, 99), *whole("b", 200, 299), *whole("c", 300, 399), started("open", 150, 180),
)  # fmt: skip
OPEN_FIRST = started("open", 0, 199), *whole("b", 50, 149)


@pytest.mark.parametrize(
    ("events", "offset", "epoch", "held", "neighbours"),
    [
        pytest.param(TWO, 150, None, {"b": (2,)}, (None, None), id="one-in-its-epoch"),
        pytest.param(TWO, 150, 2, {"b": (2,)}, (None, None), id="asked-in-its-epoch"),
        pytest.param(TWO, 150, 0, {}, ("a", None), id="asked-in-another-epoch"),
        pytest.param(LINEAGES, 60, None, {"a": (1,), "b": (2,)}, (None, None), id="two-lineages"),
        pytest.param(
            (*TWO[:2], started("open", 100, 199), *GONE), 100, None, {"open": (), "gone": ()},
            ("a", None), id="open-or-being-deleted",
        ),
        pytest.param(HOLE, 120, None, {}, ("a", "b"), id="hole"),
        pytest.param(OPEN_FIRST, 60, None, {"b": (0,), "open": ()}, (None, None), id="and-open"),
    ],
)  # fmt: skip
async def test_offset_when_looked_for_is_found_in_epochs_or_shown_with_its_neighbours(
    events: tuple[Event, ...], offset: int, epoch: int | None, held: dict[str, tuple[int, ...]],
    neighbours: tuple[str | None, str | None],
) -> None:  # fmt: skip
    """Each holder has the epochs that find it, found ones first; a miss has finished neighbours."""
    found = holding(await shard_of(*events), tp(), offset, epoch=epoch)
    expected = {segment_id(label): epochs for label, epochs in held.items()}
    assert {one.segment.id: one.epochs for one in found.held} == expected
    is_found = [bool(one.epochs) for one in found.held]
    assert is_found == sorted(is_found, reverse=True)
    assert found.is_found is any(is_found)
    around = [None if one is None else one.id for one in (found.before, found.behind)]
    assert around == [None if label is None else segment_id(label) for label in neighbours]
    if events is TWO and epoch is None:
        assert found.epochs == (0, 2)


async def test_time_when_asked_has_the_first_finished_segment_with_such_a_record() -> None:
    """The answer is the first finished segment by offset whose newest record is not older."""
    shard = await shard_of(
        *whole("a", 0, 99, newest_ms=1_000),
        started("open", 100, 199, max_timestamp_ms=3_000),
        *whole("b", 200, 299, newest_ms=2_000),
        *whole("c", 300, 399, newest_ms=3_000),
    )
    for time_ms, label in ((0, "a"), (1_000, "a"), (1_001, "b"), (2_500, "c")):
        (held,) = newest_from(shard, tp(), time_ms).held
        assert held.segment.id == segment_id(label)
        assert held.epochs == (0,)
    assert newest_from(shard, tp(), 3_001).held == ()
    assert newest_from(shard, tp(), 0, epoch=1).held == ()


async def test_time_when_no_look_up_finds_the_segment_passes_it_over() -> None:
    """The search by time skips a segment that another one replaced."""
    shard = await shard_of(
        *whole("hidden", 0, 99, newest_ms=1_000), *whole("shown", 0, 199, newest_ms=2_000)
    )
    (held,) = newest_from(shard, tp(), 500).held
    assert held.segment.id == segment_id("shown")


async def test_epochs_of_a_partition_are_those_with_a_finished_copy() -> None:
    """An open copy's epoch is not one of them."""
    other = tp("orders", 8)
    shard = await shard_of(*whole("a", 0, 99, epoch=3), started("b", 100, 199, {5: 100}))
    assert epochs_of(shard, tp()) == (3,)
    assert epochs_of(shard, other) == ()


SEGMENT = started(
    1, 0, 99, {4: 0, 5: 50}, broker_id=2, max_timestamp_ms=1_000, size_bytes=500,
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, True),
        ({"states": frozenset({SegmentState.COPY_SEGMENT_STARTED})}, True),
        ({"states": frozenset({SegmentState.COPY_SEGMENT_FINISHED})}, False),
        ({"newest_from_ms": 1_000}, True),
        ({"newest_from_ms": 1_001}, False),
        ({"newest_to_ms": 1_000}, True),
        ({"newest_to_ms": 999}, False),
        ({"size_min": 500}, True),
        ({"size_min": 501}, False),
        ({"size_max": 500}, True),
        ({"size_max": 499}, False),
        ({"brokers": frozenset({1, 2})}, True),
        ({"brokers": frozenset({1})}, False),
        ({"epoch": 5}, True),
        ({"epoch": 6}, False),
        ({"has_custom_metadata": False}, True),
        ({"has_custom_metadata": True}, False),
    ],
)
def test_segment_when_a_condition_is_set_has_to_meet_it(
    condition: dict[str, Any], expected: bool
) -> None:
    """Each condition works alone on both sides of its inclusive bound."""
    assert SegmentFilter(**condition).allows(SEGMENT) is expected


def test_segment_when_it_does_not_say_its_time_meets_no_bound_of_time() -> None:
    """A segment with timestamp -1 meets no bound of time."""
    unknown = replace(SEGMENT, max_timestamp_ms=-1)
    assert SegmentFilter().allows(unknown)
    assert not SegmentFilter(newest_to_ms=5).allows(unknown)


def test_segment_with_custom_metadata_that_is_empty_has_some() -> None:
    """A segment with empty custom metadata counts as one that has some."""
    assert SegmentFilter(has_custom_metadata=True).allows(replace(SEGMENT, custom_metadata=b""))


def test_partition_when_it_cannot_hold_a_segment_that_is_meant_is_passed_over() -> None:
    """The filter excludes user partitions whose figures show no match."""
    summary = PartitionSummary(tp(), 0, started=1, finished=0, being_deleted=0, size_bytes=1)
    finished = frozenset({SegmentState.COPY_SEGMENT_FINISHED})
    assert SegmentFilter().may_hold(summary)
    assert not SegmentFilter(states=finished).may_hold(summary)
    assert not SegmentFilter(parse_topic_partitions("orders:1")).may_hold(summary)
    assert not SegmentFilter().may_hold(replace(summary, started=0))


@pytest.mark.parametrize(
    "ranges", [{"newest_from_ms": 2, "newest_to_ms": 1}, {"size_min": 2, "size_max": 1}]
)
def test_filter_when_a_range_is_empty_is_refused(ranges: dict[str, Any]) -> None:
    """The filter refuses a range whose end lies before its start."""
    with pytest.raises(InvalidArgument, match="between 2 and 1"):
        SegmentFilter(**ranges)


@pytest.mark.parametrize("order", ORDERS)
def test_order_when_named_sorts_by_what_it_says(order: str) -> None:
    """Every order is total, and a dash reverses it."""
    later = started(
        2, 100, 199, {6: 100}, broker_id=3, max_timestamp_ms=2_000, event_timestamp_ms=1,
        size_bytes=501, state=SegmentState.COPY_SEGMENT_FINISHED,
    )  # fmt: skip
    key, is_reversed = sort_key(order)
    first, second = sorted([later, SEGMENT], key=key, reverse=is_reversed)
    expected = (later, SEGMENT) if order.startswith("-") else (SEGMENT, later)
    assert (first, second) == expected
