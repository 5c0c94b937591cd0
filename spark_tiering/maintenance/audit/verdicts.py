"""The verdicts of an audit: on the objects of a segment, on its proof, and on the whole. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class SetVerdict(StrEnum):
    REFERENCED = "referenced"
    IN_FLIGHT = "in-flight"
    """Their copy is open, or they are too young to be judged."""
    AWAITING_DELETE = "awaiting-delete"
    """The deletion of the segment, or of the whole partition, has begun."""
    LEFTOVER = "leftover"
    ORPHAN = "orphan"
    """No metadata refers to them, and a proof says that none will."""
    UNPROVEN = "unproven"
    """No metadata refers to them, and no proof exists: the metadata may have been lost."""
    DUPLICATE = "duplicate"
    """They exist again under another prefix, or under another offset than the metadata says."""
    UNKNOWN_LAYOUT = "unknown-layout"
    """Another plugin wrote them."""
    UNKNOWN_KEY = "unknown-key"


class OrphanProof(StrEnum):
    SEGMENT_DELETED = "segment-deleted"
    PARTITION_DELETED = "partition-deleted"
    BELOW_LOG_START = "below-log-start"
    """The segment lies below the log start offset of its leader."""
    TOPIC_DELETED = "topic-deleted"
    """The metadata had the topic id, and the cluster no longer has it."""
    TOPIC_UNKNOWN = "topic-unknown"
    """Neither cluster nor metadata has the topic id: another cluster may share the bucket."""


USUAL_PROOFS: Final = tuple(one for one in OrphanProof if one is not OrphanProof.TOPIC_UNKNOWN)


class AuditVerdict(StrEnum):
    CLEAN = "Clean"
    DIRTY = "Dirty"
    """The store has leftovers, and all objects of finished segments."""
    CORRUPT = "Corrupt"
    """Data is missing, or contradicts the metadata."""
    UNFINISHED = "Unfinished"


DAY_MS: Final = 86_400_000
CLOCKS_APART_MS: Final = 3_600_000
"""How far the clocks of store, brokers and this process may differ."""


@dataclass(frozen=True, slots=True)
class AuditRules:
    now_ms: int
    seen_ms: int
    """When the listing began; an inventory may be days old."""
    min_age_ms: int = DAY_MS
    """Younger objects may belong to a running copy."""
    is_inventory: bool = False

    def is_old(self, at_ms: int) -> bool:
        return at_ms <= self.now_ms - self.min_age_ms

    def was_there(self, at_ms: int) -> bool:
        """Return whether the listing surely saw an object that was written by then."""
        return not self.is_inventory or at_ms <= self.seen_ms - CLOCKS_APART_MS
