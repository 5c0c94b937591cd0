"""
Answers as JSON values: the forms of expectations, and when two answers are the same.

`list` and `unreferenced` compare as sets, an inner list of `list_epoch` in any order, and
everything else exactly, by type as well: true is not 1, and 1.0 is not 1.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

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
from rlmm_conformance.steps import StepOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

APPLIED = "applied"
DROPPED = "dropped"
OK = "ok"


class ErrorKind(StrEnum):
    """The kinds of error an answer may be, named after Kafka's exceptions."""

    NULL_ARGUMENT = "null_argument"
    NULL_POINTER = "null_pointer"
    ILLEGAL_ARGUMENT = "illegal_argument"
    ILLEGAL_STATE = "illegal_state"
    NOT_FOUND = "not_found"
    NOT_READY = "not_ready"


def error_answer(kind: ErrorKind) -> Json:
    return {"error": str(kind)}


def is_error(answer: Json) -> bool:
    return isinstance(answer, dict) and set(answer) == {"error"}


class ErrorAnswer(Form, frozen=True):
    error: ErrorKind


class SegmentAnswer(Form, frozen=True):
    id: Label
    start: Int64
    end: Int64
    max_ts: Int64
    broker: Int32
    event_ts: Int64
    epochs: dict[Decimal, Int64]
    size: Int32
    custom: HexText | None
    state: SegmentStateName
    txn_empty: bool

    def __post_init__(self) -> None:
        epochs_of(self.epochs)


class EpochStateAnswer(Form, frozen=True):
    """The inside of one epoch, as a white-box question returns it."""

    referenced: dict[Decimal, Label]
    unreferenced: list[Label]
    highest: Int64 | None

    def __post_init__(self) -> None:
        for offset in self.referenced:
            read(Int64, int(offset))
        _check_unique(self.unreferenced)


_Event = Literal["applied", "dropped"]
_Call = Literal["ok"]
_EXPECTATIONS: dict[StepOperation, object] = {
    StepOperation.ADD: _Event,
    StepOperation.UPDATE: _Event,
    StepOperation.PARTITION_DELETE: _Event,
    StepOperation.LOAD: _Call,
    StepOperation.CLEAR: _Call,
    StepOperation.MARK_INITIALIZED: _Call,
    StepOperation.IS_READY: bool,
    StepOperation.SIZE: int,
    StepOperation.LIST: list[Label],
    StepOperation.LIST_EPOCH: list[Label | list[Label]],
    StepOperation.GET: Label | None,
    StepOperation.NEXT_TXN: Label | None,
    StepOperation.HIGHEST: Int64 | None,
    StepOperation.PARTITION_STATE: PartitionStateName | None,
    StepOperation.SEGMENT: SegmentAnswer | None,
    StepOperation.EPOCH_STATE: EpochStateAnswer | None,
}
"""The form of the answer to each operation, where it is no error."""


def check_expectation(op: StepOperation, value: Json) -> Json:
    """Return the expectation of a step of *op*; raises `FieldError` when *value* cannot be one."""
    is_an_error = isinstance(value, dict) and "error" in value
    try:
        found: object = read(ErrorAnswer if is_an_error else _EXPECTATIONS[op], value)
        listings = [value] if op is StepOperation.LIST else value
        if op in {StepOperation.LIST, StepOperation.LIST_EPOCH} and isinstance(listings, list):
            for labels in listings:
                _check_unique(labels if isinstance(labels, list) else [])
    except FieldError as error:
        raise FieldError(f"'expect': {error}") from error
    if isinstance(found, SegmentAnswer) and isinstance(value, dict):
        return {**value, "custom": custom_text(custom_of(found.custom))}
    return value


def _check_unique(labels: Sequence[object]) -> None:
    for label, times in Counter(labels).items():
        if times > 1:
            raise FieldError(f"names {label!r} {times} times")


def same_answer(op: StepOperation, left: Json, right: Json) -> bool:
    """Whether two answers to *op* say the same; either side may hold inner lists."""
    if is_error(left) or is_error(right):
        return identical(left, right)
    if op is StepOperation.LIST:
        return _same_labels(left, right)
    if op is StepOperation.LIST_EPOCH:
        return isinstance(left, list) and isinstance(right, list) and _same_order(left, right)
    if op is StepOperation.EPOCH_STATE and isinstance(left, dict) and isinstance(right, dict):
        return (
            identical(_without(left, "unreferenced"), _without(right, "unreferenced"))
            and ("unreferenced" in left) == ("unreferenced" in right)
            and _same_labels(left.get("unreferenced"), right.get("unreferenced"))
        )
    return identical(left, right)


def agrees(op: StepOperation, expected: Json, actual: Json) -> bool:
    """Whether an engine's answer meets the expectation; an engine's listing has no inner lists."""
    if op is StepOperation.LIST_EPOCH and isinstance(actual, list):
        return all(isinstance(label, str) for label in actual) and same_answer(op, expected, actual)
    return same_answer(op, expected, actual)


def _without(fields: dict[str, Json], name: str) -> Json:
    return {key: value for key, value in fields.items() if key != name}


def identical(left: Json, right: Json) -> bool:
    """Equal by value and type, all the way down; the order of an object's keys does not count."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(identical(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(identical, left, right))
    return type(left) is type(right) and left == right


def _same_labels(left: Json, right: Json) -> bool:
    """Equal as sets; a label that comes twice is never right."""
    if not isinstance(left, list) or not isinstance(right, list):
        return False
    if not all(isinstance(label, str) for label in (*left, *right)):
        return False
    return sorted(map(str, left)) == sorted(map(str, right))


def _same_order(left: Sequence[Json], right: Sequence[Json]) -> bool:
    """Whether one order satisfies both listings; a label that both allow may be next."""
    left_groups, right_groups = _groups(left), _groups(right)
    while left_groups and right_groups:
        common = left_groups[0] & right_groups[0]
        if not common:
            return False
        for groups in (left_groups, right_groups):
            groups[0] -= common
            if not groups[0]:
                groups.pop(0)
    return not left_groups and not right_groups


def _groups(listing: Sequence[Json]) -> list[Counter[str]]:
    groups = [
        Counter(map(str, group)) if isinstance(group, list) else Counter([str(group)])
        for group in listing
    ]
    return [group for group in groups if group]
