"""Shard images: the parts of a shard at the moment of `freeze`, without any later event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlmm.log.replay_progress import ReplayHistory


@dataclass(frozen=True, slots=True)
class ShardImages:
    """Holds one shard at one moment; any thread may make its parts into bytes later."""

    partition: int
    position: int
    history: ReplayHistory
    parts: Sequence[Callable[[], bytes]]
    """One for each user partition, by rising key; each returns a partition image."""
    is_valid: Callable[[], bool] = lambda: True
    """Whether the log still holds what the state was made of; asked from the writing thread."""


class SnapshotSource(Protocol):
    def positions(self) -> Mapping[int, int]:
        """Metadata partition to position, of every shard that may be saved now."""

    async def freeze(self, partition: int) -> ShardImages | None:
        """Return the shard as it is now, if it is still there, without blocking the event loop."""
