"""Statistics of reading: values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.log.replay_progress import ReplayHistory, ReplayProgress
    from rlmm.metadata.report import ShardStatistics, Tally


@dataclass(frozen=True, slots=True)
class FollowerStatistics:
    progress: ReplayProgress
    history: ReplayHistory
    is_caught_up: bool
    beginnings: int
    """Once, unless something went wrong."""
    failures: int
    last_failure: str
    heard_s: float | None
    """When the log answered last, by the event loop's clock."""
    shard: ShardStatistics | None
    """`None` before there is a state. A state that is read anew counts anew."""
    tally: Tally
    """All offsets that the follower passed, also for states that were given up: it only grows."""
    listening: int
    """Writers that append, or wait for their verdict."""


@dataclass(frozen=True, slots=True)
class PumpStatistics:
    is_connected: bool
    connect_attempts: int
    last_trouble: str
    generation: int
    recreations: int
    judged_s: float | None
    """When the pump judged every partition last, by the event loop's clock: its heartbeat."""
    tally: Tally
    """As `FollowerStatistics.tally`, of every partition ever read."""
    followers: Mapping[int, FollowerStatistics]
