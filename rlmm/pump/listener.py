"""
What the pump tells, and to whom it does not know: the gate, waiting readers, whoever is told.

Every call returns at once; none may raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rlmm.log.protocol import LogIdentity
    from rlmm.log.replay_progress import Fact, ReplayProgress
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.shard import Shard


class ReplayListener(Protocol):
    """Hears how reading goes."""

    def connected(self, identity: LogIdentity) -> None:
        """The log was reached; whatever was known of another topic is void."""

    def disconnected(self, detail: str) -> None:
        """The log has not been reached yet, or its topic is gone; *detail* says why."""

    def assigned(self, assignment: Assignment) -> None:
        """From now on this is what is answered for."""

    def begun(self, partition: int, progress: ReplayProgress) -> None:
        """Metadata partition *partition* is read from now on."""

    def held(self, partition: int, shard: Shard) -> None:
        """The state of *partition* is in *shard*, in place of any other."""

    def met(self, partition: int, fact: Fact, progress: ReplayProgress) -> None:
        """A judgement on *partition*; mostly the same as the one before."""

    def moved(self, partition: int, position: int) -> None:
        """Everything below *position* is applied."""

    def ended(self, partition: int) -> None:
        """Metadata partition *partition* is not read any more."""
