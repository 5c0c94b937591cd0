"""
What the pump asks of whoever keeps states from one run to the next, without knowing who that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.metadata.shard import Shard


class RestoredState(Protocol):
    """A state that was kept, and what it was made of."""

    @property
    def shard(self) -> Shard: ...

    @property
    def history(self) -> ReplayHistory: ...


class StateRestore(Protocol):
    """Keeps states of metadata partitions; bad ones are its matter."""

    async def restore(
        self, partition: int, log_start: int, next_offset: int
    ) -> RestoredState | None:
        """A state at a position that is not beyond *next_offset*; None where there is none."""

    async def set_aside_beyond(self, partition: int, next_offset: int) -> None:
        """The log was cut: no state at a position beyond *next_offset* is ever given back."""
