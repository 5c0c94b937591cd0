"""
Steps of a scenario as typed values: the operation of each, without its expectation.

`parse_operation` refuses every field that the format does not name; `request_of` writes every
default, so that an engine behind a pipe need not know them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from rlmm.metadata.outcomes import Level
from rlmm.metadata.segment import Epochs, PartitionDeleteState, SegmentState
from rlmm_conformance.fields import (
    Decimal,
    FieldError,
    Form,
    HexText,
    Int32,
    Int64,
    Json,
    Label,
    PartitionStateName,
    SegmentStateName,
    custom_of,
    custom_text,
    epochs_of,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.segment import SegmentMetadata

DEFAULT_TP = "tp0"


class StepOperation(StrEnum):
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
    """The fields of a segment record under a label; they may be ones that Kafka refuses."""

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
    tp: str
    id: str
    op: StepOperation = StepOperation.SEGMENT


Operation = (
    AddStep | UpdateStep | DeletePartition | PartitionCall | EpochQuery | OffsetQuery | SegmentQuery
)


class SegmentForm(Form, frozen=True):
    id: Label
    start: Int64
    end: Int64
    epochs: dict[Decimal, Int64]
    state: SegmentStateName = "COPY_SEGMENT_STARTED"
    size: Int32 = 1_048_576
    broker: Int32 = 0
    event_ts: Int64 = 0
    max_ts: Int64 = -1
    custom: HexText | None = None
    txn_empty: bool = False

    def fields(self) -> SegmentFields:
        return SegmentFields(
            self.id, self.start, self.end, epochs_of(self.epochs), SegmentState[self.state],
            self.size, self.broker, self.event_ts, self.max_ts, custom_of(self.custom),
            self.txn_empty,
        )  # fmt: skip


class UpdateForm(Form, frozen=True):
    id: Label
    state: SegmentStateName
    broker: Int32 = 0
    event_ts: Int64 = 0
    custom: HexText | None = None

    def fields(self) -> UpdateFields:
        return UpdateFields(
            self.id, SegmentState[self.state], self.broker, self.event_ts, custom_of(self.custom)
        )


class PartitionDeleteForm(Form, frozen=True):
    state: PartitionStateName


class LabelForm(Form, frozen=True):
    id: Label


class EpochForm(Form, frozen=True):
    epoch: Int32


class OffsetForm(Form, frozen=True):
    epoch: Int32
    offset: Int64


FORMS: dict[StepOperation, type[Form]] = {
    StepOperation.ADD: SegmentForm,
    StepOperation.UPDATE: UpdateForm,
    StepOperation.PARTITION_DELETE: PartitionDeleteForm,
    StepOperation.GET: OffsetForm,
    StepOperation.NEXT_TXN: OffsetForm,
    StepOperation.HIGHEST: EpochForm,
    StepOperation.LIST_EPOCH: EpochForm,
    StepOperation.SIZE: EpochForm,
    StepOperation.EPOCH_STATE: EpochForm,
    StepOperation.SEGMENT: LabelForm,
}
"""The arguments of each operation that has any; `tp` and `null` are judged apart."""


def parse_op(step: Mapping[str, Json]) -> StepOperation:
    if "op" not in step:
        raise FieldError("names no 'op'")
    try:
        return StepOperation(cast("str", step["op"]))
    except ValueError as error:
        raise FieldError(f"unknown op {step['op']!r}") from error


def parse_operation(step: Mapping[str, Json], level: Level) -> Operation:
    """Read one step without expectations; raises `FieldError` for an unknown field."""
    op = parse_op(step)
    if level is Level.CACHE and op in STORE_ONLY:
        raise FieldError(f"op '{op}' exists at store level only")
    given = {name: value for name, value in step.items() if name != "op"}
    tp = DEFAULT_TP
    if level is Level.STORE and "tp" in given:
        tp = read(Label, given.pop("tp"))
    if _is_null(op, given):
        return AddStep(tp, None) if op is StepOperation.ADD else UpdateStep(tp, None)
    match read(FORMS.get(op, Form), given):
        case SegmentForm() as form:
            return AddStep(tp, form.fields())
        case UpdateForm() as form:
            return UpdateStep(tp, form.fields())
        case PartitionDeleteForm(state=state):
            return DeletePartition(tp, PartitionDeleteState[state])
        case LabelForm(id=label):
            return SegmentQuery(tp, label)
        case OffsetForm(epoch=epoch, offset=offset):
            return OffsetQuery(op, tp, epoch, offset)
        case EpochForm(epoch=epoch):
            return EpochQuery(op, tp, epoch)
        case _:
            return PartitionCall(op, tp)


def _is_null(op: StepOperation, given: dict[str, Json]) -> bool:
    """Whether the step passes a null argument; takes the flag out of *given*."""
    if op not in {StepOperation.ADD, StepOperation.UPDATE} or "null" not in given:
        return False
    if not read(bool, given.pop("null")):
        return False
    if given:
        raise FieldError(f"'null' stands alone, found beside it: {', '.join(sorted(given))}")
    return True


def request_of(operation: Operation, level: Level) -> dict[str, Json]:
    """Return the operation as JSON with every default; reading it back gives the same operation."""
    request: dict[str, Json] = {"op": str(operation.op)}
    if level is Level.STORE:
        request["tp"] = operation.tp
    match operation:
        case AddStep(segment=None) | UpdateStep(update=None):
            request["null"] = True
        case AddStep(segment=SegmentFields() as segment):
            request |= segment_answer(segment.id, segment)
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


def segment_answer(label: str, segment: SegmentFields | SegmentMetadata) -> dict[str, Json]:
    return {
        "id": label,
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
