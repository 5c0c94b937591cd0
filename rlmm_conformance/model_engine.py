"""Model engine: the literal model as an engine, the oracle of every proof; scenarios only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import EngineFailed
from rlmm.metadata.outcomes import Level
from rlmm_conformance.answers import OK, error_answer
from rlmm_conformance.engine import Suite
from rlmm_conformance.fields import Json
from rlmm_conformance.model import KAFKA, CacheModel, ModelFailure, StoreModel
from rlmm_conformance.steps import (
    AddStep,
    DeletePartition,
    EpochQuery,
    OffsetQuery,
    Operation,
    PartitionCall,
    SegmentQuery,
    StepOperation,
    UpdateStep,
    segment_answer,
)

if TYPE_CHECKING:
    from rlmm_conformance.rules import Rules


class ModelEngine:
    """The model with *rules* switched on; with none of them it answers as Kafka."""

    name = "model"
    suites = frozenset({Suite.SCENARIOS})
    without: frozenset[StepOperation] = frozenset()

    def __init__(self, rules: Rules = KAFKA) -> None:
        self._rules = rules
        self._level = Level.STORE
        self._cache = CacheModel(rules)
        self._store = StoreModel(rules)

    def begin(self, scenario: str, level: Level, *, initialized: bool) -> None:
        del scenario
        self._level = level
        self._cache = CacheModel(self._rules, initialized=initialized)
        self._store = StoreModel(self._rules)

    def step(self, operation: Operation) -> Json:
        """Return the model's answer; of several right ones, always the same."""
        answer = self.answer(operation)
        if operation.op is StepOperation.LIST_EPOCH and isinstance(answer, list):
            groups = (group if isinstance(group, list) else [group] for group in answer)
            return [label for group in groups for label in group]
        return answer

    def answer(self, operation: Operation) -> Json:
        """Return the model's answer; labels that may come in any order stand in one list."""
        match operation:
            case AddStep() | UpdateStep() | DeletePartition():
                return _answer(self._event(operation))
            case PartitionCall(op=StepOperation.LIST):
                return self._query(operation)
            case PartitionCall():
                return self._call(operation)
            case _:
                return self._query(operation)

    def _event(self, operation: AddStep | UpdateStep | DeletePartition) -> str | ModelFailure:
        match operation:
            case DeletePartition(tp=tp, state=state):
                return self._store.partition_delete(tp, state)
            case AddStep(tp=tp, segment=segment):
                if self._level is Level.CACHE:
                    return self._cache.add(segment)
                return self._store.add(tp, segment)
            case UpdateStep(tp=tp, update=update):
                if self._level is Level.CACHE:
                    return self._cache.update(update)
                return self._store.update(tp, update)

    def _call(self, operation: PartitionCall) -> Json:
        if self._level is Level.CACHE:
            if operation.op is StepOperation.MARK_INITIALIZED:
                self._cache.initialized = True
                return OK
            return self._cache.initialized
        match operation.op:
            case StepOperation.LOAD:
                return self._store.load(operation.tp)
            case StepOperation.CLEAR:
                return self._store.clear(operation.tp)
            case StepOperation.MARK_INITIALIZED:
                return _answer(self._store.mark_initialized(operation.tp))
            case StepOperation.IS_READY:
                return self._store.is_ready(operation.tp)
            case _:
                state = self._store.partition_state(operation.tp)
                return None if state is None else state.name

    def _query(self, operation: PartitionCall | EpochQuery | OffsetQuery | SegmentQuery) -> Json:
        cache: CacheModel | ModelFailure = self._cache
        if self._level is Level.STORE:
            cache = self._store.queried(operation.tp)
        if isinstance(cache, ModelFailure):
            return _answer(cache)
        match operation:
            case OffsetQuery(op=StepOperation.GET, epoch=epoch, offset=offset):
                return cache.get(epoch, offset)
            case OffsetQuery(epoch=epoch, offset=offset):
                return cache.next_txn(epoch, offset)
            case EpochQuery():
                return _epoch_answer(cache, operation)
            case SegmentQuery(id=label):
                segment = cache.segment(label)
                return None if segment is None else segment_answer(label, segment)
            case PartitionCall():
                return list[Json](cache.list_all())

    def decode(self, value: bytes | None) -> Json:
        raise _not_offered(Suite.RECORDS)

    def encode(self, event: dict[str, Json], *, publish: bool) -> Json:
        raise _not_offered(Suite.RECORDS)

    def partition_for(self, topic_id: bytes, partition: int, count: int) -> Json:
        raise _not_offered(Suite.PARTITIONER)

    def close(self) -> None: ...


def _epoch_answer(cache: CacheModel, query: EpochQuery) -> Json:
    match query.op:
        case StepOperation.HIGHEST:
            return cache.highest(query.epoch)
        case StepOperation.SIZE:
            return _answer(cache.size(query.epoch))
        case StepOperation.LIST_EPOCH:
            groups = cache.list_epoch(query.epoch)
            if isinstance(groups, ModelFailure):
                return _answer(groups)
            return [group[0] if len(group) == 1 else list[Json](group) for group in groups]
        case _:
            state = cache.epoch_state(query.epoch)
            return (
                None
                if state is None
                else {
                    "referenced": {str(first): label for first, label in state.referenced.items()},
                    "unreferenced": list[Json](state.unreferenced),
                    "highest": state.highest,
                }
            )


def _answer(outcome: str | int | ModelFailure) -> Json:
    return error_answer(outcome.kind) if isinstance(outcome, ModelFailure) else outcome


def _not_offered(suite: Suite) -> EngineFailed:
    return EngineFailed(f"the model does not offer the suite {suite}")
