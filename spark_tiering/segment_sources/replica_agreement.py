"""
How far the log of a replica is the leader's, told by the epochs of leaders. Pure.

A replica that was away, or was copied, may hold records that a deposed leader wrote and nobody
else has: below the last stable offset, and whole by every checksum. A follower finds them by asking
the leader where the epoch of its own last record ends; so do we, and take nothing behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_tiering.segments.leader_epochs import Epochs


class ReplicaAgreement:
    """
    One replica's *history* held to its leader's, question by question.

    While `asks` is an epoch, the leader is to be asked for its end, and `hear` told the answer.
    Then `next_offset` is where both begin to differ, None where that could not be found.
    """

    def __init__(self, history: Epochs) -> None:
        self.asks: int | None = history[-1][0] if history else None
        self.next_offset: int | None = None
        self._history = history

    def hear(self, epoch: int, next_offset: int) -> None:
        """
        Take the answer: the largest epoch of the leader's that is not above the one asked for, and
        the offset behind its last record; -1 where the leader has none.
        """
        asked, self.asks = self.asks, None
        if asked is None or not 0 <= epoch <= asked or next_offset < 0:
            return
        # What was written under an epoch that the leader never had is nobody else's.
        above = [start for own, start in self._history if own > epoch]
        below = [own for own, _ in self._history if own <= epoch]
        if not below:
            self.next_offset = above[0]
        elif below[-1] != epoch:
            self.asks = below[-1]  # the leader has had one that this replica never heard of
        else:
            self.next_offset = min([next_offset, *above[:1]])
