"""Settings of a log, and the reasons of their defaults. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rlmm.errors import ConfigError

SEGMENT_BYTES_MAX = 2**31 - 1
"""Positions in a segment are 32-bit numbers in its index."""


class SyncPolicy(StrEnum):
    """Tells when written bytes are forced to the medium, and what an acknowledgement means."""

    EACH_GROUP = "each-group"
    """An append is acknowledged when it is synced; appends that wait together share one sync."""
    INTERVAL = "interval"
    """Acknowledged when written; synced after at most the interval. A power loss can cost it."""
    NEVER = "never"
    """Acknowledged when written; synced only when a segment is closed, and at the end."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The settings of all partitions of a registry; names and defaults are Kafka's where it has."""

    sync: SyncPolicy = SyncPolicy.EACH_GROUP
    """
    Durability of an acknowledged event: with `each-group` it survives a power loss, with `interval`
    and `never` the last ones may not.
    """
    sync_interval_ms: int = 20
    """Of `interval`; at this length no cost in throughput was seen."""
    segment_bytes: int = 1 << 30
    """Size at which a segment is closed and the next one begun; Kafka's `segment.bytes`."""
    segment_ms: int = 7 * 24 * 3600 * 1000
    """Age at which a segment is closed even when it is small, so that retention can reach it."""
    index_interval_bytes: int = 4096
    """Bytes between two entries of an index: what a read steps over at most; Kafka's."""
    batch_bytes_max: int = 1_048_588
    """Largest batch that an append takes: `max.message.bytes`."""
    retention_bytes: int | None = None
    """Size of a partition above which whole segments are deleted from its front. Not set: never."""
    retention_ms: int | None = None
    """Age of its newest record at which a segment is deleted. Not set: never."""
    checkpoint_interval_ms: int = 5_000
    """Longest time that the recovery points on disk lag behind; bounds what a recovery scans."""
    tick_interval_ms: int = 60_000
    """How often it is looked for segments that are old enough to be closed or deleted."""
    open_files_max: int | None = None
    """Descriptors that are kept open. Not set: half of what the process may open, and with several
    embedded logs in one process an equal share of that."""

    def __post_init__(self) -> None:
        smallest = {
            "sync_interval_ms": 1,
            "segment_bytes": 1,
            "segment_ms": 1,
            "index_interval_bytes": 1,
            "batch_bytes_max": 1,
            "retention_bytes": 0,
            "retention_ms": 0,
            "checkpoint_interval_ms": 1,
            "tick_interval_ms": 1,
            "open_files_max": 1,
        }
        for name, low in smallest.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise ConfigError(f"{name} must be at least {low}, got {value}")
        if self.segment_bytes > SEGMENT_BYTES_MAX:
            msg = f"segment_bytes must be at most {SEGMENT_BYTES_MAX}, got {self.segment_bytes}"
            raise ConfigError(msg)
