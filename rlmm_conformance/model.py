"""
A literal model of Kafka's cache and store of segment metadata, to be compared with rules by eye.

With no rule switched on it answers as Kafka; each named rule is one switch. As the oracle it knows
nothing of the real engine. Errors are answers (`ModelFailure`), as scenarios expect them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm_conformance.answers import APPLIED, DROPPED, OK, ErrorKind
from rlmm_conformance.rules import ConformanceRule, Rules

if TYPE_CHECKING:
    from rlmm_conformance.steps import SegmentFields, UpdateFields

CS = SegmentState.COPY_SEGMENT_STARTED
CF = SegmentState.COPY_SEGMENT_FINISHED
DS = SegmentState.DELETE_SEGMENT_STARTED
DF = SegmentState.DELETE_SEGMENT_FINISHED

LEGAL = {(None, CS), (CS, CS), (CS, CF), (CS, DS), (CF, CF), (CF, DS), (DS, DS), (DS, DF), (DF, DF)}

KAFKA: Rules = frozenset()


@dataclass(frozen=True, slots=True)
class ModelFailure:
    kind: ErrorKind


NULL_ARGUMENT = ModelFailure(ErrorKind.NULL_ARGUMENT)
NULL_POINTER = ModelFailure(ErrorKind.NULL_POINTER)
ILLEGAL_ARGUMENT = ModelFailure(ErrorKind.ILLEGAL_ARGUMENT)
ILLEGAL_STATE = ModelFailure(ErrorKind.ILLEGAL_STATE)
NOT_FOUND = ModelFailure(ErrorKind.NOT_FOUND)
NOT_READY = ModelFailure(ErrorKind.NOT_READY)


@dataclass(slots=True)
class EpochModel:
    """The state that a cache keeps of one epoch."""

    referenced: dict[int, str] = field(default_factory=dict)
    """The slots: offset that a segment lists for this epoch -> its id."""
    unreferenced: dict[str, None] = field(default_factory=dict)
    """A set of ids without a slot; a dictionary, so that runs repeat exactly."""
    highest: int | None = None


def epoch_end(segment: SegmentFields, epoch: int) -> int:
    """Return the epoch's last offset in the segment; Java's numbers wrap below the least offset."""
    for other, offset in segment.epochs:
        if other > epoch:
            return offset - 1 if offset > INT64_MIN else INT64_MAX
    return segment.last_offset


def is_refused_by_constructor(segment: SegmentFields) -> bool:
    """Whether Kafka's constructor refuses these fields, before any cache or store sees them."""
    return (
        segment.start_offset < 0 or segment.last_offset < segment.start_offset or not segment.epochs
    )


