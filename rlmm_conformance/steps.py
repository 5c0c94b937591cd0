"""
One operation of a scenario, as typed values: what is asked of an engine, without what is expected
of it.

`parse_operation` is the only way in from JSON and refuses everything that the format does not name;
`request_of` is the way out, with every default filled in, so that an engine behind a pipe need not
know the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from rlmm.metadata.outcomes import Level
from rlmm.metadata.segment import Epochs, PartitionDeleteState, SegmentState
from rlmm_conformance.fields import (
    FieldError,
    Json,
    custom_of,
    custom_text,
    epochs_of,
    flag_of,
    int32_of,
    int64_of,
    partition_state_of,
    segment_state_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_TP = "tp0"


class StepOperation(StrEnum):
    """The operations of the scenario format."""

    ADD = "add"
    UPDATE = "update"
    PARTITION_DELETE = "partition_delete"
    PARTITION_STATE = "partition_state"
    LOAD = "load"
    CLEAR = "clear"
    MARK_INITIALIZED = "mark_initialized"
    IS_READY = "is_ready"
    GET = "get"
    NEXT_TXN = "next_txn"
    HIGHEST = "highest"
    LIST = "list"
    LIST_EPOCH = "list_epoch"
    SIZE = "size"
    SEGMENT = "segment"
    EPOCH_STATE = "epoch_state"


WHITE_BOX = frozenset({StepOperation.EPOCH_STATE, StepOperation.PARTITION_STATE})
"""Questions about the inside, which no caller of Kafka's interface can ask."""
STORE_ONLY = frozenset(
    {
        StepOperation.LOAD,
        StepOperation.CLEAR,
        StepOperation.PARTITION_DELETE,
        StepOperation.PARTITION_STATE,
    }
)


@dataclass(frozen=True, slots=True)
class SegmentFields:
    """The fields of a segment record under a label; it may hold what Kafka refuses."""

    id: str
    start_offset: int
    last_offset: int
    epochs: Epochs
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    size_bytes: int = 1_048_576
    broker_id: int = 0
    event_timestamp_ms: int = 0
    max_timestamp_ms: int = -1
    custom_metadata: bytes | None = None
    txn_index_empty: bool = False


@dataclass(frozen=True, slots=True)
class UpdateFields:
    """The fields of an update record under a label."""

    id: str
    state: SegmentState
    broker_id: int = 0
    event_timestamp_ms: int = 0
    custom_metadata: bytes | None = None


@dataclass(frozen=True, slots=True)
class AddStep:
    """A segment record arrives; None is a null argument."""

    tp: str
    segment: SegmentFields | None
    op: StepOperation = StepOperation.ADD


@dataclass(frozen=True, slots=True)
class UpdateStep:
    """An update record arrives; None is a null argument."""

    tp: str
    update: UpdateFields | None
    op: StepOperation = StepOperation.UPDATE


@dataclass(frozen=True, slots=True)
class DeletePartition:
    """A partition-delete record arrives."""

    tp: str
    state: PartitionDeleteState
    op: StepOperation = StepOperation.PARTITION_DELETE


@dataclass(frozen=True, slots=True)
class PartitionCall:
    """An operation whose only argument is the user partition."""

    op: StepOperation
    tp: str


@dataclass(frozen=True, slots=True)
class EpochQuery:
    """A question about one epoch: highest, list_epoch, size, epoch_state."""

    op: StepOperation
    tp: str
    epoch: int


@dataclass(frozen=True, slots=True)
class OffsetQuery:
    """A question about an offset in an epoch: get, next_txn."""

    op: StepOperation
    tp: str
    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class SegmentQuery:
    """The question for all fields of one live segment."""

    tp: str
    id: str
    op: StepOperation = StepOperation.SEGMENT


Operation = (
    AddStep | UpdateStep | DeletePartition | PartitionCall | EpochQuery | OffsetQuery | SegmentQuery
)

_READERS = {
    "id": text_of,
    "start": int64_of,
    "end": int64_of,
    "epochs": epochs_of,
    "state": segment_state_of,
    "size": int32_of,
    "broker": int32_of,
    "event_ts": int64_of,
    "max_ts": int64_of,
    "custom": custom_of,
    "txn_empty": flag_of,
    "epoch": int32_of,
    "offset": int64_of,
}

_ATTRIBUTES = {
    "start": "start_offset",
    "end": "last_offset",
    "size": "size_bytes",
    "broker": "broker_id",
    "event_ts": "event_timestamp_ms",
    "max_ts": "max_timestamp_ms",
    "custom": "custom_metadata",
    "txn_empty": "txn_index_empty",
}

_NO_ARGUMENTS: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
_ONE_EPOCH: tuple[tuple[str, ...], tuple[str, ...]] = (("epoch",), ())
_EPOCH_AND_OFFSET: tuple[tuple[str, ...], tuple[str, ...]] = (("epoch", "offset"), ())
_SEGMENT_OPTIONAL = ("state", "size", "broker", "event_ts", "max_ts", "custom", "txn_empty")

