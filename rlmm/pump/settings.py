"""Settings of reading and writing the log. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.errors import ConfigError


@dataclass(frozen=True, slots=True)
class PumpSettings:
    slice_events: int = 250
    """Events that the pure-Python engine applies between two turns of the event loop: about a
    millisecond of work. A slice of events that take longer ends after 2 ms. Slices of the native
    core end by time alone."""
    read_bytes: int = 1 << 20
    """Most bytes of one read; one batch comes through, however large."""
    read_timeout_ms: int = 30_000
    """Longest wait for new records in one call; then the next call asks again."""
    bounds_interval_ms: int = 2_000
    """How often the ends of all partitions are asked for: a stall is seen that much later."""
    bounds_timeout_ms: int = 10_000
    """Longest wait for the answer to that question."""
    lag_ms_max: int = 30_000
    """A partition is stale when an end seen this long ago is not reached."""
    end_age_ms_max: int = 60_000
    """A partition is stale when no broker answered its log end offset for this long: brokers
    restart within it, an outage lasts longer."""
    undecodable_share_max: float = 0.01
    """Share of undecodable records in a history above which a partition does not become ready. Ten
    are always allowed, unless they are more than half of the history. A start judges only records
    that were not served before. 0 allows none, 1 lets any history in."""
    damage_reads: int = 3
    """How often a damaged batch is read anew before it is set aside: some damage is in transit."""
    incidents_max: int = 1_000
    """Rejected and undecodable events that are remembered, of each kind, for the whole service."""
    incident_bytes_max: int = 4 << 20
    """Bytes of undecodable records that are remembered; the oldest go first."""
    retry_first_ms: int = 250
    """Pause after the first failed attempt: short, because most are a leader that has moved."""
    retry_last_ms: int = 10_000
    """Longest pause: each is twice the one before up to this one, and attempts go on for ever."""

    def __post_init__(self) -> None:
        require_whole_numbers("pump.", self)
        share = self.undecodable_share_max
        if isinstance(share, bool) or not (math.isfinite(share) and 0 <= share <= 1):
            msg = f"pump.undecodable_share_max must be a number from 0 to 1, got {share!r}"
            raise ConfigError(msg)
        if self.retry_last_ms < self.retry_first_ms:
            msg = (
                f"pump.retry_last_ms must not be below pump.retry_first_ms, "
                f"got {self.retry_last_ms} and {self.retry_first_ms}"
            )
            raise ConfigError(msg)


@dataclass(frozen=True, slots=True)
class WriteSettings:
    timeout_ms: int = 120_000
    """Longest wait for a verdict; Kafka's `remote.log.metadata.consume.wait.ms`."""
    ready_timeout_ms: int = 10_000
    """Longest wait for a partition that was assigned just now, before anything is written."""
    pending_max: int = 10_000
    """Writes that wait at a time; one more is refused at once."""

    def __post_init__(self) -> None:
        require_whole_numbers("write.", self)
