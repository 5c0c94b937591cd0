"""Events that are published together, by every kind of access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import EventRejected, RlmmError
from rlmm.metadata.segment import SegmentState
from tests.support.builders import finished, segment_id, started, tp
from tests.support.tier.metadata_accesses import KINDS, WAIT_S, access_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.segment import SegmentMetadata

PARTITIONS = [tp(partition=number) for number in range(5)]
"""On several metadata partitions, and several on one."""
EACH = 20


@pytest.fixture(params=KINDS)
async def access(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """One of every kind, over an empty log."""
    async with access_of(request.param, tmp_path) as made:
        yield made


async def test_events_when_published_together_then_take_effect_in_the_order_of_each_partition(
    access: Any,
) -> None:
    """Each has its verdict in its place, and those of one partition have rising offsets."""
    ids = [
        segment_id(1_000 * number + at, partition)
        for at in range(EACH)
        for number, partition in enumerate(PARTITIONS)
    ]
    starts = [started(one, 10 * at, 10 * at + 9) for at, one in enumerate(ids)]
    finishes = [finished(one) for one in ids]
    rounds: tuple[Sequence[SegmentMetadata | SegmentUpdate], ...] = (starts, finishes)
    for events in rounds:
        told = await access.publish_all(events, WAIT_S)
        assert {one.verdict for one in told} == {"applied"}
        for partition in PARTITIONS:
            of_partition = [
                one.offset
                for event, one in zip(events, told, strict=True)
                if event.id.partition == partition
            ]
            assert of_partition == sorted(set(of_partition))
            assert len(of_partition) == EACH
    image = await access.image(PARTITIONS, {}, WAIT_S)
    assert {len(one.segments) for one in image.partitions} == {EACH}
    states = {segment.state for one in image.partitions for segment in one.segments}
    assert states == {SegmentState.COPY_SEGMENT_FINISHED}


async def test_event_when_it_is_rejected_among_others_then_those_behind_it_take_effect(
    access: Any,
) -> None:
    """Why it was not stored is given in its place; nothing is raised."""
    first, second, third = (segment_id(number, PARTITIONS[0]) for number in (1, 2, 3))
    events = [started(first, 0, 9), finished(second), started(third, 20, 29)]
    told = await access.publish_all(events, WAIT_S)
    assert isinstance(told[1], EventRejected)
    assert not any(isinstance(one, RlmmError) for one in (told[0], told[2]))
    assert (await access.segment(third, WAIT_S)).start_offset == 20
    assert await access.segment(second, WAIT_S) is None
    again = await access.publish_all(events[:1], WAIT_S)
    assert again[0].verdict == "duplicate"
    assert await access.publish_all([], WAIT_S) == []