ARGUMENTS: dict[StepOperation, tuple[tuple[str, ...], tuple[str, ...]]] = {
    StepOperation.ADD: (("id", "start", "end", "epochs"), _SEGMENT_OPTIONAL),
    StepOperation.UPDATE: (("id", "state"), ("broker", "event_ts", "custom")),
    StepOperation.PARTITION_DELETE: (("state",), ()),
    StepOperation.PARTITION_STATE: _NO_ARGUMENTS,
    StepOperation.LOAD: _NO_ARGUMENTS,
    StepOperation.CLEAR: _NO_ARGUMENTS,
    StepOperation.MARK_INITIALIZED: _NO_ARGUMENTS,
    StepOperation.IS_READY: _NO_ARGUMENTS,
    StepOperation.GET: _EPOCH_AND_OFFSET,
    StepOperation.NEXT_TXN: _EPOCH_AND_OFFSET,
    StepOperation.HIGHEST: _ONE_EPOCH,
    StepOperation.LIST: _NO_ARGUMENTS,
    StepOperation.LIST_EPOCH: _ONE_EPOCH,
    StepOperation.SIZE: _ONE_EPOCH,
    StepOperation.SEGMENT: (("id",), ()),
    StepOperation.EPOCH_STATE: _ONE_EPOCH,
}
"""Each operation's required and optional arguments; `tp` and `null` are judged apart."""


def parse_op(step: Mapping[str, Json]) -> StepOperation:
    """The operation a step names; raises `FieldError`."""
    if "op" not in step:
        msg = "names no 'op'"
        raise FieldError(msg)
    try:
        return StepOperation(cast("str", step["op"]))
    except ValueError as error:
        msg = f"unknown op {step['op']!r}"
        raise FieldError(msg) from error


def parse_operation(step: Mapping[str, Json], level: Level) -> Operation:
    """Read one step without its expectations; raises `FieldError` for what the format lacks."""
    op = parse_op(step)
    if level is Level.CACHE and op in STORE_ONLY:
        msg = f"op '{op}' exists at store level only"
        raise FieldError(msg)
    given = {name: value for name, value in step.items() if name != "op"}
    tp = DEFAULT_TP
    if level is Level.STORE and "tp" in given:
        tp = text_of("tp", given.pop("tp"))
    if _is_null(op, given):
        return AddStep(tp, None) if op is StepOperation.ADD else UpdateStep(tp, None)
    return _operation(op, tp, _arguments(op, given))


def _is_null(op: StepOperation, given: dict[str, Json]) -> bool:
    """Whether the step passes a null argument; takes the flag out of *given*."""
    if op not in {StepOperation.ADD, StepOperation.UPDATE} or "null" not in given:
        return False
    if not flag_of("null", given.pop("null")):
        return False
    if given:
        msg = f"'null' stands alone, found beside it: {', '.join(sorted(given))}"
        raise FieldError(msg)
    return True


def _arguments(op: StepOperation, given: Mapping[str, Json]) -> dict[str, Any]:
    """The checked arguments of *op*, by their attribute names."""
    required, optional = ARGUMENTS[op]
    for name in required:
        if name not in given:
            msg = f"op '{op}' misses argument '{name}'"
            raise FieldError(msg)
    for name in given:
        if name not in required and name not in optional:
            msg = f"op '{op}' has no field '{name}'"
            raise FieldError(msg)
    readers = _READERS
    if op is StepOperation.PARTITION_DELETE:
        readers = {**_READERS, "state": partition_state_of}
    return {
        _ATTRIBUTES.get(name, name): readers[name](name, value) for name, value in given.items()
    }


def _operation(op: StepOperation, tp: str, arguments: dict[str, Any]) -> Operation:
    match op:
        case StepOperation.ADD:
            return AddStep(tp, SegmentFields(**arguments))
        case StepOperation.UPDATE:
            return UpdateStep(tp, UpdateFields(**arguments))
        case StepOperation.PARTITION_DELETE:
            return DeletePartition(tp, **arguments)
        case StepOperation.SEGMENT:
            return SegmentQuery(tp, **arguments)
        case StepOperation.GET | StepOperation.NEXT_TXN:
            return OffsetQuery(op, tp, **arguments)
        case (
            StepOperation.HIGHEST
            | StepOperation.LIST_EPOCH
            | StepOperation.SIZE
            | StepOperation.EPOCH_STATE
        ):
            return EpochQuery(op, tp, **arguments)
        case _:
            return PartitionCall(op, tp)


def request_of(operation: Operation, level: Level) -> dict[str, Json]:
    """The operation as JSON, every default filled in; reading it back gives the same operation."""
    request: dict[str, Json] = {"op": str(operation.op)}
    if level is Level.STORE:
        request["tp"] = operation.tp
    match operation:
        case AddStep(segment=None) | UpdateStep(update=None):
            request["null"] = True
        case AddStep(segment=SegmentFields() as segment):
            request |= segment_answer(segment)
        case UpdateStep(update=UpdateFields() as update):
            request |= {
                "id": update.id,
                "state": update.state.name,
                "broker": update.broker_id,
                "event_ts": update.event_timestamp_ms,
                "custom": custom_text(update.custom_metadata),
            }
        case DeletePartition(state=state):
            request["state"] = state.name
        case SegmentQuery(id=label):
            request["id"] = label
        case OffsetQuery(epoch=epoch, offset=offset):
            request |= {"epoch": epoch, "offset": offset}
        case EpochQuery(epoch=epoch):
            request["epoch"] = epoch
        case PartitionCall():
            pass
    return request


def segment_answer(segment: SegmentFields) -> dict[str, Json]:
    """All fields of a segment, as the answer to `segment` gives them."""
    return {
        "id": segment.id,
        "start": segment.start_offset,
        "end": segment.last_offset,
        "max_ts": segment.max_timestamp_ms,
        "broker": segment.broker_id,
        "event_ts": segment.event_timestamp_ms,
        "epochs": {str(epoch): offset for epoch, offset in segment.epochs},
        "size": segment.size_bytes,
        "custom": custom_text(segment.custom_metadata),
        "state": segment.state.name,
        "txn_empty": segment.txn_index_empty,
    }
