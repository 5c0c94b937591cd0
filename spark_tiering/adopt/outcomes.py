"""Outcomes of topics, and reasons of refusals. Values only; the lists are closed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.copy_job.report import CopyFate

if TYPE_CHECKING:
    from spark_tiering.copy_job.report import CopyReceipt, EndReceipt


class AdoptionRefusal(StrEnum):
    NO_SUCH_TOPIC = "no-such-topic"
    NOT_TIERED = "not-tiered"
    """Brokers do not tier it: it can be archived."""
    COMPACTED = "compacted"
    DELETED_ON_DISABLE = "delete-on-disable"
    """Switching tiering off would empty its tier."""
    SETTING_UNKNOWN = "setting-unknown"
    """The brokers do not know how to stop copying: before Kafka 3.9 there is no way."""
    BROKER_TOO_OLD = "broker-too-old"
    """One does not say what it knows to be tiered, so that the effect could not be seen."""
    COPYING_DISABLED = "copying-disabled"
    """It is stopped already, and no journal says by which job."""
    WINDOW_OPEN = "window-open"
    """A job has left one: it is to be resumed or aborted."""
    NO_WINDOW = "no-window"
    """There is nothing to resume or to abort."""
    CHANGE_REFUSED = "change-refused"
    """The cluster would not take the change, or we have no right to make it."""
    NO_LEADER = "no-leader"
    """A partition has none: its log start offset is unknown."""
    METADATA_ABSENT = "metadata-absent"
    SOURCE_LACKS_PARTITION = "source-lacks-partition"
    """The tier has some of it, and without its leader epochs the brokers' view is unknown."""
    LONE_COPY = "lone-copy"
    """Brokers would take the start of a copy for the start of the log, and delete what is below."""
    TIER_HAS_HOLE = "tier-has-hole"
    """Brokers look at the highest tiered offset alone, and would delete what lies in the hole."""
    NOT_AT_NEXT_OFFSET = "not-at-next-offset"
    """The source begins behind where the tier ends."""
    OPEN_COPIES = "open-copies"
    """Copies of jobs are open and could not be ended."""
    NOT_QUIET = "not-quiet"
    """Its metadata did not come to rest."""
    NOT_TAKEN_UP = "not-taken-up"
    """Brokers did not go on behind the last copy: copying was stopped again."""
    TOPIC_BUSY = "topic-busy"
    """Another job works on the topic."""
    NOT_OURS = "not-ours"
    """Another job has the topic by now."""
    RETENTION_SHRINKS = "retention-shrinks"
    """The journal would lower a limit in force, and no operator has said that it is right."""
    CHANGE_UNKNOWN = "change-unknown"
    """A change of settings has an unknown outcome."""
    TROUBLE = "trouble"
    """Something could not be asked or done; the detail says what."""


class RefusedTopic(NamedTuple):
    reason: AdoptionRefusal
    detail: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason.value


class TopicStatus(StrEnum):
    """State of a topic when the job leaves it."""

    REFUSED = "refused"
    """The topic is as it was before."""
    NOTHING_TO_DO = "nothing-to-do"
    ADOPTED = "adopted"
    """The window was opened and closed; brokers go on behind the copies."""
    ABORTED = "aborted"
    """The window was closed; what was finished stays, and brokers copy the rest."""
    LEFT_OPEN = "left-open"
    """Copying and retention are off: disks grow until the window is resumed or aborted."""

    @property
    def is_closed(self) -> bool:
        return self is not TopicStatus.LEFT_OPEN


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """
    Tells the outcome of one topic. *why* is set unless all went well. *receipts* are of every
    round, in order: a segment whose copy failed stands in it once for each round that tried.
    *findings* are those that an operator has to look at.
    """

    topic: str
    standing: TopicStatus
    why: RefusedTopic | None = None
    receipts: tuple[CopyReceipt, ...] = ()
    ends: tuple[EndReceipt, ...] = ()
    rounds: int = 0
    window_ms: int = 0
    stopped: str = ""
    """Why copying ended before all was done that could be."""
    findings: tuple[str, ...] = ()

    @property
    def not_copied(self) -> tuple[CopyReceipt, ...]:
        newest = {(one.partition, one.start_offset): one for one in self.receipts}
        return tuple(one for one in newest.values() if one.fate is not CopyFate.FINISHED)

    @property
    def is_fine(self) -> bool:
        """Return whether everything planned is done, and no operator has to look at it."""
        is_done = self.standing in (
            TopicStatus.ADOPTED,
            TopicStatus.ABORTED,
            TopicStatus.NOTHING_TO_DO,
        )
        return is_done and not (self.findings or self.stopped or self.not_copied)
