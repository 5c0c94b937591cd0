"""Copies in a metadata topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.tiered import MetadataEvent
from tests.support.builders import delete_started, finished, segment_id, started
from tests.support.plugin.segment_copies import Copies, Range

if TYPE_CHECKING:
    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.segment import SegmentMetadata

    Event = SegmentMetadata | SegmentUpdate

ONE, TWO, THREE = (segment_id(number) for number in (1, 2, 3))


def copies(*events: Event) -> Copies:
    return Copies(MetadataEvent(0, at, 0, b"", event) for at, event in enumerate(events))


def test_a_copy_when_begun_and_not_finished_then_is_open() -> None:
    """Events after the finish change nothing."""
    found = copies(started(ONE, 0, 9), finished(ONE), started(TWO, 10, 19), delete_started(ONE))
    assert found.finished == {ONE.uuid}
    assert found.open == {TWO.uuid}


def test_a_range_when_begun_twice_then_is_named_unless_one_of_the_copies_is_excused() -> None:
    """A repeated range is named whether or not its copies were finished."""
    found = copies(started(ONE, 0, 9), started(TWO, 0, 9), finished(TWO), started(THREE, 10, 19))
    assert {one: set(names) for one, names in found.repeated().items()} == {
        Range(ONE.partition.partition, 0, 9): {ONE.uuid, TWO.uuid}
    }
    assert found.repeated(besides={ONE.uuid}) == {}


def test_the_end_when_a_copy_before_it_is_not_finished_then_is_before_that_copy() -> None:
    """A gap is not passed, wherever the copies behind it stand."""
    partition = ONE.partition.partition
    events: list[Event] = [started(THREE, 20, 29), finished(THREE)]
    events += [started(ONE, 0, 9), started(TWO, 10, 19)]
    assert copies(*events).end(partition) == 0
    assert copies(*events, finished(ONE)).end(partition) == 10
    assert copies(*events, finished(ONE), finished(TWO)).end(partition) == 30
