"""The reasons in a plan. Documents keep the values of these closed lists: none changes meaning."""

from __future__ import annotations

from enum import StrEnum


class CopyMode(StrEnum):
    ARCHIVE = "archive"
    """Topics that no broker tiers; what was deleted before it was copied is a named gap."""
    ADOPT = "adopt"
    """A topic that brokers tier, whose own copying stands still: they go on where copies end."""


class SegmentAction(StrEnum):
    COPY = "copy"
    RESUME = "resume"
    """The copy was started: the job writes its missing objects under the same id."""
    COMPLETE = "complete"
    """All objects are there and verified: only the finishing event is missing."""


class NotCopiedReason(StrEnum):
    COVERED = "covered"
    """Finished copies hold every offset of it, each under its own leader epoch."""
    TOPIC_NOT_WANTED = "topic-not-wanted"
    METADATA_ABSENT = "metadata-absent"
    """The partition's metadata could not be read: nothing is written meanwhile."""
    PARTITION_BEING_DELETED = "partition-being-deleted"
    BROKER_COPIES = "broker-copies"
    """An archive is not made beside brokers that tier the topic: it has to be adopted."""
    COMPACTED = "compacted"
    """What a cleaner rewrites is copied where that is asked for, and brokers never tier it."""
    EMPTY = "empty"
    """Its cleaner has left no record in it: there is nothing to copy, and nothing is missing."""
    NOT_TIERED = "not-tiered"
    """No broker would adopt what is copied: the topic is not tiered."""
    SOURCE_OUTDATED = "source-outdated"
    """The metadata knows a newer leader epoch than the source: it is read from a deposed leader."""
    LOG_START_UNKNOWN = "log-start-unknown"
    TIER_HAS_HOLE = "tier-has-hole"
    """Brokers look at the highest tiered offset alone, and would delete what lies in the hole."""
    NOT_AT_NEXT_OFFSET = "not-at-next-offset"
    """Adopted copies begin exactly where the tier ends: before is twice, behind leaves a hole."""
    ACTIVE = "active"
    STABILITY_UNKNOWN = "last-stable-offset-unknown"
    UNSTABLE = "above-last-stable-offset"
    EPOCH_UNKNOWN = "leader-epoch-unknown"
    EPOCHS_DISAGREE = "leader-epochs-disagree"
    TOO_LARGE = "too-large"
    """Metadata says the size of a log in 31 bits."""
    NOT_INSPECTED = "not-inspected"
    """It may be copied once it was read: the planner inspects it, and plans again."""
    BLOCKED = "blocked"
    OVERLAP_WOULD_HIDE = "overlap-would-hide"
    """Beside copies that are there, brokers would not find some offsets any more."""
    OPEN_COPY_UNDECIDED = "open-copy-undecided"
    TOO_YOUNG = "too-young"
    KEPT_LOCAL = "kept-local"
    BEHIND = "behind"
    """Something below it is left out, and no copy leaves a gap."""
    BUDGET_BYTES = "budget-bytes"
    BUDGET_OBJECTS = "budget-objects"
    BUDGET_REQUESTS = "budget-requests"


class EndReason(StrEnum):
    """Tells why an open copy is ended: deletion started, its objects removed, deletion finished."""

    DELETION_BEGUN = "deletion-begun"
    COVERED = "covered"
    """The range is finished by another copy, whose place this one must not take."""
    DUPLICATE = "duplicate"
    OVERLAP_WOULD_HIDE = "overlap-would-hide"
    OTHER_LINEAGE = "other-lineage"
    """What was copied is not what the partition's leaders kept."""
    OBJECTS_DAMAGED = "objects-damaged"
    """There is a wrong object under one of its names, and objects are never replaced."""
    OTHER_BROKER_ID = "other-broker-id"
    """Only the broker id that started a copy may finish it."""
    SOURCE_DIFFERS = "source-differs"
    BEHIND = "behind"
    """A copy below it is missing: brokers would take the hole for copied."""
    WINDOW_CLOSED = "window-closed"
    """Brokers copy again, and no job goes on with it."""


class LeftOpen(StrEnum):
    EVIDENCE_MISSING = "evidence-missing"
    NOT_OURS = "not-ours"
    WRITER_ALIVE = "writer-alive"
    OBJECTS_UNKNOWN = "objects-unknown"
    STABILITY_UNKNOWN = "last-stable-offset-unknown"
    UNSTABLE = "above-last-stable-offset"
    NOT_INSPECTED = "not-inspected"
    BLOCKED = "blocked"
    """Its segment at the source cannot be read any more, and some of it may be in the store."""
    LAST_COPY = "last-copy"
    """Its objects are whole, and the source has these offsets no more: an operator decides."""
    PARTITION_LEFT_OUT = "partition-left-out"
    BEHIND = "behind"
    BUDGET = "budget"


class StaleReason(StrEnum):
    OTHER_LOG = "other-log"
    """The metadata is that of another cluster, or of a metadata topic that was made anew."""
    METADATA_BEHIND = "metadata-behind"
    METADATA_ABSENT = "metadata-absent"
    METADATA_CHANGED = "metadata-changed"
    SOURCE_ABSENT = "source-absent"
    SEGMENT_GONE = "segment-gone"
    SEGMENT_CHANGED = "segment-changed"
    """It begins or ends elsewhere, or has another size."""
    EPOCHS_CHANGED = "leader-epochs-changed"
    UNSTABLE = "above-last-stable-offset"
    TIERING_CHANGED = "tiering-changed"
    LOG_START_MOVED = "log-start-moved"
