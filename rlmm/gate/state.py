"""
The gate's state machine, one for each metadata partition. Pure: facts in, a state out.

Readiness is a state and not a latch: what was open closes again when it falls behind. A fact that
is not listed for a state changes nothing there.

    REPLAYING --CaughtUp--> OPEN --FellBehind--> STALE --CaughtUp--> OPEN
    any --StateLost--> CLOSED, any --PartitionReassigned--> REPLAYING

Every listed fact but `CaughtUp` replaces the reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.log.replay_progress import (
    CaughtUp,
    FellBehind,
    NotReadyReason,
    PartitionReassigned,
    StateLost,
)

if TYPE_CHECKING:
    from rlmm.log.replay_progress import Fact


class GateState(StrEnum):
    REPLAYING = "replaying"
    """Its history is being read; it has not been open since the last beginning."""
    OPEN = "open"
    STALE = "stale"
    """It was open and is, or may be, older than is allowed."""
    CLOSED = "closed"
    """It must not be used, and opens only after a new beginning."""


TRANSITIONS: dict[GateState, dict[type[Fact], GateState]] = {
    GateState.REPLAYING: {
        CaughtUp: GateState.OPEN,
        FellBehind: GateState.REPLAYING,
        StateLost: GateState.CLOSED,
        PartitionReassigned: GateState.REPLAYING,
    },
    GateState.OPEN: {
        FellBehind: GateState.STALE,
        StateLost: GateState.CLOSED,
        PartitionReassigned: GateState.REPLAYING,
    },
    GateState.STALE: {
        CaughtUp: GateState.OPEN,
        FellBehind: GateState.STALE,
        StateLost: GateState.CLOSED,
        PartitionReassigned: GateState.REPLAYING,
    },
    GateState.CLOSED: {StateLost: GateState.CLOSED, PartitionReassigned: GateState.REPLAYING},
}


class ShardGate:
    __slots__ = ("detail", "openings", "state", "why")

    def __init__(self) -> None:
        self.state = GateState.REPLAYING
        self.why: NotReadyReason | None = NotReadyReason.LOADING
        self.detail = ""
        self.openings = 0
        """How often it opened: once for each beginning, and once for each recovery."""

    def meet(self, fact: Fact) -> bool:
        """Take *fact* into account; whether the state is another one now."""
        following = TRANSITIONS[self.state].get(type(fact))
        if following is None:
            return False
        changed = following is not self.state
        self.state = following
        if isinstance(fact, CaughtUp):
            self.why, self.detail = None, ""
            self.openings += changed
        else:
            self.why, self.detail = fact.why, fact.detail
        return changed
