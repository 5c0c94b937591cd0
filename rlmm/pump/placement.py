"""
The placement of user partitions in the metadata partitions that one engine reads.

An event in another metadata partition than the place of its user partition proves that a writer
counted other partitions: the topic got partitions, or that writer is wrong. A question about such a
user partition is refused. Where a quarter of all is misplaced, the topic itself has another count
than its writers, any user partition may have events elsewhere, and every question is refused.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

from rlmm.metadata.partitioner import counts_that_fit, partition_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.shard import Shard

_MISPLACED_MIN = 2
"""One misplaced user partition says nothing about the others."""
_SHARE = 4
"""Twice as many partitions misplace half of the user partitions, any other growth more."""
_EVIDENCE_MAX = 16
"""User partitions of each metadata partition by which the former count is looked for."""

_LOGGED_MAX = 20
"""User partitions of a metadata partition that are logged; a metric counts all."""

_log = logging.getLogger("rlmm.pump.follower")


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
        self._explained = (0, "")
        """A number of misplaced user partitions, and the count that explains them."""
        self.on_change: Callable[[], None] = lambda: None
        """Judges every metadata partition; followers call it where more is misplaced."""

    def connect(self, partition_count: int) -> None:
        self._shards.clear()
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
        return (
            f"{misplaced} of {max(known, misplaced)} user partitions have events in another "
            f"metadata partition than their place among {self._partition_count}; "
            f"{self._former_count(misplaced)}. The partition count of the metadata topic must "
            "never change: make the topic anew with its former count and rebuild it "
            "(docs/operating.md, lost topic)"
        )

    def _former_count(self, misplaced: int) -> str:
        if self._explained[0] != misplaced:
            self._explained = misplaced, self._looked_for()
        return self._explained[1]

    def _looked_for(self) -> str:
        evidence = (
            (partition_hash(found.topic_id, found.partition), place)
            for place, shard in self._shards.items()
            for found in islice(shard.misplaced.values(), _EVIDENCE_MAX)
        )
        fitting = counts_that_fit(evidence, self._partition_count)
        if not fitting:
            return "no single count explains them"
        return f"they fit a topic of {' or '.join(map(str, fitting[-3:]))} partitions"
