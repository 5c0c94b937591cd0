"""Tier metadata by every kind of access."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import EventRejected, NotReady, RlmmError
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.copy_plan.inputs import PartitionImage
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.tier.metadata_accesses import COUNT, KINDS, WAIT_S, access_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

PARTITIONS = [tp(partition=number) for number in range(8)]
"""On several metadata partitions, and several on one."""

MARKED, STARTED, FINISHED = PartitionDeleteState
FIVE = PARTITIONS[:5]
EACH = 20


@pytest.fixture(params=KINDS)
async def access(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    before = {thread.name for thread in threading.enumerate()}
    async with access_of(request.param, tmp_path) as made:
        yield made
    after = {thread.name for thread in threading.enumerate()} - before
    assert not {name for name in after if not name.startswith("asyncio_")}


def place_of(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, COUNT)


async def copied(access: Any, label: str, start: int, last: int, epoch: int = 0) -> Any:
    first = started(label, start, last, {epoch: start})
    assert (await access.publish(first, WAIT_S)).verdict == "applied"
    assert (await access.publish(finished(label), WAIT_S)).verdict == "applied"
    return first


async def test_access_when_opened_then_says_whose_metadata_it_is(access: Any) -> None:
    """An access names cluster, topic and number of partitions of its metadata."""
    image = await access.image([tp()], {}, WAIT_S)
    metadata = access.metadata
    assert metadata.cluster_id
    assert metadata.partition_count == COUNT
    assert (image.cluster_id, image.topic_id, image.partition_count) == (
        metadata.cluster_id,
        metadata.topic_id,
        COUNT,
    )


async def test_image_when_nothing_was_stored_then_every_partition_is_empty(access: Any) -> None:
    """An image without events has every partition, empty, at its metadata partition's position."""
    image = await access.image(PARTITIONS, {tp(): [0, 1]}, WAIT_S)
    assert {one.partition for one in image.partitions} == set(PARTITIONS)
    assert set(image.partitions) == {PartitionImage(one) for one in PARTITIONS}
    assert image.positions == dict.fromkeys(map(place_of, PARTITIONS), 0)
    assert len(image.positions) > 1
    nothing = await access.image([], {}, WAIT_S)
    assert nothing.partitions == ()


async def test_events_when_published_then_the_next_image_has_their_effect(access: Any) -> None:
    """The next image shows each event's effect, and watermarks of asked epochs outlive segments."""
    partition = tp()
    place = place_of(partition)
    first = started("one", 0, 99, {3: 0, 5: 50})
    published = await access.publish(first, WAIT_S)
    assert (published.metadata_partition, published.offset) == (place, 0)
    (image,) = (await access.image([partition], {}, WAIT_S)).partitions
    assert image == PartitionImage(partition, (first,))
    custom = b"\1\2"
    published = await access.publish(finished("one", custom_metadata=custom), WAIT_S)
    whole = await access.image([partition], {partition: [3, 4]}, WAIT_S)
    (image,) = whole.partitions
    assert [one.state for one in image.segments] == [SegmentState.COPY_SEGMENT_FINISHED]
    assert image.segments[0].custom_metadata == custom
    assert image.watermarks == ((3, 49), (5, 99))
    assert whole.positions == {place: published.offset + 1}
    await access.publish(delete_started("one", custom_metadata=custom), WAIT_S)
    (image,) = (await access.image([partition], {}, WAIT_S)).partitions
    assert [one.state for one in image.segments] == [SegmentState.DELETE_SEGMENT_STARTED]
    await access.publish(delete_finished("one", custom_metadata=custom), WAIT_S)
    (image,) = (await access.image([partition], {partition: [3]}, WAIT_S)).partitions
    assert image == PartitionImage(partition, (), ((3, 49),))


async def test_event_when_repeated_or_refused_then_is_not_stored_again(access: Any) -> None:
    """A repeated event is a duplicate; one that the state machine refuses is not stored."""
    with pytest.raises(EventRejected) as caught:
        await access.publish(finished("nobody"), WAIT_S)
    assert caught.value.stored_at is None
    assert set((await access.image([tp()], {}, WAIT_S)).positions.values()) == {0}
    first = await copied(access, "one", 0, 99)
    assert (await access.publish(finished("one"), WAIT_S)).verdict == "duplicate"
    with pytest.raises(EventRejected):
        await access.publish(first, WAIT_S)


