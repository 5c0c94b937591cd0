"""
What several hold together, counted. Pure.

Every change costs what it changes, and one copy of a table; comparing what each holds with what all
others do would cost a second with some hundred brokers, of which several have the same. Invariant:
what anybody holds is among what is held, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition

    Partitions = frozenset[TopicIdPartition]


class AssignmentCounts:
    """User partitions, each with the number of brokers that have it."""

    def __init__(self) -> None:
        self._holders: dict[TopicIdPartition, int] = {}

    def change(self, before: Partitions, after: Partitions) -> None:
        """A broker has *after*, and no longer *before*."""
        holders = self._holders
        for partition in after - before:
            holders[partition] = holders.get(partition, 0) + 1
        for partition in before - after:
            left = holders[partition] - 1
            if left:
                holders[partition] = left
            else:
                del holders[partition]

    @property
    def all(self) -> Partitions:
        return frozenset(self._holders)
