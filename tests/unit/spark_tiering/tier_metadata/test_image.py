"""Images of one moment, of metadata that changes meanwhile."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged, NotAssigned, NotPermitted, NotReady, RlmmError, UnknownPartition
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.tier_metadata.image import (
    ROUNDS_MAX,
    PartitionImages,
    by_place,
    image_of,
    take_images,
)
from tests.support.builders import partition_delete, segment_id, started, tp
from tests.support.tier.job_parts import HeldMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

COUNT = 3


class Moving:
    """Metadata that changes before chosen questions; pages of a listing have one segment."""

    def __init__(self) -> None:
        self.held: dict[TopicIdPartition, list[SegmentMetadata]] = {}
        self.highest: dict[tuple[TopicIdPartition, int], int] = {}
        self.deletes: dict[TopicIdPartition, PartitionDelete] = {}
        self.positions = dict.fromkeys(range(COUNT), 7)
        self.caught_up: list[TopicIdPartition] = []
        self.before: Callable[[str, TopicIdPartition], None] = lambda question, partition: None
        self.refusals: dict[TopicIdPartition, RlmmError] = {}

    def _asked(self, question: str, partition: TopicIdPartition) -> None:
        self.before(question, partition)
        if partition in self.refusals:
            raise self.refusals[partition]

    def catch_up(self, partition: TopicIdPartition) -> None:
        self.caught_up.append(partition)

    def position(self, place: int) -> int:
        return self.positions[place]

    def partition_delete(self, partition: TopicIdPartition) -> PartitionDelete | None:
        self._asked("delete", partition)
        if partition not in self.held and partition not in self.deletes:
            raise UnknownPartition("never heard of")
        return self.deletes.get(partition)

    def segments(self, partition: TopicIdPartition) -> Iterator[SegmentMetadata]:
        self._asked("segments", partition)
        if partition not in self.held:
            raise UnknownPartition("never heard of")
        for at in range(len(self.held[partition])):
            self._asked(f"segment {at}", partition)
            yield self.held[partition][at]

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        self._asked("highest", partition)
        if partition not in self.held:
            raise UnknownPartition("never heard of")
        return self.highest.get((partition, epoch))


def put(metadata: Moving, partition: TopicIdPartition, *starts: int) -> list[SegmentMetadata]:
    found = [
        started(segment_id(start + 1, partition), start, start + 9, {4: start, 5: start + 5})
        for start in starts
    ]
    metadata.held[partition] = found
    return found


def on_place(place: int, at: int = 0) -> TopicIdPartition:
    found = [one for number in range(60) if place in by_place([one := tp(partition=number)], COUNT)]
    return found[at]


def test_image_when_something_is_stored_then_says_all_of_it() -> None:
    """An image holds segments, deletions and the watermarks of all their epochs."""
    metadata = Moving()
    segments = put(metadata, tp(), 0, 10)
    metadata.highest = {(tp(), 2): 90, (tp(), 4): 14, (tp(), 9): 1}
    metadata.deletes[tp()] = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED)
    image = image_of(metadata, tp(), [2, 3, -1])
    assert image.segments == tuple(segments)
    assert image.watermarks == ((2, 90), (4, 14))
    assert image.delete is PartitionDeleteState.DELETE_PARTITION_MARKED


def test_image_when_nothing_was_stored_then_empty() -> None:
    """An image is empty for a partition without events and for one whose deletion is finished."""
    metadata = Moving()
    assert image_of(metadata, tp(), [0]).segments == ()
    finished = PartitionDeleteState.DELETE_PARTITION_FINISHED
    metadata.deletes[tp()] = partition_delete(finished)
    image = image_of(metadata, tp(), [0])
    assert (image.segments, image.watermarks, image.delete) == ((), (), finished)


def test_images_when_nothing_moves_then_taken_in_one_round_at_the_position() -> None:
    """Unchanged images take one round, with one request for each metadata partition's end."""
    metadata = Moving()
    first, second, other = on_place(0), on_place(0, 1), on_place(2)
    put(metadata, first, 0)
    metadata.positions[2] = 0
    images = take_images(metadata, [first, other, second, first], {}, COUNT)
    assert {image.partition for image in images.partitions} == {first, second, other}
    assert images.positions == {0: 7, 2: 0}
    assert images.left_out == {}
    assert metadata.caught_up == [first, other]


def test_f113_image_when_a_copy_starts_while_it_is_listed_then_taken_again() -> None:
    """An image is listed again when a copy starts during the listing."""
    metadata = Moving()
    partition = on_place(1)
    put(metadata, partition, 10)

    def starts(question: str, asked: TopicIdPartition) -> None:
        if question == "highest" and metadata.positions[1] == 7:
            put(metadata, partition, 0, 10, 20)
            metadata.highest[partition, 4] = 99
            metadata.positions[1] = 12

    metadata.before = starts
    images = take_images(metadata, [partition], {}, COUNT)
    (image,) = images.partitions
    assert [one.start_offset for one in image.segments] == [0, 10, 20]
    assert image.watermarks == ((4, 99),)
    assert images.positions == {1: 12}


