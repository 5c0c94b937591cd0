"""
Python engine: the shard and the codec of rlmm behind the engine's interface.

Events go the whole way: encoded, put into a record batch and applied as a record set. Answers come
from the shard and its views through the table of Kafka's outcomes.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rlmm.errors import EngineFailed, InvalidArgument, NotPublishable, RlmmError, UnknownPartition
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode, encode_any
from rlmm.metadata.events import Event, PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.outcomes import KafkaError, Level, error_of, outcome_of
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata
from rlmm.metadata.verdicts import APPLIED, Undecodable, Verdict
from rlmm.metadata.view import PartitionViews
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from rlmm_conformance.answers import OK, ErrorKind, error_answer
from rlmm_conformance.engine import ALL_SUITES
from rlmm_conformance.event_forms import event_form, event_of
from rlmm_conformance.fields import FieldError, Json
from rlmm_conformance.steps import (
    DEFAULT_TP,
    AddStep,
    DeletePartition,
    EpochQuery,
    OffsetQuery,
    Operation,
    PartitionCall,
    SegmentFields,
    SegmentQuery,
    StepOperation,
    UpdateFields,
    UpdateStep,
    segment_answer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlmm.metadata.shard import Shard

METADATA_PARTITION = 0

Question = PartitionCall | EpochQuery | OffsetQuery | SegmentQuery


class Labels:
    """The labels of one scenario as ids, and back; every label is another id."""

    def __init__(self) -> None:
        self._uuids: dict[str, Uuid] = {}
        self._labels: dict[Uuid, str] = {}
        self._partitions: dict[str, TopicIdPartition] = {}

    def uuid(self, label: str) -> Uuid:
        if label not in self._uuids:
            uuid = Uuid.of(0, len(self._uuids) + 1)
            self._uuids[label] = uuid
            self._labels[uuid] = label
        return self._uuids[label]

    def label(self, uuid: Uuid) -> str:
        return self._labels[uuid]

    def partition(self, tp: str) -> TopicIdPartition:
        number = len(self._partitions) + 1
        fresh = TopicIdPartition(Uuid.of(1, number), f"topic-{number}", 0)
        return self._partitions.setdefault(tp, fresh)

    def segment_id(self, tp: str, label: str) -> SegmentId:
        return SegmentId(self.partition(tp), self.uuid(label))


class PythonEngine:
    """The pure-Python shard, its views and its codec; *new_shard* may put another one behind."""

    suites = ALL_SUITES
    without: frozenset[StepOperation] = frozenset()

    def __init__(
        self, new_shard: Callable[[int], Shard] = PythonShard, name: str = "python"
    ) -> None:
        self.name = name
        self._new_shard = new_shard
        self._start(Level.STORE)

    def _start(self, level: Level) -> None:
        self._level = level
        self._labels = Labels()
        self._shard = self._new_shard(METADATA_PARTITION)
        self._views = PartitionViews(self._shard)

    def begin(self, scenario: str, level: Level, *, initialized: bool) -> None:
        """Start from an empty shard; at cache level its one user partition is loaded already."""
        del scenario
        self._start(level)
        if level is Level.CACHE:
            self._views.load(self._labels.partition(DEFAULT_TP))
            if initialized:
                self._views.mark_initialized(self._labels.partition(DEFAULT_TP))

    def violations(self) -> list[str]:
        """Return every internal rule of the shard that is broken after the last step."""
        return self._shard.validate()

    def step(self, operation: Operation) -> Json:
        """Ask the engine; its exceptions become the errors that Kafka would answer with."""
        try:
            match operation:
                case AddStep() | UpdateStep() | DeletePartition():
                    return self._apply(operation)
                case PartitionCall():
                    return self._call(operation)
                case EpochQuery():
                    return self._epoch_answer(operation)
                case OffsetQuery():
                    return self._offset_answer(operation)
                case SegmentQuery():
                    return self._segment_answer(operation)
        except EngineFailed:
            raise
        except RlmmError as error:
            kind = error_of(error)
            if kind is None:
                raise EngineFailed(f"{error.code}: {error}") from error
            return {"error": str(kind)}

    # ------------------------------------------------------------------------------- events

    def _apply(self, operation: AddStep | UpdateStep | DeletePartition) -> Json:
        partition = self._labels.partition(operation.tp)
        initialized = self._views.is_ready(partition)
        event = self._event(operation)
        verdict = self._verdict_on(None if event is None else encode_any(event))
        outcome = outcome_of(verdict, self._level, initialized=initialized)
        return {"error": str(outcome)} if isinstance(outcome, KafkaError) else str(outcome)

    def _event(self, operation: AddStep | UpdateStep | DeletePartition) -> Event | None:
        match operation:
            case DeletePartition(tp=tp, state=state):
                return PartitionDelete(self._labels.partition(tp), 0, 0, state)
            case AddStep(tp=tp, segment=SegmentFields() as segment):
                return SegmentMetadata(
                    id=self._labels.segment_id(tp, segment.id), **_all_but_id(segment)
                )
            case UpdateStep(tp=tp, update=UpdateFields() as update):
                return SegmentUpdate(
                    id=self._labels.segment_id(tp, update.id), **_all_but_id(update)
                )
            case _:
                return None

    def _verdict_on(self, value: bytes | None) -> Verdict:
        position = self._shard.position
        data = build_batch(records_of([value], position), position)
        report = self._views.apply(RecordSet(METADATA_PARTITION, data))
        if report.damage is not None or self._shard.position != position + 1:
            raise EngineFailed(f"a record set of one record was not applied whole: {report}")
        return report.entries[0].verdict if report.entries else APPLIED

    # ----------------------------------------------------------------------------- questions

    def _call(self, call: PartitionCall) -> Json:
        partition = self._labels.partition(call.tp)
        match call.op:
            case StepOperation.LOAD:
                self._views.load(partition)
                return OK
            case StepOperation.CLEAR:
                self._views.clear(partition)
                return OK
            case StepOperation.MARK_INITIALIZED:
                return self._mark_initialized(partition)
            case StepOperation.IS_READY:
                return self._views.is_ready(partition)
            case StepOperation.PARTITION_STATE:
                return self._partition_state(partition)
            case _:
                return self._labelled(self._asked().segments(partition))

    def _mark_initialized(self, partition: TopicIdPartition) -> Json:
        try:
            self._views.mark_initialized(partition)
        except UnknownPartition:  # Kafka does not look whether it is there, and trips
            return error_answer(ErrorKind.NULL_POINTER)
        return OK

    def _partition_state(self, partition: TopicIdPartition) -> Json:
        """Return the delete state; Kafka keeps none of a finished deletion, the shard does."""
        event = self._shard.partition_delete(partition)
        if event is None or event.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            return None
        return event.state.name

    def _asked(self) -> Shard | PartitionViews:
        """Return the shard of a cache, or the views of a store, which refuse when not ready."""
        return self._shard if self._level is Level.CACHE else self._views

    def _epoch_answer(self, query: EpochQuery) -> Json:
        partition, epoch = self._labels.partition(query.tp), query.epoch
        asked = self._asked()
        match query.op:
            case StepOperation.HIGHEST:
                return asked.highest_offset(partition, epoch)
            case StepOperation.SIZE:
                return asked.size_of_epoch(partition, epoch)
            case StepOperation.LIST_EPOCH:
                return self._labelled(asked.segments_of_epoch(partition, epoch))
            case _:
                asked.highest_offset(partition, epoch)  # whether the store answers at all
                return self._epoch_state(partition, epoch)

    def _epoch_state(self, partition: TopicIdPartition, epoch: int) -> Json:
        view = self._shard.epoch_view(partition, epoch)
        if view is None:
            return None
        return {
            "referenced": {str(at): self._labels.label(uuid) for at, uuid in view.slots.items()},
            "unreferenced": [self._labels.label(uuid) for uuid in view.unreferenced],
            "highest": view.highest,
        }

    def _offset_answer(self, query: OffsetQuery) -> Json:
        partition = self._labels.partition(query.tp)
        if query.op is StepOperation.GET:
            found = self._asked().segment_for(partition, query.epoch, query.offset)
        else:
            found = self._asked().next_segment_with_txn_index(partition, query.epoch, query.offset)
        return None if found is None else self._labels.label(found.id.uuid)

    def _segment_answer(self, query: SegmentQuery) -> Json:
        segment_id = self._labels.segment_id(query.tp, query.id)
        if self._level is Level.STORE:
            self._views.segments(segment_id.partition)  # whether the store answers at all
        segment = self._shard.segment(segment_id)
        return None if segment is None else segment_answer(query.id, segment)

    def _labelled(self, segments: Iterable[SegmentMetadata]) -> Json:
        return [self._labels.label(segment.id.uuid) for segment in segments]

    # ------------------------------------------------------------------------- record forms

    def decode(self, value: bytes | None) -> Json:
        event = decode(value)
        if isinstance(event, Undecodable):
            return {"undecodable": f"{event.reason}: {event.detail}"}
        return {"event": event_form(event)}

    def encode(self, event: dict[str, Json], *, publish: bool) -> Json:
        """Write strictly to publish, and any event otherwise."""
        try:
            value = encode(event_of(event)) if publish else encode_any(event_of(event))
        except (FieldError, InvalidArgument, NotPublishable) as error:
            return {"refused": str(error)}
        return {"value": value.hex()}

    def partition_for(self, topic_id: bytes, partition: int, count: int) -> Json:
        try:
            return metadata_partition_for(topic_id, partition, count)
        except InvalidArgument as error:
            return {"refused": str(error)}

    def close(self) -> None: ...


def _all_but_id(record: SegmentFields | UpdateFields) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record) if one.name != "id"}
