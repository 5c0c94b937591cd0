"""How reading goes, in figures. Values only: whoever counts has them made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.log.replay_progress import ReplayHistory, ReplayProgress
    from rlmm.metadata.report import ShardStatistics, Tally


@dataclass(frozen=True, slots=True)
class FollowerStatistics:
    """How the reading of one metadata partition goes."""

    progress: ReplayProgress
    history: ReplayHistory
    is_caught_up: bool
    beginnings: int
    """How often a state was begun or resumed: once, unless something went wrong."""
    failures: int
    last_failure: str
    heard_s: float | None
    """When the log answered last, by the event loop's clock."""
    shard: ShardStatistics | None
    """The state, and what it has counted since it was made or restored; `None` before there is one.
    A state that is read anew counts anew: its counts are true of what it holds."""
    tally: Tally
    """All offsets that were passed here, those of states that were given up included: it only
    grows, and what is read twice is in it twice."""
    listening: int
    """Writers that append, or wait for their verdict."""


@dataclass(frozen=True, slots=True)
class PumpStatistics:
    """How reading goes."""

    is_connected: bool
    connect_attempts: int
    last_trouble: str
    generation: int
    """Of the last `reconcile`."""
    recreations: int
    """How often the topic was another one than before."""
    judged_s: float | None
    """When every partition was judged last, by the event loop's clock: the pump's heartbeat."""
    tally: Tally
    """As `FollowerStatistics.tally`, of every partition that was ever read: it only grows."""
    followers: Mapping[int, FollowerStatistics]
    """By metadata partition, of those that are assigned."""
