"""Tasks and results of units of work: plain values that travel, without credentials. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.throttle import UNBOUND
from spark_tiering.layout.chunk_index import CHUNK_BYTES, CHUNK_BYTES_MAX
from spark_tiering.layout.frames import LEVEL
from spark_tiering.layout.object_names import main_key, partition_folder
from spark_tiering.segments.segment_inspection import USUAL_RULES

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import SegmentDetails
    from spark_tiering.executor.throttle import PaceLimits
    from spark_tiering.segments.partition_files import PartitionFiles
    from spark_tiering.segments.segment_inspection import InspectionRules
    from spark_tiering.segments.segment_listing import ListedSegment
    from spark_tiering.stores.opening import StoreSettings

CHUNK_BYTES_MIN = 4 * 1024
"""Of smaller ones the longest log would have more than a manifest can list."""
LEVEL_MAX = 22
DETAIL_CHARACTERS_MAX = 400


class UnitOutcome(StrEnum):
    """Names the outcome of one unit. The list is closed."""

    COPIED = "copied"
    """All three objects are there, verified, and this unit wrote at least one of them."""
    FOUND = "found"
    """All three were there before, and are what they should be."""
    SOURCE_GONE = "source-gone"
    """The source does not have the segment any more."""
    SOURCE_CHANGED = "source-changed"
    """The source has another segment there than the one that was planned."""
    BLOCKED = "blocked"
    """The segment was read and cannot be copied: something of it is damaged, or not known."""
    CONFLICT = "conflict"
    """What lies in the store under its names is not what should be there; it was left as it is."""
    REFUSED = "refused"
    """The store does not take an object: no room, too large, or damaged again and again."""
    UNKNOWN = "unknown"
    """It is unknown whether an object was written: a repeat looks first."""
    STORE_FAILED = "store-failed"
    """The store as a whole: away, absent, not permitted, without credentials."""
    SOURCE_FAILED = "source-failed"
    """The source could not be read, or one of its files changed while it was read."""
    STOPPED = "stopped"
    """The job was stopped before this unit began."""
    TIMED_OUT = "timed-out"
    """It took longer than it may."""

    @property
    def is_done(self) -> bool:
        return self in (UnitOutcome.COPIED, UnitOutcome.FOUND)

    @property
    def is_retriable(self) -> bool:
        """Return whether a repeat may help; if not, the segment is copied under a new id."""
        return self in _RETRIABLE


_RETRIABLE = frozenset(
    (
        UnitOutcome.UNKNOWN,
        UnitOutcome.STORE_FAILED,
        UnitOutcome.SOURCE_FAILED,
        UnitOutcome.STOPPED,
        UnitOutcome.TIMED_OUT,
    )
)


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """Tells how the object of a log is made. A resumed copy takes the same options."""

    is_compressed: bool = False
    chunk_bytes: int = CHUNK_BYTES
    level: int = LEVEL

    def __post_init__(self) -> None:
        if not CHUNK_BYTES_MIN <= self.chunk_bytes <= CHUNK_BYTES_MAX:
            limits = f"{CHUNK_BYTES_MIN} to {CHUNK_BYTES_MAX} are possible"
            msg = f"chunks of {self.chunk_bytes} bytes, {limits}"
            raise InvalidArgument(msg)
        if not 1 <= self.level <= LEVEL_MAX:
            msg = f"level {self.level} of compression, 1 to {LEVEL_MAX} are possible"
            raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True)
class CopyTask:
    """
    Copies one segment whole, or not at all, unless there is an object *pause_key*. *deadline_s*
    counts from when the unit begins; *log_start* is None where it is unknown.
    """

    segment: SegmentMetadata
    files: PartitionFiles
    log_start: int | None
    store: StoreSettings
    prefix: str
    job_id: str
    options: CopyOptions
    pace: PaceLimits
    deadline_s: float
    action: SegmentAction = SegmentAction.COPY
    rules: InspectionRules = USUAL_RULES
    pause_key: str = ""

    def __post_init__(self) -> None:
        _require_deadline(self.deadline_s)

    @property
    def unit_id(self) -> str:
        return main_key(self.segment.id, self.segment.start_offset)


@dataclass(frozen=True, slots=True)
class CopyResult:
    """The outcome of one segment; bytes are 0 where it is not done, requests without repeats."""

    unit_id: str
    outcome: UnitOutcome
    detail: str
    log_bytes: int = 0
    stored_bytes: int = 0
    requests: int = 0
    seconds: float = 0.0
    attempt_id: str = ""
    log_crc64nvme: int | None = None
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InspectTask:
    """Reads one segment, to be planned; without *segments*, those that the source lists then."""

    partition: TopicIdPartition
    files: PartitionFiles
    listed: ListedSegment
    segments: tuple[ListedSegment, ...] = ()
    log_start: int | None = None
    rules: InspectionRules = USUAL_RULES
    job_id: str = ""
    pace: PaceLimits = UNBOUND
    deadline_s: float = 3600.0

    def __post_init__(self) -> None:
        _require_deadline(self.deadline_s)

    @property
    def unit_id(self) -> str:
        return f"{partition_folder(self.partition)}{self.listed.base_offset:020d}"


@dataclass(frozen=True, slots=True)
class InspectResult:
    """Holds the details from reading a segment; without *details*, *why* says what prevented it."""

    unit_id: str
    details: SegmentDetails | None
    why: str = ""


def one_line(detail: str) -> str:
    plain = "".join(one if one.isprintable() else "?" for one in detail)
    return plain[:DETAIL_CHARACTERS_MAX]


def _require_deadline(deadline_s: float) -> None:
    if not deadline_s > 0:
        msg = f"a unit needs time, not {deadline_s} s"
        raise InvalidArgument(msg)
