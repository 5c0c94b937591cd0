"""Listeners of the pump: the gate and the offset waits. Calls return at once, none may raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.errors import RlmmError
    from rlmm.log.replay_progress import Fact, ReplayProgress
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.shard import Shard


class ReplayListener(Protocol):
    """Takes in how reading goes; the gate."""

    def connect(self, partition_count: int) -> None:
        """The pump reached the topic; knowledge of another topic is void."""

    def disconnect(self, detail: str) -> None:
        """The pump has not reached the topic, or the topic is gone; *detail* gives the reason."""

    def assign(self, assignment: Assignment) -> None:
        """The service answers for *assignment* from now on."""

    def begin_partition(
        self, partition: int, progress: ReplayProgress, is_current: Callable[[], bool]
    ) -> None:
        """The pump reads *partition* from now on; *is_current* judges its state by the clock."""

    def set_shard(self, partition: int, shard: Shard) -> None:
        """
        *shard* holds the state of *partition*, in place of any other. The follower says so again
        when a user partition in it is found to be misplaced.
        """

    def take_fact(self, partition: int, fact: Fact, progress: ReplayProgress) -> object:
        """The pump judged *partition*; mostly *fact* is the same as before."""

    def hold(self, partition: int, until_s: float) -> None:
        """
        The last judgement that *partition* is current holds until *until_s* of the event loop's
        clock; from then on *is_current* judges anew.
        """

    def end_partition(self, partition: int) -> None:
        """The pump does not read metadata partition *partition* any more."""


class PositionListener(Protocol):
    def advance(self, partition: int, position: int) -> None:
        """The follower applied everything below *position*."""

    def fail(self, partition: int, error: type[RlmmError], message: str) -> None:
        """End the waits for *partition*: its position is never reported again."""
