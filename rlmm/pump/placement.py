"""
The placement of user partitions in the metadata partitions that one engine reads.

An event in another metadata partition than the place of its user partition proves that a writer
counted other partitions: the topic got partitions, or that writer is wrong. A question about such a
user partition is refused. Where a quarter of all is misplaced, and one former count explains it,
partitions were added to the topic: any user partition may have events elsewhere, and every question
is refused.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

from rlmm.metadata.partitioner import counts_that_fit, partition_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.shard import Shard

_MISPLACED_MIN = 4
"""Fewer misplaced user partitions say nothing about the others: some count often fits by chance."""
_UNEXPLAINED_MIN = 16
"""So many are no chance, even where no single count explains them: the topic grew twice."""
_SHARE = 4
"""Twice as many partitions misplace half of the user partitions, any other growth more."""
_EVIDENCE_MAX = 16
"""User partitions of each metadata partition by which the former count is looked for."""

_LOGGED_MAX = 20
"""User partitions of a metadata partition that are logged; a metric counts all."""

_log = logging.getLogger(__name__)


def log_misplaced(shard: Shard, first: int) -> None:
    """Log each misplaced user partition of *shard* from number *first* on."""
    for found in islice(shard.misplaced.values(), first, _LOGGED_MAX):
        _log.error(
            "metadata partition %d, offset %d: an event of %s, whose place is another metadata "
            "partition. Questions about it are refused: the topic got partitions, or a writer "
            "counts them wrongly (docs/operating.md, number of metadata partitions)",
            shard.partition, shard.position - 1, found,
            extra={"offset": shard.position - 1},
        )  # fmt: skip


class Placement:
    def __init__(self) -> None:
        self._shards: dict[int, Shard] = {}
        self._reported: dict[int, int] = {}
        """Of each metadata partition, the number of misplaced user partitions that were logged."""
        self._partition_count = 0
        self._explained: tuple[int, list[int]] = (0, [])
        """A number of misplaced user partitions, and the counts that explain them."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when a further user partition is found to be misplaced."""

    def connect(self, partition_count: int) -> None:
        self._shards.clear()
        self._explained = (0, [])
        self._partition_count = partition_count

    def look(self, shard: Shard) -> bool:
        """Take the state of one metadata partition; return whether more of it is misplaced."""
        partition, count = shard.partition, len(shard.misplaced)
        if self._shards.get(partition) is not shard:
            self._shards[partition] = shard
            self._reported[partition] = 0
        if count == self._reported[partition]:
            return False
        log_misplaced(shard, self._reported[partition])
        self._reported[partition] = count
        return True

    def drop(self, partition: int) -> None:
        self._shards.pop(partition, None)

    def fault(self) -> str | None:
        """Return why no question can be answered; `None` while the placement is no reason."""
        misplaced = sum(len(shard.misplaced) for shard in self._shards.values())
        if misplaced < _MISPLACED_MIN:
            return None
        known = sum(shard.user_partitions for shard in self._shards.values())
        if misplaced * _SHARE < known:
            return None
        fitting = self._former_counts(misplaced)
        if not fitting and misplaced < _UNEXPLAINED_MIN:
            return None
        before = " or ".join(map(str, fitting[-3:])) or "no single number of"
        return (
            f"{misplaced} of {max(known, misplaced)} user partitions have events in another "
            f"metadata partition than their place among {self._partition_count}; they fit a topic "
            f"of {before} partitions. The partition count of the metadata topic must "
            "never change: make the topic anew with its former count and rebuild it "
            "(docs/operating.md, lost topic)"
        )

    def _former_counts(self, misplaced: int) -> list[int]:
        if self._explained[0] != misplaced:
            evidence = (
                (partition_hash(found.topic_id, found.partition), place)
                for place, shard in self._shards.items()
                for found in islice(shard.misplaced.values(), _EVIDENCE_MAX)
            )
            self._explained = misplaced, counts_that_fit(evidence, self._partition_count)
        return self._explained[1]
