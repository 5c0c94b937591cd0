"""
Progress of the replay of a metadata partition: values that pump, gate and snapshots exchange.

Offsets are exclusive: `position` is the next to apply, `target` the high watermark when reading
began, `high_watermark` the latest known one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlmm.records.header import BatchMark


class NotReadyReason(StrEnum):
    """Tells why a metadata partition is not answered from."""

    CONNECTING = "connecting"
    """The log has not been reached yet."""
    ASSIGNMENT_UNKNOWN = "assignment-unknown"
    """The assignment is not known yet."""
    LOADING = "loading"
    """Its bounds are not known yet, or a snapshot is being read."""
    REPLAYING = "replaying"
    """The history up to the target is being applied."""
    BEHIND = "behind"
    """An end of the log that was seen some time ago is still not reached."""
    END_UNKNOWN = "end-unknown"
    """The high watermark has been unknown for some time."""
    NOT_UNDERSTOOD = "not-understood"
    """Too much of the history could not be decoded; an operator decides."""
    NOT_PERMITTED = "not-permitted"
    """The log refuses us; an operator must act."""
    DAMAGED = "damaged"
    """The log's stored bytes are damaged."""
    MISPLACED = "misplaced"
    """Events lie in other metadata partitions than their place; an operator must act."""
    OVER_BUDGET = "over-budget"
    """The memory budget is used up, so nothing more is applied."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything up to the target, and every end seen long enough ago, is applied."""


@dataclass(frozen=True, slots=True)
class FellBehind:
    """The state is, or may be, older than is allowed; reading goes on."""

    why: NotReadyReason
    detail: str


@dataclass(frozen=True, slots=True)
class StateLost:
    """The state must not be used, and waiting alone does not help."""

    why: NotReadyReason
    detail: str


@dataclass(frozen=True, slots=True)
class PartitionReassigned:
    """Reading begins anew, from a snapshot or from the log's start, towards a new target."""

    why: NotReadyReason = NotReadyReason.LOADING
    detail: str = ""


Fact = CaughtUp | FellBehind | StateLost | PartitionReassigned


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """Tells how far one metadata partition is replayed."""

    partition: int
    position: int
    target: int | None
    log_start_offset: int | None
    high_watermark: int | None
    end_age_s: float | None
    """How long ago the log was asked for `high_watermark`."""

    @property
    def lag_records(self) -> int | None:
        return None if self.high_watermark is None else max(0, self.high_watermark - self.position)


@dataclass(slots=True)
class ReplayHistory:
    """The history of a shard's state since its first record; snapshots keep its counts."""

    first_offset: int = 0
    """The log start offset of a full replay; above 0, earlier events are unknown."""
    records: int = 0
    """Records that were understood, and those that should have been."""
    undecodable: int = 0
    """Of those, the ones that were not; tombstones and their like are not among them."""
    counted_apart: int = 0
    """Tombstones and records of a known later version."""
    without_base: int = 0
    """Updates of a segment that was not there: its first record was trimmed, or never written."""
    trimmed_before: int = 0
    """Retention passed us by: events up to this offset were never seen by this state."""
    last_batch: BatchMark | None = None
    """The last batch that was applied: a log that holds it holds everything before it, too."""
    accepted: int = 0
    """Of the undecodable records, those that a start let in, or that came while it was open."""

    @property
    def is_complete(self) -> bool:
        return self.first_offset == 0 and self.trimmed_before == 0

    def copy(self) -> ReplayHistory:
        return replace(self)
