"""
The verdict on the object set of one segment, by store, metadata and partition facts. Pure. The
caller lists the store before it reads the metadata: the metadata then knows every object that was
written in between, or the object is younger than any age that counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.metadata.segment import SegmentState
from spark_tiering.maintenance.audit.segment_facts import NOT_TOLD, TopicStanding
from spark_tiering.store_listing.key_names import KINDS, LOG
from spark_tiering.stores.s3_settings import ARCHIVE_CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_tiering.layout.object_names import ObjectKind
    from spark_tiering.maintenance.audit.segment_facts import AuditPartitionFacts, SegmentFact
    from spark_tiering.store_listing.rows import ObjectSet

_STARTED = SegmentState.COPY_SEGMENT_STARTED
_FINISHED = SegmentState.COPY_SEGMENT_FINISHED


class JudgedSet(NamedTuple):
    objects: ObjectSet
    verdict: SetVerdict
    why: str
    proof: OrphanProof | None = None


class ObjectSetVerdict(NamedTuple):
    sets: list[JudgedSet]
    missing: tuple[ObjectKind, ...] = ()
    length: str = ""
    """How the length of the objects of a finished segment differs from the metadata."""
    archived: tuple[str, ...] = ()
    """Storage classes of a finished segment in which no reader can read it."""
    is_overdue: bool = False
    is_elsewhere: bool = False
    """Its objects are named by another offset, and none by its own."""
    is_under_old_prefix: bool = False


def judge(
    fact: SegmentFact | None,
    sets: Sequence[ObjectSet],
    facts: AuditPartitionFacts,
    rules: AuditRules,
) -> ObjectSetVerdict:
    if fact is None:
        return ObjectSetVerdict([_unknown(one, facts, rules) for one in sets])
    own = [one for one in sets if one.start_offset == fact.start_offset]
    own.sort(key=lambda one: (not one.is_whole, one.prefix))
    strangers = [
        JudgedSet(one, SetVerdict.DUPLICATE, f"the metadata says offset {fact.start_offset}")
        for one in sets
        if one.start_offset != fact.start_offset
    ]
    seconds = [JudgedSet(one, SetVerdict.DUPLICATE, "under another prefix") for one in own[1:]]
    main = own[0] if own else None
    judged = _known(fact, main, facts, rules)
    is_elsewhere = bool(strangers) and main is None and fact.state is _FINISHED
    return judged._replace(
        sets=[*judged.sets, *seconds, *strangers],
        is_elsewhere=is_elsewhere,
        is_under_old_prefix=main is not None and main.prefix != 0 and fact.state is _FINISHED,
    )


def _known(
    fact: SegmentFact, main: ObjectSet | None, facts: AuditPartitionFacts, rules: AuditRules
) -> ObjectSetVerdict:
    is_overdue = rules.is_old(max(fact.event_ms, main.modified_ms if main else fact.event_ms))
    if facts.is_ending:
        why = "its topic id is not known to the cluster any more"
        if facts.delete_state is not None:
            why = "the deletion of its partition has begun"
        return ObjectSetVerdict(_set(main, SetVerdict.AWAITING_DELETE, why))
    if fact.state is _FINISHED:
        return _finished(fact, main, rules)
    if fact.state is _STARTED:
        if not is_overdue:
            return ObjectSetVerdict(_set(main, SetVerdict.IN_FLIGHT, "its copy is open"))
        why = "its copy was begun long ago and never finished"
        return ObjectSetVerdict(_set(main, SetVerdict.LEFTOVER, why), is_overdue=True)
    why = "its deletion has begun"
    return ObjectSetVerdict(_set(main, SetVerdict.AWAITING_DELETE, why), is_overdue=is_overdue)


def _finished(fact: SegmentFact, main: ObjectSet | None, rules: AuditRules) -> ObjectSetVerdict:
    lacking = tuple(main.lacking) if main is not None else KINDS
    if lacking and not rules.was_there(fact.event_ms):
        return ObjectSetVerdict(
            _set(main, SetVerdict.IN_FLIGHT, "finished since the inventory was made")
        )
    sets = _set(main, SetVerdict.REFERENCED, "a finished segment has them")
    if main is None:
        return ObjectSetVerdict(sets, missing=lacking)
    log = main.objects.get(LOG)
    length = ""
    if log is not None and log.size_bytes == 0 < fact.size_bytes:
        length = f"the log is empty, and the metadata says {fact.size_bytes} bytes"
    elif not lacking and fact.stored_bytes not in (NOT_TOLD, main.size_bytes):
        length = f"{main.size_bytes} bytes are there, and the metadata says {fact.stored_bytes}"
    classes = {one.storage_class for one in main.objects.values()}
    return ObjectSetVerdict(sets, lacking, length, tuple(sorted(classes & ARCHIVE_CLASSES)))


def _set(main: ObjectSet | None, verdict: SetVerdict, why: str) -> list[JudgedSet]:
    return [] if main is None else [JudgedSet(main, verdict, why)]


def _unknown(one: ObjectSet, facts: AuditPartitionFacts, rules: AuditRules) -> JudgedSet:
    if not rules.is_old(one.modified_ms):
        return JudgedSet(one, SetVerdict.IN_FLIGHT, "no metadata knows of it yet, and it is young")
    proof = proof_of(one.start_offset, facts)
    if proof is None:
        return JudgedSet(one, SetVerdict.UNPROVEN, "no metadata knows of it, and nothing says why")
    return JudgedSet(one, SetVerdict.ORPHAN, why_orphan(proof, facts), proof)


def proof_of(start_offset: int, facts: AuditPartitionFacts) -> OrphanProof | None:
    """Return the proof that an unknown set is not needed; see `ends_below` for its end."""
    if facts.delete_state is not None:
        return OrphanProof.PARTITION_DELETED
    if facts.cluster is TopicStanding.UNKNOWN:
        return OrphanProof.TOPIC_DELETED if facts.is_topic_known else OrphanProof.TOPIC_UNKNOWN
    if facts.log_start is not None and start_offset < facts.log_start:
        return OrphanProof.BELOW_LOG_START
    return None


def ends_below(last_offset: int | None, facts: AuditPartitionFacts) -> bool:
    """Return whether a segment lies below the log start offset, also one whose end is unknown."""
    return last_offset is None or (facts.log_start is not None and last_offset < facts.log_start)


def why_orphan(proof: OrphanProof, facts: AuditPartitionFacts) -> str:
    return {
        OrphanProof.SEGMENT_DELETED: "the metadata has the end of its deletion",
        OrphanProof.PARTITION_DELETED: "the metadata has the deletion of its partition",
        OrphanProof.BELOW_LOG_START: f"it lies below the log start {facts.log_start}",
        OrphanProof.TOPIC_DELETED: (
            "the metadata had its topic id, the cluster does not know it any more"
        ),
        OrphanProof.TOPIC_UNKNOWN: "neither cluster nor metadata knows its topic id",
    }[proof]


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
    """Another storage plugin wrote these objects."""
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