class CacheModel:
    def __init__(self, rules: Rules = KAFKA, *, initialized: bool = False) -> None:
        self.rules = rules
        self.initialized = initialized
        self.segments: dict[str, SegmentFields] = {}
        self.epochs: dict[int, EpochModel] = {}
        self.finished_at: dict[str, int] = {}
        self.finishes = 0

    # Events

    def add(self, segment: SegmentFields | None) -> str | ModelFailure:
        if segment is None:
            return NULL_ARGUMENT
        if is_refused_by_constructor(segment) or segment.state is not CS:
            return ILLEGAL_ARGUMENT
        current = self.segments.get(segment.id)
        if (current.state if current else None, CS) not in LEGAL:
            return DROPPED
        for epoch, _ in segment.epochs:
            self.epoch(epoch).unreferenced[segment.id] = None
        self.segments[segment.id] = segment
        return APPLIED

    def update(self, update: UpdateFields | None) -> str | ModelFailure:
        if update is None:
            return NULL_ARGUMENT
        current = self.segments.get(update.id)
        if current is None:
            return NOT_FOUND if self.initialized else DROPPED
        if (current.state, update.state) not in LEGAL:
            return DROPPED
        if update.state is CS:
            return ILLEGAL_ARGUMENT
        updated = replace(
            current,
            state=update.state,
            broker_id=update.broker_id,
            event_timestamp_ms=update.event_timestamp_ms,
            custom_metadata=update.custom_metadata,
        )
        if update.state is CF:
            self.finish_copy(updated)
        elif update.state is DS:
            self.start_deletion(updated)
        else:
            self.finish_deletion(updated)
        return APPLIED

    def finish_copy(self, segment: SegmentFields) -> None:
        for epoch, first in segment.epochs:
            state = self.epoch(epoch)
            end = epoch_end(segment, epoch)
            while (
                state.referenced
                and max(state.referenced) >= first
                and state.highest is not None
                and state.highest <= end
            ):
                displaced = state.referenced.pop(max(state.referenced))
                state.unreferenced[displaced] = None
            overwritten = state.referenced.get(first)
            if ConformanceRule.KAFKA_20932 in self.rules and overwritten not in {None, segment.id}:
                state.unreferenced[str(overwritten)] = None
            state.referenced[first] = segment.id
            state.unreferenced.pop(segment.id, None)
            if state.highest is None or end > state.highest:
                state.highest = end
        self.segments[segment.id] = segment
        self.finishes += 1
        self.finished_at[segment.id] = self.finishes

    def start_deletion(self, segment: SegmentFields) -> None:
        for epoch, first in segment.epochs:
            state = self.epoch(epoch)
            if state.referenced.get(first) == segment.id:
                del state.referenced[first]
            state.unreferenced[segment.id] = None
        self.segments[segment.id] = segment

    def finish_deletion(self, segment: SegmentFields) -> None:
        """Apply DELETE_SEGMENT_FINISHED: the id leaves its epochs and the cache."""
        for epoch, _ in segment.epochs:
            self.epoch(epoch).unreferenced.pop(segment.id, None)
        if ConformanceRule.NO_DANGLING_IDS in self.rules:
            for state in self.epochs.values():
                state.unreferenced.pop(segment.id, None)
        del self.segments[segment.id]

    def epoch(self, epoch: int) -> EpochModel:
        return self.epochs.setdefault(epoch, EpochModel())

    # Queries

    def get(self, epoch: int, offset: int) -> str | None:
        """The finished segment that holds *offset* in *epoch*."""
        found = self.get_from_slots(epoch, offset)
        if found is None and ConformanceRule.COVER_LOOKUP in self.rules:
            return self.get_covering(epoch, offset)
        return found

    def get_from_slots(self, epoch: int, offset: int) -> str | None:
        """Look up as Kafka does: one candidate, no second try."""
        if epoch not in self.epochs:
            return None
        referenced = self.epochs[epoch].referenced
        keys = [key for key in referenced if key <= offset]
        if not keys:
            return None
        candidate = self.segments[referenced[max(keys)]]
        return candidate.id if offset <= epoch_end(candidate, epoch) else None

    def get_covering(self, epoch: int, offset: int) -> str | None:
        """Return the finished segment that covers *offset* in *epoch* and finished last."""
        covering = [
            segment.id
            for segment in self.segments.values()
            if segment.state is CF
            for listed, first in segment.epochs
            if listed == epoch and first <= offset <= epoch_end(segment, epoch)
        ]
        return max(covering, key=self.finished_at.__getitem__, default=None)

    def next_txn(self, epoch: int, offset: int) -> str | None:
        """
        Return the first segment from *offset* with a transaction index.

        Kafka's walk can return to a segment for ever; here the next offset must rise.
        """
        while True:
            found = self.get_from_slots(epoch, offset)
            if found is None and ConformanceRule.COVER_NEXT_TXN in self.rules:
                found = self.get_covering(epoch, offset)
            if found is None or not self.segments[found].txn_index_empty:
                return found
            next_offset = self.segments[found].last_offset + 1
            if next_offset <= offset or next_offset > INT64_MAX:
                return None
            offset = next_offset

    def highest(self, epoch: int) -> int | None:
        return self.epochs[epoch].highest if epoch in self.epochs else None

    def list_all(self) -> list[str]:
        return list(self.segments)

    def list_epoch(self, epoch: int) -> list[list[str]] | ModelFailure:
        """Return the live segments of *epoch* in order; an inner list has no order."""
        if epoch not in self.epochs:
            return []
        state = self.epochs[epoch]
        mapped = [state.referenced[first] for first in sorted(state.referenced)]
        if any(label not in self.segments for label in (*mapped, *state.unreferenced)):
            return NOT_FOUND
        if not state.unreferenced:
            return [[label] for label in mapped]
        groups: list[list[str]] = []
        for start in sorted(
            {self.segments[i].start_offset for i in (*mapped, *state.unreferenced)}
        ):
            groups += [[i] for i in mapped if self.segments[i].start_offset == start]
            groups.append([i for i in state.unreferenced if self.segments[i].start_offset == start])
        return [group for group in groups if group]

    def size(self, epoch: int) -> int | ModelFailure:
        groups = self.list_epoch(epoch)
        if isinstance(groups, ModelFailure):
            return groups
        return sum(self.segments[label].size_bytes for group in groups for label in group)

    def segment(self, label: str) -> SegmentFields | None:
        return self.segments.get(label)

    def epoch_state(self, epoch: int) -> EpochModel | None:
        return self.epochs.get(epoch)


