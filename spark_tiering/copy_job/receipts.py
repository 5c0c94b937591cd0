"""What became of each segment of a plan. Values only; they stand in reports and receipts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.copy_plan.reasons import SegmentAction


class CopyFate(StrEnum):
    """State of a segment when the job ends. A closed list."""

    FINISHED = "finished"
    """Its objects are verified, and the metadata says so."""
    LEFT_OPEN = "left-open"
    """It was started: a later job goes on with it, or ends it."""
    ENDED = "ended"
    """It was given up: its deletion is finished, and nothing of it is left."""
    ENDING = "ending"
    """It was given up, and its deletion is begun: a later job finishes it."""
    VANISHED = "vanished"
    """Somebody else deleted it while it was copied: its objects were taken away again."""
    NOT_BEGUN = "not-begun"
    """Its turn did not come."""

    @property
    def is_fine(self) -> bool:
        """Whether no operator has to look at it."""
        return self in (CopyFate.FINISHED, CopyFate.NOT_BEGUN)


@dataclass(frozen=True, slots=True)
class CopyReceipt:
    """
    The outcome of one segment of the plan. *why* is empty where all went well. *offset* is that of
    the event that finished it, in its metadata partition. *crc64nvme* is the sum of its log object,
    None where this job did not write it.
    """

    partition: TopicIdPartition
    uuid: Uuid
    start_offset: int
    last_offset: int
    action: SegmentAction
    fate: CopyFate
    why: str = ""
    detail: str = ""
    log_bytes: int = 0
    stored_bytes: int = 0
    requests: int = 0
    seconds: float = 0.0
    offset: int | None = None
    crc64nvme: int | None = None
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndReceipt:
    """The outcome of an open copy that was to be ended before anything was copied."""

    partition: TopicIdPartition
    uuid: Uuid
    start_offset: int
    last_offset: int
    fate: CopyFate
    why: str
    detail: str = ""
