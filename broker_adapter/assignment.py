"""
The assignment of this broker: the partitions that it leads and follows. Pure.

A service that was started anew does not know it. Nothing is sent before the first assignment, since
an empty assignment is one, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_adapter import calls
from rlmm.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_adapter.calls import Call
    from rlmm.errors import NotAssigned
    from rlmm.metadata.ids import TopicIdPartition


class OwnAssignment:
    def __init__(self) -> None:
        self._leads: dict[TopicIdPartition, bool] = {}
        self._gone: dict[TopicIdPartition, None] = {}
        """Removed partitions that the service may still have."""
        self.is_known = False
        self.room = calls.MessageRoom()
        """Of one message to the service."""

    def require_accepted(self, error: NotAssigned, call: Call[Any], *, is_accepted: bool) -> None:
        """Raise `NotReady` for *error* while the service may not know this broker's partitions."""
        if is_accepted or not any(one in self._leads for one in call.partitions):
            return
        msg = f"{error}; that it was given to this broker is still on its way"
        raise NotReady(
            msg,
            reason="assignment-unknown",
            user_partition=str(call.partitions[0]),
            metadata_partition=error.metadata_partition,
            retry_after_ms=50,
        ) from error

    def add(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> list[Call[int]]:
        leaders, followers = list(leaders), list(followers)
        messages = calls.assign(leaders, followers, self.room)
        self._leads.update(dict.fromkeys(followers, False))
        self._leads.update(dict.fromkeys(leaders, True))
        for partition in (*leaders, *followers):
            self._gone.pop(partition, None)
        self.is_known = True
        return messages

    def remove(self, partitions: Iterable[TopicIdPartition]) -> list[Call[int]]:
        gone = list(partitions)
        messages = calls.stop_partitions(gone, self.room)
        for partition in gone:
            if self._leads.pop(partition, None) is not None:
                self._gone[partition] = None
        return messages

    def whole(self) -> list[Call[int]]:
        """
        Return messages with all partitions, or none before the first assignment.

        Where one message has no room, several add partitions, so that none is missing for a moment,
        and others remove the rest.
        """
        if not self.is_known:
            return []
        message = calls.assign_whole(self._leads, self.room)
        if message is not None:
            return [message]
        led = [partition for partition, leads in self._leads.items() if leads]
        followed = [partition for partition, leads in self._leads.items() if not leads]
        messages = calls.assign(led, followed, self.room)
        if self._gone:
            messages += calls.stop_partitions(self._gone, self.room)
        return messages

    def accepted(self) -> None:
        self._gone.clear()
