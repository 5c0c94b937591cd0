"""State restore: what the pump asks of the keeper of states, which may wait for its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rlmm.log.protocol import LogIdentity
    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.metadata.shard import Shard


class RestoredState(Protocol):
    @property
    def shard(self) -> Shard: ...

    @property
    def history(self) -> ReplayHistory: ...


class StateRestore(Protocol):
    """Keeps states of metadata partitions from one run to the next; deals with bad ones itself."""

    async def confirm(self, identity: LogIdentity) -> None:
        """Raise `ConfigError` where states of the same topic have another partition count."""

    def connect(self, identity: LogIdentity) -> None:
        """The pump reached the log; states are those of *identity* from now on."""

    async def restore(self, partition: int, next_offset: int) -> RestoredState | None:
        """Return the newest state not beyond *next_offset*, if any; void those beyond it."""
