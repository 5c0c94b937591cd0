"""
The conformance corpus put to clients of `broker_adapter`.

A partition that is not loaded is one without an assignment; one not initialised is that of a broker
which restarted and has not assigned it yet. An event that we refuse and Kafka accepts is stored
beside the client, as a stock broker's event would be.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from broker_adapter.settings import ClientSettings
from rlmm.errors import (
    EventRejected,
    InvalidArgument,
    NotAssigned,
    NotPublishable,
    RlmmError,
    UnknownPartition,
)
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.outcomes import KafkaError, Level, error_of, outcome_of
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.verdicts import APPLIED, Rejected, RejectReason
from rlmm_conformance.fields import custom_text
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.steps import (
    DEFAULT_TP,
    AddStep,
    DeletePartition,
    EpochQuery,
    OffsetQuery,
    Operation,
    PartitionCall,
    SegmentQuery,
    StepOperation,
    UpdateStep,
)
from tests.support.server.metadata_clients import done

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.metadata.events import Event
    from rlmm_conformance.fields import Json
    from tests.support.server.metadata_clients import Cluster

NOT_ON_THE_WIRE: Final = frozenset(
    {
        StepOperation.LOAD,
        StepOperation.CLEAR,
        StepOperation.MARK_INITIALIZED,
        StepOperation.EPOCH_STATE,
    }
)
WRITERS_ONLY: Final = frozenset(
    {
        RejectReason.PARTITION_BEING_DELETED,
        RejectReason.PARTITION_WAS_DELETED,
        RejectReason.NOT_THE_COPIER,
        RejectReason.COPIED_BY_ANOTHER,
    }
)
BESIDE: Final = "stored beside"

ONCE: Final = ClientSettings(is_repeating=False, ready_timeout_s=30.0)
"""The first answer is the one to be judged, however late it comes on a machine that is busy."""

_scenarios = count(1)
_brokers = count(1)


class _Labels(PythonEngine):
    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self._named: dict[str, TopicIdPartition] = {}
        self._labels.partition = self.partition  # type: ignore[method-assign]

    def partition(self, tp: str) -> TopicIdPartition:
        fresh = TopicIdPartition(Uuid.of(self._number, len(self._named) + 1), f"t-{tp}", 0)
        return self._named.setdefault(tp, fresh)


class ClientEngine:
    def __init__(
        self,
        cluster: Cluster,
        store_beside: Callable[[Any], Awaitable[None]],
        level: Level,
        *,
        initialized: bool,
    ) -> None:
        self._cluster = cluster
        self._store_beside = store_beside
        self._level = level
        self._names = _Labels(next(_scenarios))
        self._brokers: dict[str, Any] = {}
        self._ids: dict[str, int] = {}
        self._ready: set[str] = set()
        self._is_initialized = initialized
        self._writer: Any = None

    async def begin(self) -> None:
        """Start from nothing; at cache level the one user partition is there."""
        self._writer = await self._cluster.client()
        if self._level is Level.CACHE:
            await self._load(DEFAULT_TP)
            await self._initialize(DEFAULT_TP)

    async def step(self, operation: Operation) -> Json:
        try:
            if isinstance(operation, AddStep | UpdateStep | DeletePartition):
                return await self._apply(operation)
            return await self._asked(operation)
        except NotAssigned:
            return {"error": str(KafkaError.NOT_FOUND)}
        except UnknownPartition:
            if self._level is Level.CACHE:
                return _EMPTY[operation.op]
            return {"error": str(KafkaError.NOT_FOUND)}
        except NotPublishable:
            return {"error": str(KafkaError.ILLEGAL_ARGUMENT)}
        except RlmmError as error:
            kind = error_of(error)
            if kind is None:
                raise
            return {"error": str(kind)}

    # --------------------------------------------------------------------------------- events

    async def _apply(self, operation: AddStep | UpdateStep | DeletePartition) -> Json:
        event = self._names._event(operation)
        try:
            await self._written(operation, event)
            verdict: Any = APPLIED
        except InvalidArgument:
            if event is not None:
                raise
            return {"error": str(KafkaError.NULL_ARGUMENT)}
        except EventRejected as error:
            reason = RejectReason(error.reason)
            if reason in WRITERS_ONLY or isinstance(operation, DeletePartition):
                assert event is not None
                await self._store_beside(event)
                return BESIDE
            verdict = Rejected(reason, None, None)
        initialized = operation.tp in self._ready
        if self._level is Level.CACHE:
            initialized = self._is_initialized
        outcome = outcome_of(verdict, self._level, initialized=initialized)
        return {"error": str(outcome)} if isinstance(outcome, KafkaError) else str(outcome)

    async def _written(
        self, operation: AddStep | UpdateStep | DeletePartition, event: Event | None
    ) -> None:
        verbs = {
            StepOperation.ADD: self._writer.add_segment,
            StepOperation.UPDATE: self._writer.update_segment,
            StepOperation.PARTITION_DELETE: self._writer.put_partition_delete,
        }
        written = await verbs[operation.op](event)
        assert written.verdict in {"applied", "duplicate"}

    # ------------------------------------------------------------------------------ questions

    async def _asked(self, operation: Any) -> Json:
        client = await self._broker(operation.tp)
        partition = self._names.partition(operation.tp)
        match operation:
            case PartitionCall():
                return await self._called(operation, client, partition)
            case EpochQuery(op=StepOperation.HIGHEST, epoch=epoch):
                return await client.highest_offset(partition, epoch)  # type: ignore[no-any-return]
            case EpochQuery(op=StepOperation.SIZE, epoch=epoch):
                return await client.remote_log_size(partition, epoch)  # type: ignore[no-any-return]
            case EpochQuery(epoch=epoch):
                segments = client.list_segments_by_epoch(partition, epoch)
                return [self._label(found) async for found in segments]
            case OffsetQuery(op=op, epoch=epoch, offset=offset):
                ask = (
                    client.segment_for
                    if op is StepOperation.GET
                    else client.next_segment_with_txn_index
                )
                found = await ask(partition, epoch, offset)
                return None if found is None else self._label(found)
            case SegmentQuery():
                return await self._segment(operation, client)
        raise AssertionError(operation)

    async def _called(self, call: PartitionCall, client: Any, partition: TopicIdPartition) -> Json:
        match call.op:
            case StepOperation.LOAD:
                return await self._load(call.tp)
            case StepOperation.MARK_INITIALIZED:
                return await self._initialize(call.tp)
            case StepOperation.CLEAR:
                await done(client.on_partition_leadership_changes([], []))
                await done(client.on_stop_partitions([partition]))
                self._ready.discard(call.tp)
                return "ok"
            case StepOperation.IS_READY:
                return await client.is_ready(partition)  # type: ignore[no-any-return]
            case StepOperation.PARTITION_STATE:
                return await self._partition_state(partition)
            case _:
                return [self._label(found) async for found in client.list_segments(partition)]

    async def _partition_state(self, partition: TopicIdPartition) -> Json:
        try:
            found = await self._writer.partition_delete(partition)
        except UnknownPartition:
            return None
        if found is None or found.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            return None
        name: str = found.state.name
        return name

    async def _segment(self, query: SegmentQuery, client: Any) -> Json:
        found = await client.segment(self._names._labels.segment_id(query.tp, query.id))
        if found is None:
            return None
        return {
            "id": self._label(found),
            "start": found.start_offset,
            "end": found.last_offset,
            "max_ts": found.max_timestamp_ms,
            "broker": found.broker_id,
            "event_ts": found.event_timestamp_ms,
            "epochs": {str(epoch): offset for epoch, offset in found.epochs},
            "size": found.size_bytes,
            "custom": custom_text(found.custom_metadata),
            "state": found.state.name,
            "txn_empty": found.txn_index_empty,
        }

    def _label(self, segment: Any) -> str:
        return self._names._labels.label(segment.id.uuid)

    # --------------------------------------------------------------------------------- brokers

    async def _broker(self, tp: str) -> Any:
        if tp not in self._brokers:
            self._ids[tp] = next(_brokers)
            client = self._brokers[tp] = await self._cluster.client(self._ids[tp], ONCE)
            await done(client.on_partition_leadership_changes([], []))
        return self._brokers[tp]

    async def _load(self, tp: str) -> Json:
        if tp not in self._ready:
            await self._broker(tp)
            await self._brokers[tp].close()
            self._brokers[tp] = await self._cluster.restarted(self._ids[tp], ONCE)
        return "ok"

    async def _initialize(self, tp: str) -> Json:
        client, partition = await self._broker(tp), self._names.partition(tp)
        await done(client.on_partition_leadership_changes([partition], []))
        await client.wait_ready(partition)
        self._ready.add(tp)
        return "ok"

    async def close(self) -> None:
        for client in (self._writer, *self._brokers.values()):
            await client.close()


_EMPTY: Final[dict[StepOperation, Json]] = {
    StepOperation.GET: None,
    StepOperation.NEXT_TXN: None,
    StepOperation.HIGHEST: None,
    StepOperation.LIST: [],
    StepOperation.LIST_EPOCH: [],
    StepOperation.SIZE: 0,
    StepOperation.SEGMENT: None,
}
"""At cache level the partition is there, whether anything of it was stored or not."""