async def test_segment_when_asked_for_then_as_it_is_now(access: Any) -> None:
    """A segment is shown as it is now: absent, started, finished or deleted."""
    segment = segment_id("one")
    assert await access.segment(segment, WAIT_S) is None
    await copied(access, "one", 0, 99)
    found = await access.segment(segment, WAIT_S)
    assert found.state is SegmentState.COPY_SEGMENT_FINISHED
    assert await access.segment(segment_id("two"), WAIT_S) is None
    await access.publish(delete_started("one"), WAIT_S)
    await access.publish(delete_finished("one"), WAIT_S)
    assert await access.segment(segment, WAIT_S) is None


async def test_image_when_there_are_many_segments_then_all_of_them(access: Any) -> None:
    """An image of more than one page has all segments in order of offset."""
    for number in range(1_050):
        await access.publish(started(number + 1, number * 10, number * 10 + 9), WAIT_S)
    (image,) = (await access.image([tp()], {}, WAIT_S)).partitions
    assert [one.start_offset for one in image.segments] == [at * 10 for at in range(1_050)]


async def test_f113_image_when_copies_go_on_then_is_of_one_moment_or_refused(
    access: Any,
) -> None:
    """An image of a partition that keeps changing is refused, or reflects one moment exactly."""
    partition, places = tp(), 20

    async def write(first: int) -> None:
        for at in range(first, places, 2):
            await copied(access, f"s{at}", at * 10, at * 10 + 9)

    writing = asyncio.gather(write(0), write(1))
    taken = 0
    while not (is_over := writing.done()) or not taken:
        try:
            image = await access.image([partition], {partition: [0]}, WAIT_S)
        except NotReady:
            continue
        (found,) = image.partitions
        done = [one for one in found.segments if one.state is SegmentState.COPY_SEGMENT_FINISHED]
        assert image.positions == {place_of(partition): len(found.segments) + len(done)}
        newest = max((one.last_offset for one in done), default=None)
        assert found.watermarks == (() if newest is None else ((0, newest),))
        taken += 1
    await writing
    assert is_over


async def test_f116_deletion_when_it_moves_on_then_every_step_is_visible(
    access: Any,
) -> None:
    """Each step of a partition deletion in Kafka's order is visible, and any other is refused."""
    await access.publish(started("one"), WAIT_S)
    with pytest.raises(EventRejected):
        await access.put_partition_delete(partition_delete(FINISHED), WAIT_S)
    for offset, state in enumerate((MARKED, STARTED, FINISHED), 1):
        published = await access.put_partition_delete(partition_delete(state), WAIT_S)
        assert (published.offset, published.verdict) == (offset, "applied")
        (image,) = (await access.image([tp()], {}, WAIT_S)).partitions
        assert image.delete is state
    with pytest.raises(EventRejected):
        await access.put_partition_delete(partition_delete(FINISHED), WAIT_S)


async def test_events_when_published_together_then_keep_each_partitions_order(
    access: Any,
) -> None:
    """Events published together have verdicts in order and rising offsets in each partition."""
    ids = [
        segment_id(1_000 * number + at, partition)
        for at in range(EACH)
        for number, partition in enumerate(FIVE)
    ]
    starts = [started(one, 10 * at, 10 * at + 9) for at, one in enumerate(ids)]
    finishes = [finished(one) for one in ids]
    rounds: tuple[Sequence[SegmentMetadata | SegmentUpdate], ...] = (starts, finishes)
    for events in rounds:
        told = await access.publish_all(events, WAIT_S)
        assert {one.verdict for one in told} == {"applied"}
        for partition in FIVE:
            of_partition = [
                one.offset
                for event, one in zip(events, told, strict=True)
                if event.id.partition == partition
            ]
            assert of_partition == sorted(set(of_partition))
            assert len(of_partition) == EACH
    image = await access.image(FIVE, {}, WAIT_S)
    assert {len(one.segments) for one in image.partitions} == {EACH}
    states = {segment.state for one in image.partitions for segment in one.segments}
    assert states == {SegmentState.COPY_SEGMENT_FINISHED}


async def test_event_when_rejected_among_others_then_the_rest_take_effect(
    access: Any,
) -> None:
    """A rejected event has its reason in its place, and the events behind it take effect."""
    first, second, third = (segment_id(number, FIVE[0]) for number in (1, 2, 3))
    events = [started(first, 0, 9), finished(second), started(third, 20, 29)]
    told = await access.publish_all(events, WAIT_S)
    assert isinstance(told[1], EventRejected)
    assert not any(isinstance(one, RlmmError) for one in (told[0], told[2]))
    assert (await access.segment(third, WAIT_S)).start_offset == 20
    assert await access.segment(second, WAIT_S) is None
    again = await access.publish_all(events[:1], WAIT_S)
    assert again[0].verdict == "duplicate"
    assert await access.publish_all([], WAIT_S) == []
