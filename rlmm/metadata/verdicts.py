"""Verdicts: the outcome of one event as a value from a closed set, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlmm.metadata.segment import PartitionDeleteState, SegmentState


class Remark(StrEnum):
    DISPLACED_ANOTHER_SEGMENT = "displaced-another-segment"
    """A finished copy took the place of another finished segment in at least one epoch."""
    FINISHED_BY_ANOTHER_BROKER = "finished-by-another-broker"
    """The copy was started by one broker and finished by another."""
    PARTITION_BEING_DELETED = "partition-being-deleted"
    """A segment was added while its partition is marked for deletion."""
    PARTITION_WAS_DELETED = "partition-was-deleted"
    """A segment was added, or a delete event came, after the partition's deletion was finished."""
    MISPLACED = "misplaced"
    """The first event of a user partition whose place is another metadata partition."""
    PARTITION_DELETE_OUT_OF_ORDER = "partition-delete-out-of-order"
    """A partition-delete state that does not follow from the one before; Kafka stores it."""


class RejectReason(StrEnum):
    UNKNOWN_SEGMENT = "unknown-segment"
    """An update of a segment never started, already deleted, or with its first record trimmed."""
    ILLEGAL_TRANSITION = "illegal-transition"
    """The requested state does not follow from the current one."""
    ADD_NOT_STARTED = "add-not-started"
    """A segment record whose state is not COPY_SEGMENT_STARTED."""
    UPDATE_TO_STARTED = "update-to-started"
    """An update to COPY_SEGMENT_STARTED of a started copy; it would stop a broker's consumer."""
    SNAPSHOT_RECORD = "snapshot-record"
    """A segment snapshot record: it names no partition, so no state can be changed by it."""
    PARTITION_BEING_DELETED = "partition-being-deleted"
    """Writers only: no segment is added to a partition that is marked for deletion."""
    PARTITION_WAS_DELETED = "partition-was-deleted"
    """Writers only: nothing is written for a partition whose deletion is finished."""
    NOT_THE_COPIER = "not-the-copier"
    """Writers only: a copy is finished by the broker that started it, and by no other."""
    COPIED_BY_ANOTHER = "copied-by-another"
    """Writers only: another broker has copied all of it meanwhile, and its segment would go."""


class UndecodableReason(StrEnum):
    """Tells why a record value could not be understood. The list is closed."""

    TOMBSTONE = "tombstone"
    """A null value, as compaction leaves it. Counted apart: history was removed, not misread."""
    RECORD_VERSION_1 = "record-version-1"
    """A record of KIP-1266's proposed version 1. Counted apart: known, but in no release."""
    EMPTY_VALUE = "empty-value"
    BAD_VARINT = "bad-varint"
    UNKNOWN_FRAME_VERSION = "unknown-frame-version"
    UNKNOWN_API_KEY = "unknown-api-key"
    UNKNOWN_RECORD_VERSION = "unknown-record-version"
    TRUNCATED = "truncated"
    """A field, a length or a count reaches past the end of the value."""
    TRAILING_BYTES = "trailing-bytes"
    NULL_NAME = "null-name"
    NAME_TOO_LONG = "name-too-long"
    NULL_EPOCHS = "null-epochs"
    NO_EPOCHS = "no-epochs"
    NEGATIVE_START_OFFSET = "negative-start-offset"
    END_BEFORE_START = "end-before-start"
    UNKNOWN_STATE = "unknown-state"
    OVERSIZED = "oversized"
    """Larger than any record, or more tagged fields or leader epochs, than this service holds."""
    DAMAGED_BATCH = "damaged-batch"
    """The record lies in a batch, or behind a record, whose bytes cannot be trusted."""


COUNTED_APART = frozenset({UndecodableReason.TOMBSTONE, UndecodableReason.RECORD_VERSION_1})
"""Reasons that never close a shard by themselves."""


@dataclass(frozen=True, slots=True)
class Applied:
    remark: Remark | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The state already equals the event's target. A repeated finish still counts as the newest."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The event was refused and nothing changed. *current* is `None` where nothing was there."""

    reason: RejectReason
    current: SegmentState | PartitionDeleteState | None
    requested: SegmentState | PartitionDeleteState | None

    def __str__(self) -> str:
        def name(state: SegmentState | PartitionDeleteState | None) -> str:
            return state.name if state is not None else "absent"

        return f"{self.reason}: {name(self.current)} -> {name(self.requested)}"


@dataclass(frozen=True, slots=True)
class Undecodable:
    """The value is not a record that this version understands; *detail* says where it broke."""

    reason: UndecodableReason
    detail: str = ""


Verdict = Applied | Duplicate | Rejected | Undecodable

APPLIED = Applied()
DUPLICATE = Duplicate()