class StoreModel:
    """The store: a cache per loaded user partition, and the last partition-delete event of each."""

    def __init__(self, rules: Rules = KAFKA) -> None:
        self.rules = rules
        self.caches: dict[str, CacheModel] = {}
        self.loaded: set[str] = set()
        self.deletions: dict[str, PartitionDeleteState] = {}

    def load(self, tp: str) -> str:
        """Load *tp*, not initialised; a loaded one stays as it is."""
        self.cache(tp)
        self.loaded.add(tp)
        return OK

    def clear(self, tp: str) -> str:
        """Forget *tp*, or with `shard-holds-all` only that it is loaded; its delete state stays."""
        self.loaded.discard(tp)
        if ConformanceRule.SHARD_HOLDS_ALL not in self.rules:
            self.caches.pop(tp, None)
        elif tp in self.caches:
            self.caches[tp].initialized = False
        return OK

    def mark_initialized(self, tp: str) -> str | ModelFailure:
        if tp not in self.loaded:
            return NULL_POINTER
        self.caches[tp].initialized = True
        return OK

    def is_ready(self, tp: str) -> bool:
        return tp in self.loaded and self.caches[tp].initialized

    def add(self, tp: str, segment: SegmentFields | None) -> str | ModelFailure:
        if segment is None:
            return NULL_ARGUMENT
        if is_refused_by_constructor(segment):
            return ILLEGAL_ARGUMENT
        if tp not in self.loaded and ConformanceRule.SHARD_HOLDS_ALL not in self.rules:
            return ILLEGAL_STATE
        return self.cache(tp).add(segment)

    def update(self, tp: str, update: UpdateFields | None) -> str | ModelFailure:
        """Apply an update record; an unknown segment is never reported."""
        if update is None:
            return NULL_ARGUMENT
        if tp not in self.loaded and ConformanceRule.SHARD_HOLDS_ALL not in self.rules:
            return ILLEGAL_STATE
        outcome = self.cache(tp).update(update)
        return DROPPED if outcome == NOT_FOUND else outcome

    def partition_delete(self, tp: str, state: PartitionDeleteState) -> str:
        """Store a partition-delete record; a finished one removes every segment of *tp*."""
        self.deletions[tp] = state
        if state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            self.caches.pop(tp, None)
            self.loaded.discard(tp)
            del self.deletions[tp]
        return APPLIED

    def partition_state(self, tp: str) -> PartitionDeleteState | None:
        return self.deletions.get(tp)

    def queried(self, tp: str) -> CacheModel | ModelFailure:
        """Return the cache that may answer queries about *tp*, or the reason why there is none."""
        if tp not in self.loaded:
            return NOT_FOUND
        return self.caches[tp] if self.caches[tp].initialized else NOT_READY

    def cache(self, tp: str) -> CacheModel:
        return self.caches.setdefault(tp, CacheModel(self.rules))
