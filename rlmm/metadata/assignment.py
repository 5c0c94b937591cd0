"""Assignments: the user partitions of a service, and the metadata partitions it reads for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.partitioner import metadata_partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.ids import TopicIdPartition


_NONE: frozenset[TopicIdPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Assignment:
    """
    An assignment, made by `everything`, `nothing`, `awaited`, `of_metadata` or `of_user`.
    *metadata* partitions come with everything on them (`None`: all), *user* are user partitions.
    While the assignment is not known, nothing is read, and no caller gets `NotAssigned`.
    """

    metadata: frozenset[int] | None
    user: frozenset[TopicIdPartition] = frozenset()
    is_known: bool = True
    _counted: dict[int, Counter[int]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """
    How many of *user* each metadata partition holds, by partition count: kept, since each scrape
    asks.
    """

    def __post_init__(self) -> None:
        for number in self.metadata or ():
            if type(number) is not int:
                msg = f"a metadata partition is a number from 0, got {number!r}"
                raise InvalidArgument(msg)
        negative = sorted(number for number in self.metadata or () if number < 0)
        if negative:
            msg = f"there is no metadata partition {', '.join(map(str, negative))}"
            raise InvalidArgument(msg)

    @classmethod
    def everything(cls) -> Assignment:
        return cls(None)

    @classmethod
    def nothing(cls) -> Assignment:
        return cls(frozenset())

    @classmethod
    def awaited(cls) -> Assignment:
        return cls(frozenset(), is_known=False)

    @classmethod
    def of_metadata(cls, partitions: Iterable[int]) -> Assignment:
        return cls(frozenset(partitions))

    @classmethod
    def of_user(cls, partitions: Iterable[TopicIdPartition]) -> Assignment:
        """Assign these user partitions and no others, though neighbours are read with them."""
        return cls(frozenset(), frozenset(partitions))

    def require_within(self, partition_count: int) -> None:
        """Refuse metadata partitions that a topic of so many does not have, naming them."""
        beyond = sorted(number for number in self.metadata or () if number >= partition_count)
        if beyond:
            msg = (
                f"there is no metadata partition {', '.join(map(str, beyond))}: "
                f"the topic has {partition_count}, numbered from 0"
            )
            raise InvalidArgument(msg)

    def metadata_partitions(
        self, partition_count: int, before: Assignment | None = None
    ) -> frozenset[int]:
        """Return the metadata partitions to read, derived from those of *before* where possible."""
        if self.metadata is None:
            return frozenset(range(partition_count))
        counted = self._counted.get(partition_count)
        if counted is None:
            counted = self._count(partition_count, before)
            self._counted[partition_count] = counted
        return self.metadata.union(counted)

    def _count(self, partition_count: int, before: Assignment | None) -> Counter[int]:
        known = None
        if before is not None:
            known = before._counted.get(partition_count)  # noqa: SLF001 - another of this class
        come, gone, counted = self.user, _NONE, Counter[int]()
        if before is not None and known is not None:
            left = before.user - self.user
            if len(left) < len(self.user):
                come, gone, counted = self.user - before.user, left, known.copy()
        for partition in come:
            counted[place_of(partition, partition_count)] += 1
        for partition in gone:
            place = place_of(partition, partition_count)
            counted[place] -= 1
            if not counted[place]:
                del counted[place]
        return counted

    def covers(self, partition: TopicIdPartition, metadata_partition: int) -> bool:
        """Return whether *partition*, which lives on *metadata_partition*, is answered for."""
        return (
            self.metadata is None or metadata_partition in self.metadata or partition in self.user
        )

    def __str__(self) -> str:
        if not self.is_known:
            return "an assignment that is not known yet"
        if self.metadata is None:
            return "all"
        parts = [
            f"{len(found)} {kind} partitions"
            for kind, found in (("metadata", self.metadata), ("user", self.user))
            if found
        ]
        return " and ".join(parts) or "none"


def place_of(partition: TopicIdPartition, partition_count: int) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, partition_count)
