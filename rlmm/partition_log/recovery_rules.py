"""
Rules of the recovery when a log is opened. Pure: `recovery` carries them out.

The recovery point is the offset below which everything was synced. Bytes above it may be torn by a
crash, and are cut at the first fault. Bytes below it cannot be: a fault there means that the medium
or another process has changed the bytes, and cutting would destroy acknowledged records.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.partition_log.scan import OffsetGap

UNINDEXED_BYTES_MAX = 8 * 1024 * 1024
"""A longer tail without an entry is the sign of an index that lost its end."""


@dataclass(frozen=True, slots=True)
class LogRecoveryResult:
    """The result of opening a partition."""

    was_clean: bool
    """Whether the mark of a clean end let the batches be trusted."""
    scanned_bytes: int = 0
    cut_bytes: int = 0
    """Bytes after the recovery point that were no whole and sound batch; ignored when read-only."""
    removed_segments: int = 0
    rebuilt_files: tuple[str, ...] = ()
    """Derived files that were missing or wrong."""

    @property
    def is_loss(self) -> bool:
        """Return whether any record was cut, even one that was never acknowledged."""
        return bool(self.cut_bytes or self.removed_segments)

    def __str__(self) -> str:
        return (
            f"{self.scanned_bytes} bytes scanned, {self.cut_bytes} cut off, "
            f"{self.removed_segments} segments removed, {len(self.rebuilt_files)} files made anew"
        )


@dataclass(frozen=True, slots=True)
class LogCut:
    """End the log here: nothing behind was ever synced."""


@dataclass(frozen=True, slots=True)
class PartitionOffline:
    """Change nothing and refuse the partition, with the reason."""

    fault: str


def recovery_point_of(noted: int | None, base_offsets: Sequence[int]) -> int:
    """Return *noted*, or else the last segment's begin: closed segments are synced."""
    if noted is not None:
        return noted
    return base_offsets[-1] if base_offsets else 0


def first_to_scan(base_offsets: Sequence[int], recovery_point: int) -> int:
    return max(0, bisect_right(base_offsets, recovery_point) - 1)


def judge_damage(damage: str, offset: int, recovery_point: int) -> LogCut | PartitionOffline:
    """Decide about the first batch that is not sound, where *offset* should be."""
    if offset >= recovery_point:
        return LogCut()
    return PartitionOffline(
        f"{damage}, at offset {offset}; synced up to {recovery_point}, so this is no torn tail"
    )


def judge_gap(
    next_offset: int, behind: int, recovery_point: int
) -> LogCut | PartitionOffline | None:
    """
    Decide about a sound closed segment that ends at *next_offset*, the next at *behind*.

    A gap below the recovery point is compaction's; above it, the end was not written out in time.
    """
    if next_offset == behind or (next_offset < behind and next_offset < recovery_point):
        return None
    if next_offset < behind:
        return LogCut()
    return PartitionOffline(f"ends at offset {next_offset}, the next segment begins at {behind}")


def judge_end(log_start: int, next_offset: int, recovery_point: int) -> PartitionOffline | None:
    """Decide about a log that ends whole, but perhaps too early."""
    if next_offset < recovery_point:
        return PartitionOffline(f"ends at offset {next_offset}, was synced up to {recovery_point}")
    if next_offset < log_start:
        return PartitionOffline(f"ends at offset {next_offset}, should begin at {log_start}")
    return None


def judge_holes(holes: Sequence[OffsetGap], recovery_point: int) -> PartitionOffline | None:
    """
    Decide about offsets that no batch has.

    Compaction leaves holes in closed segments. One that reaches behind the recovery point can be a
    damaged base offset, which no CRC covers: it can neither be cut nor be believed.
    """
    for hole in holes:
        if hole.next_offset > recovery_point:
            return PartitionOffline(
                f"offset {hole.first_offset} is in no batch, but batches follow it"
            )
    return None
