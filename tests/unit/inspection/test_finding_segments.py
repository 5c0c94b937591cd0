"""Which segments hold an offset, or a time, and by which look-ups they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.inspection.segment_search import epochs_of, holding, newest_from
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


async def test_offset_when_one_segment_holds_it_is_found_in_its_epoch() -> None:
    """Without an epoch the answer names the epoch that it used."""
    shard = await shard_of(*whole("a", 0, 99), *whole("b", 100, 199, epoch=2))
    found = holding(shard, tp(), 150)
    assert [(one.segment.id, one.epochs) for one in found.held] == [(segment_id("b"), (2,))]
    assert found.is_found
    assert found.epochs == (0, 2)
    assert (found.before, found.behind) == (None, None)


async def test_offset_when_asked_in_another_epoch_is_not_found_there() -> None:
    """A follower of another lineage gets the answer that Kafka gives."""
    shard = await shard_of(*whole("a", 0, 99), *whole("b", 100, 199, epoch=2))
    assert not holding(shard, tp(), 150, epoch=0).is_found
    assert holding(shard, tp(), 150, epoch=2).is_found


async def test_offset_when_two_lineages_hold_it_has_both_with_their_epochs() -> None:
    """A change of leaders left two segments with the offset; each is found in its own epoch."""
    shard = await shard_of(*whole("a", 0, 99, epoch=1), *whole("b", 50, 149, epoch=2))
    found = holding(shard, tp(), 60)
    assert {one.segment.id: one.epochs for one in found.held} == {
        segment_id("a"): (1,),
        segment_id("b"): (2,),
    }


async def test_offset_when_only_an_open_copy_holds_it_is_shown_and_not_found() -> None:
    """Copies under way, and segments being deleted, are shown with no epoch that finds them."""
    shard = await shard_of(
        *whole("a", 0, 99), started("open", 100, 199), *whole("gone", 100, 199),
        delete_started("gone"),
    )  # fmt: skip
    found = holding(shard, tp(), 100)
    assert {one.segment.id for one in found.held} == {segment_id("open"), segment_id("gone")}
    assert all(one.epochs == () for one in found.held)
    assert not found.is_found
    assert found.before is not None
    assert found.before.id == segment_id("a")


async def test_offset_when_it_lies_in_a_hole_has_the_finished_neighbours() -> None:
    """The answer names the finished segments before and behind the hole."""
    shard = await shard_of(
        *whole("a", 0, 99), *whole("b", 200, 299), *whole("c", 300, 399), started("open", 150, 180)
    )
    found = holding(shard, tp(), 120)
    assert found.held == ()
    assert found.before is not None
    assert found.behind is not None
    assert (found.before.id, found.behind.id) == (segment_id("a"), segment_id("b"))


async def test_offset_when_found_and_open_has_the_found_one_first() -> None:
    """The segment that a look-up returns stands before the others, whatever their ids or starts."""
    shard = await shard_of(started("open", 0, 199), *whole("b", 50, 149))
    found = holding(shard, tp(), 60)
    assert [one.segment.id for one in found.held] == [segment_id("b"), segment_id("open")]


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
