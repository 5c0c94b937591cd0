"""
What the snapshot writer asks of whoever holds the shards.

Values and a protocol only. The moment that counts is that of `freeze`: what is applied afterwards
is not in the parts, however late they are made into bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlmm.log.replay_progress import ReplayHistory


@dataclass(frozen=True, slots=True)
class ShardImages:
    """One shard as it was at one moment; its parts can be made into bytes later, in any thread."""

    partition: int
    """The metadata partition."""
    position: int
    history: ReplayHistory
    parts: Sequence[Callable[[], bytes]]
    """One for each user partition, by rising key; it returns its partition image."""


class SnapshotSource(Protocol):
    """The shards that can be saved."""

    def positions(self) -> Mapping[int, int]:
        """Metadata partition to position, of every shard that may be saved now."""

    async def freeze(self, partition: int) -> ShardImages | None:
        """
        The shard as it is now, or `None` when it is not there any more.

        Never holds the event loop for long.
        """