def test_f113_image_when_only_others_move_then_taken_between_two_equal_rounds() -> None:
    """Changes of other partitions do not delay an image."""
    metadata = Moving()
    quiet = on_place(1)
    put(metadata, quiet, 0, 10)
    listed: list[str] = []

    def others_move(question: str, asked: TopicIdPartition) -> None:
        metadata.positions[1] += 1
        listed.append(question)

    metadata.before = others_move
    images = take_images(metadata, [quiet], {}, COUNT)
    (image,) = images.partitions
    assert len(image.segments) == 2
    assert listed.count("segments") == 2
    assert images.positions == {1: 7 + len(listed) // 2}


def test_f113_image_when_it_never_keeps_still_then_left_out_and_others_are_not() -> None:
    """A partition that keeps changing is left out with its reason, the others stay."""
    metadata = Moving()
    restless, quiet = on_place(1), on_place(1, 1)
    put(metadata, quiet, 0)
    rounds = []

    def moves(question: str, asked: TopicIdPartition) -> None:
        if asked == restless and question == "segments":
            rounds.append(question)
            put(metadata, restless, *range(0, 10 * len(rounds), 10))
            metadata.positions[1] += 1

    put(metadata, restless, 0)
    metadata.before = moves
    images = take_images(metadata, [restless, quiet], {}, COUNT)
    assert [image.partition for image in images.partitions] == [quiet]
    assert images.positions == {1: 7 + ROUNDS_MAX - 1}
    error = images.left_out[restless]
    assert isinstance(error, NotReady)
    assert error.metadata_partition == 1
    assert len(rounds) == ROUNDS_MAX


def test_f113_image_when_a_segment_moves_between_two_pages_then_no_mixture_is_given() -> None:
    """An image is of one moment when a copy finishes at any point of the listing."""
    partition = on_place(1)
    before = put(Moving(), partition, 0, 10)
    after = [replace(one, state=SegmentState.COPY_SEGMENT_FINISHED) for one in before]
    for at in range(12):
        metadata = Moving()
        metadata.held[partition] = list(before)
        questions: list[str] = []

        def finishes(
            question: str,
            asked: TopicIdPartition,
            questions: list[str] = questions,
            metadata: Moving = metadata,
            at: int = at,
        ) -> None:
            if len(questions) == at:
                metadata.held[partition] = list(after)
                metadata.highest[partition, 4] = 19
                metadata.positions[1] += 2
            questions.append(question)

        metadata.before = finishes
        images = take_images(metadata, [partition], {}, COUNT)
        (image,) = images.partitions
        is_after = images.positions[1] == 9
        assert image.segments == tuple(after if is_after else before)
        assert image.watermarks == (((4, 19),) if is_after else ())


@pytest.mark.parametrize("error", [NotReady("replaying"), NotAssigned("no"), LogDamaged("bad")])
def test_image_when_one_partition_cannot_be_read_then_only_it_is_missing(error: RlmmError) -> None:
    """Only the partition that cannot be read is missing."""
    metadata = Moving()
    lost, fine = on_place(1), on_place(1, 1)
    put(metadata, fine, 0)
    metadata.refusals[lost] = error
    images = take_images(metadata, [lost, fine], {}, COUNT)
    assert [image.partition for image in images.partitions] == [fine]
    assert images.left_out == {lost: error}
    images.of(HeldMetadata(partition_count=COUNT))


def test_image_when_it_is_readable_again_then_not_missing() -> None:
    """A partition refused in an earlier round is not missing when the last round could read it."""
    metadata = Moving()
    partition = on_place(1)
    put(metadata, partition, 0)
    metadata.refusals[partition] = NotReady("replaying")

    def recovers(question: str, asked: TopicIdPartition) -> None:
        metadata.positions[1] += metadata.positions[1] == 7

    metadata.before = recovers
    first = list[str]()

    def once(question: str, asked: TopicIdPartition) -> None:
        if first:
            metadata.refusals.clear()
        first.append(question)
        recovers(question, asked)

    metadata.before = once
    images = take_images(metadata, [partition], {}, COUNT)
    assert images.left_out == {}
    assert len(images.partitions) == 1


def test_image_that_cannot_catch_up_misses_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """All user partitions of a lagging metadata partition are missing, and none is listed."""
    metadata = Moving()
    behind, other = on_place(1), on_place(2)

    def catch_up(partition: TopicIdPartition) -> None:
        if partition == behind:
            raise NotReady("behind")

    monkeypatch.setattr(metadata, "catch_up", catch_up)
    images = take_images(metadata, [behind, other], {}, COUNT)
    assert [image.partition for image in images.partitions] == [other]
    assert list(images.left_out) == [behind]
    assert list(images.positions) == [2]


def test_image_when_nothing_can_be_read_then_why_is_raised() -> None:
    """An image without any readable partition raises the reason."""
    error = NotAssigned("not yours")
    with pytest.raises(NotAssigned, match="not yours"):
        PartitionImages(left_out={tp(): error}).of(HeldMetadata(partition_count=COUNT))
    PartitionImages().of(HeldMetadata(partition_count=COUNT))


def test_image_when_something_is_missing_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Missing partitions are reported in one line, however many."""
    metadata = Moving()
    missing = [tp(partition=number) for number in range(20)]
    metadata.refusals = dict.fromkeys(missing, NotReady("replaying"))
    images = take_images(metadata, [*missing, tp("fine")], {}, COUNT)
    with caplog.at_level(logging.WARNING):
        images.of(HeldMetadata(partition_count=COUNT))
    (record,) = caplog.records
    assert "20 partitions" in record.getMessage()


def test_image_when_who_asks_may_not_then_raised_at_once() -> None:
    """A refusal of the caller raises at once, since it concerns no single partition."""
    metadata = Moving()
    metadata.refusals[tp()] = NotPermitted("no")
    with pytest.raises(NotPermitted):
        take_images(metadata, [tp()], {}, COUNT)
