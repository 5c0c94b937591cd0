"""The closed sets of what an audit says: of a segment's objects, of why, and of the whole. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class SetVerdict(StrEnum):
    """What the objects of one segment are."""

    REFERENCED = "referenced"
    """A finished segment has them."""
    IN_FLIGHT = "in-flight"
    """Their copy is open, or they were written so lately that nobody can say more."""
    AWAITING_DELETE = "awaiting-delete"
    """Their deletion has begun: of the segment, or of the whole partition."""
    LEFTOVER = "leftover"
    """Of a copy that was begun long ago and never finished."""
    ORPHAN = "orphan"
    """No metadata has a use for them, and there is proof of that."""
    UNPROVEN = "unproven"
    """No metadata knows of them, and nothing proves that none ever will: it may have been lost."""
    DUPLICATE = "duplicate"
    """A second time under another prefix, or under another offset than the metadata says."""
    UNKNOWN_LAYOUT = "unknown-layout"
    """Of a layout that is recognised and not understood."""
    UNKNOWN_KEY = "unknown-key"


class OrphanProof(StrEnum):
    """Why nobody has a use for objects that no metadata knows of."""

    SEGMENT_DELETED = "segment-deleted"
    """The log of the metadata has the end of the segment's deletion."""
    PARTITION_DELETED = "partition-deleted"
    """The metadata has the deletion of the whole partition."""
    BELOW_LOG_START = "below-log-start"
    """All of the segment lies below the log start offset that its broker tells."""
    TOPIC_DELETED = "topic-deleted"
    """The metadata had the topic id, and the cluster does not know it any more."""
    TOPIC_UNKNOWN = "topic-unknown"
    """Neither the cluster nor the metadata knows of the topic id. So do the objects of another
    cluster look that shares the bucket: such are deleted only where that is asked for by name."""


USUAL_PROOFS: Final = tuple(one for one in OrphanProof if one is not OrphanProof.TOPIC_UNKNOWN)
"""What is enough for a deletion unless more is said."""


class AuditVerdict(StrEnum):
    """The audit's own verdict."""

    CLEAN = "Clean"
    DIRTY = "Dirty"
    """There are leftovers; all that should be there is."""
    CORRUPT = "Corrupt"
    """Data is missing, or what is there contradicts the metadata."""
    UNFINISHED = "Unfinished"
    """It was stopped before it had seen everything."""


DAY_MS: Final = 86_400_000
CLOCKS_APART_MS: Final = 3_600_000
"""How far the clocks of a store, of brokers and ours may be apart."""


@dataclass(frozen=True, slots=True)
class AuditRules:
    """What is judged by."""

    now_ms: int
    seen_ms: int
    """When it was begun to look into the store: an inventory may be days old."""
    min_age_ms: int = DAY_MS
    """What is younger may still be at work."""
    is_inventory: bool = False

    def is_old(self, at_ms: int) -> bool:
        """Whether nobody works any more on what was touched last at that time."""
        return at_ms <= self.now_ms - self.min_age_ms

    def was_there(self, at_ms: int) -> bool:
        """Whether whoever looked into the store surely saw what was done by then."""
        return not self.is_inventory or at_ms <= self.seen_ms - CLOCKS_APART_MS
