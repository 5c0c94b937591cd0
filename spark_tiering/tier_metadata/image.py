"""
An image of partitions at one moment, made from many questions. Pure but for the questions. All
partitions of one metadata partition are listed in rounds. Partitions that two rounds in a row have
found equal were so at the moment between: segments, watermarks and deletions only move on.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rlmm.errors import (
    LogError,
    NotAssigned,
    NotReady,
    OverBudget,
    RlmmError,
    TooBusy,
    UnknownPartition,
)
from rlmm.metadata.partitioner import metadata_partition_for
from spark_tiering.copy_plan.inputs import MetadataImage, PartitionImage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.tier_metadata.protocol import TierMetadata

_log = logging.getLogger(__name__)

T = TypeVar("T")

ROUNDS_MAX: Final = 6
"""How often a metadata partition is listed until what has not kept still is left out."""
ATTEMPTS: Final = 2
OF_ONE_PARTITION: Final = (NotReady, NotAssigned, LogError, OverBudget, TooBusy)
"""What keeps one partition from being read, and says nothing of others."""


class PartitionAnswers(Protocol):
    """Answers about one user partition; each call may raise `UnknownPartition`."""

    def partition_delete(self, partition: TopicIdPartition, /) -> PartitionDelete | None: ...

    def segments(self, partition: TopicIdPartition, /) -> Iterable[SegmentMetadata]: ...

    def highest_offset(self, partition: TopicIdPartition, epoch: int, /) -> int | None: ...


class MovingPartitionAnswers(PartitionAnswers, Protocol):
    """Answers where the metadata moves on between two questions."""

    def catch_up(self, partition: TopicIdPartition, /) -> None:
        """Return when every event is applied that was stored before the call."""

    def position(self, place: int, /) -> int:
        """Return the next offset of metadata partition *place*: every event below it is applied."""


@dataclass(frozen=True, slots=True)
class PartitionImages:
    """Images of one moment, and why others are missing."""

    partitions: tuple[PartitionImage, ...] = ()
    positions: Mapping[int, int] = field(default_factory=dict)
    left_out: Mapping[TopicIdPartition, RlmmError] = field(default_factory=dict)

    def of(self, metadata: TierMetadata) -> MetadataImage:
        """Return them as an image of *metadata*; raise why nothing could be read at all."""
        if self.left_out:
            first, error = next(iter(self.left_out.items()))
            if not self.partitions:
                raise error
            _log.warning(
                "%d partitions are not in an image of the metadata; %s: %s",
                len(self.left_out), first, error,
            )  # fmt: skip
        topic = metadata.cluster_id, metadata.topic_id, metadata.partition_count
        return MetadataImage(*topic, self.positions, self.partitions)


def image_of(
    asked: PartitionAnswers, partition: TopicIdPartition, epochs: Iterable[int]
) -> PartitionImage:
    """Return the image of one partition; it is of one moment only where nothing moves meanwhile."""
    delete = _known(asked.partition_delete, partition)
    # Pages are asked for while they are walked.
    segments = _known(lambda: tuple(asked.segments(partition))) or ()
    wanted = {epoch for epoch in epochs if epoch >= 0}
    wanted.update(epoch for segment in segments for epoch, _ in segment.epochs)
    watermarks = (
        (epoch, _known(asked.highest_offset, partition, epoch)) for epoch in sorted(wanted)
    )
    known = tuple((epoch, highest) for epoch, highest in watermarks if highest is not None)
    return PartitionImage(partition, segments, known, None if delete is None else delete.state)


def _known(ask: Callable[..., T], *args: object) -> T | None:
    """Return the answer; `None` where nothing was ever stored, or nothing is left."""
    try:
        return ask(*args)
    except UnknownPartition:
        return None


def by_place(
    partitions: Iterable[TopicIdPartition], partition_count: int
) -> dict[int, list[TopicIdPartition]]:
    """Return *partitions*, each once, by the metadata partition of their events."""
    found: dict[int, list[TopicIdPartition]] = defaultdict(list)
    for partition in dict.fromkeys(partitions):
        place = metadata_partition_for(partition.topic_id, partition.partition, partition_count)
        found[place].append(partition)
    return dict(sorted(found.items()))


def take_images(
    followed: MovingPartitionAnswers,
    partitions: Iterable[TopicIdPartition],
    epochs: Mapping[TopicIdPartition, Sequence[int]],
    partition_count: int,
) -> PartitionImages:
    """Return images of all partitions that keep still; one that is behind comes last."""
    images: list[PartitionImage] = []
    positions: dict[int, int] = {}
    left_out: dict[TopicIdPartition, RlmmError] = {}
    errors: dict[int, RlmmError] = {}
    waiting = by_place(partitions, partition_count)
    for _ in range(ATTEMPTS):
        for place, members in list(waiting.items()):
            try:
                followed.catch_up(members[0])
                found = _Rounds(followed, place, members, epochs).run()
            except OF_ONE_PARTITION as error:
                errors.setdefault(place, error)
                continue
            del waiting[place]
            images += found.partitions
            positions |= found.positions
            left_out |= found.left_out
    for place, members in waiting.items():
        left_out.update(dict.fromkeys(members, errors[place]))
    return PartitionImages(tuple(images), positions, left_out)


class _Rounds:
    def __init__(
        self,
        followed: MovingPartitionAnswers,
        place: int,
        members: Sequence[TopicIdPartition],
        epochs: Mapping[TopicIdPartition, Sequence[int]],
    ) -> None:
        self._followed = followed
        self._place = place
        self._members = members
        self._epochs = epochs
        self._errors: dict[TopicIdPartition, RlmmError] = {}

    def run(self) -> PartitionImages:
        before: dict[TopicIdPartition, PartitionImage] = {}
        moment = position = self._followed.position(self._place)
        still: dict[TopicIdPartition, PartitionImage] = {}
        for _ in range(ROUNDS_MAX):
            listed = self._listed()
            after = self._followed.position(self._place)
            if after == position:
                return self._images(position, listed)
            still = {one: image for one, image in listed.items() if before.get(one) == image}
            moment, position, before = position, after, listed
            if len(still) == len(listed) and still:
                return self._images(moment, still)
        return self._images(moment, still)

    def _listed(self) -> dict[TopicIdPartition, PartitionImage]:
        found = {}
        for partition in self._members:
            try:
                found[partition] = image_of(
                    self._followed, partition, self._epochs.get(partition, ())
                )
            except OF_ONE_PARTITION as error:
                self._errors[partition] = error
        return found

    def _images(
        self, position: int, found: Mapping[TopicIdPartition, PartitionImage]
    ) -> PartitionImages:
        left_out = {
            one: self._errors.get(one) or self._restless(one)
            for one in self._members
            if one not in found
        }
        positions = {self._place: position} if found else {}
        return PartitionImages(tuple(found.values()), positions, left_out)

    def _restless(self, partition: TopicIdPartition) -> NotReady:
        msg = (
            f"the metadata of {partition} did not keep still while it was listed {ROUNDS_MAX} times"
        )
        return NotReady(
            msg,
            reason="behind",
            user_partition=str(partition),
            metadata_partition=self._place,
        )
