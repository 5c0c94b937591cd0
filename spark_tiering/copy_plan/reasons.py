"""
Why something is, or is not, in a plan. Every list here is closed, and its values stand in documents
that people keep: a value is never given another meaning.
"""

from __future__ import annotations

from enum import StrEnum


class CopyMode(StrEnum):
    """What copies are for."""

    ARCHIVE = "archive"
    """Topics that no broker tiers; what was deleted before it was copied is a named gap."""
    ADOPT = "adopt"
    """A topic that brokers tier, whose own copying stands still: they go on where copies end."""


class SegmentAction(StrEnum):
    """What is left to do for one segment."""

    COPY = "copy"
    """All of it, under an id of its own."""
    RESUME = "resume"
    """It was started: what is missing of its objects is written, under the id it has."""
    COMPLETE = "complete"
    """All objects are there and verified: only the finishing event is missing."""


class NotCopiedReason(StrEnum):
    """Why a segment of the source is not copied."""

    COVERED = "covered"
    """Finished copies hold every offset of it, each under its own leader epoch."""
    TOPIC_NOT_WANTED = "topic-not-wanted"
    METADATA_ABSENT = "metadata-absent"
    """Nobody could read the partition's metadata: nothing is written meanwhile."""
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
    """The segment's bytes tell other leader epochs than the partition's history."""
    TOO_LARGE = "too-large"
    """Metadata says the size of a log in 31 bits."""
    NOT_INSPECTED = "not-inspected"
    """It may be copied once it was read: who plans inspects these, and plans again."""
    BLOCKED = "blocked"
    """Its inspection found what cannot be helped."""
    OVERLAP_WOULD_HIDE = "overlap-would-hide"
    """Beside copies that are there, brokers would not find some offsets any more."""
    OPEN_COPY_UNDECIDED = "open-copy-undecided"
    """A copy of these offsets was started, and nobody can say yet what has become of it."""
    TOO_YOUNG = "too-young"
    KEPT_LOCAL = "kept-local"
    BEHIND = "behind"
    """Something below it is left out, and no copy leaves a gap."""
    BUDGET_BYTES = "budget-bytes"
    BUDGET_OBJECTS = "budget-objects"
    BUDGET_REQUESTS = "budget-requests"


class EndReason(StrEnum):
    """Why an open copy is ended: deletion started, its objects removed, deletion finished."""

    DELETION_BEGUN = "deletion-begun"
    """It was being ended already."""
    COVERED = "covered"
    """The range is finished by another copy, whose place this one must not take."""
    DUPLICATE = "duplicate"
    """Another open copy of the same range is nearer to its end."""
    OVERLAP_WOULD_HIDE = "overlap-would-hide"
    OTHER_LINEAGE = "other-lineage"
    """What was copied is not what the partition's leaders kept."""
    OBJECTS_DAMAGED = "objects-damaged"
    """There is a wrong object under one of its names, and objects are never replaced."""
    OTHER_BROKER_ID = "other-broker-id"
    """Only who started a copy may finish it."""
    SOURCE_DIFFERS = "source-differs"
    """The source has no segment that is equal to what was started."""
    BEHIND = "behind"
    """A copy below it is missing: brokers would take the hole for copied."""
    WINDOW_CLOSED = "window-closed"
    """Brokers are to copy again, and nobody goes on with it."""


class LeftOpen(StrEnum):
    """Why an open copy is neither completed nor ended."""

    EVIDENCE_MISSING = "evidence-missing"
    NOT_OURS = "not-ours"
    WRITER_ALIVE = "writer-alive"
    """Who started it may still be at work."""
    OBJECTS_UNKNOWN = "objects-unknown"
    """The store did not tell what is there."""
    STABILITY_UNKNOWN = "last-stable-offset-unknown"
    UNSTABLE = "above-last-stable-offset"
    NOT_INSPECTED = "not-inspected"
    BLOCKED = "blocked"
    """Its segment at the source cannot be read any more, and some of it may be in the store."""
    LAST_COPY = "last-copy"
    """Its objects are whole, and the source has these offsets no more: somebody must look."""
    PARTITION_LEFT_OUT = "partition-left-out"
    BEHIND = "behind"
    BUDGET = "budget"


class StaleReason(StrEnum):
    """Why a plan must not be carried out any more."""

    OTHER_LOG = "other-log"
    """The metadata is that of another cluster, or of a metadata topic that was made anew."""
    METADATA_BEHIND = "metadata-behind"
    """The metadata is older than the plan's."""
    METADATA_ABSENT = "metadata-absent"
    METADATA_CHANGED = "metadata-changed"
    """Something happened to the partition's segments."""
    SOURCE_ABSENT = "source-absent"
    SEGMENT_GONE = "segment-gone"
    SEGMENT_CHANGED = "segment-changed"
    """It begins or ends elsewhere, or has another size."""
    EPOCHS_CHANGED = "leader-epochs-changed"
    UNSTABLE = "above-last-stable-offset"
    TIERING_CHANGED = "tiering-changed"
    LOG_START_MOVED = "log-start-moved"
