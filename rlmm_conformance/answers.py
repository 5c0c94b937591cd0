"""
Answers as JSON values: which forms an expectation may have, and when two answers are the same.

Listings compare as the format says: `list` and `unreferenced` as sets, an inner list of
`list_epoch` in any order. Everything else compares exactly, by type as well: true is not 1, and 1.0
is not 1.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm_conformance.fields import (
    FieldError,
    Json,
    custom_of,
    custom_text,
    decimal_of,
    epochs_of,
    flag_of,
    int32_of,
    int64_of,
    list_of,
    object_of,
    partition_state_of,
    refuse,
    segment_state_of,
    text_of,
)
from rlmm_conformance.steps import StepOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

APPLIED = "applied"
DROPPED = "dropped"
OK = "ok"

SEGMENT_KEYS = (
    "id",
    "start",
    "end",
    "max_ts",
    "broker",
    "event_ts",
    "epochs",
    "size",
    "custom",
    "state",
    "txn_empty",
)
EPOCH_STATE_KEYS = ("referenced", "unreferenced", "highest")

_EVENTS = frozenset({StepOperation.ADD, StepOperation.UPDATE, StepOperation.PARTITION_DELETE})
_CALLS = frozenset({StepOperation.LOAD, StepOperation.CLEAR, StepOperation.MARK_INITIALIZED})


class ErrorKind(StrEnum):
    """The kinds of error an answer may be, named after what Kafka throws."""

    NULL_ARGUMENT = "null_argument"
    NULL_POINTER = "null_pointer"
    ILLEGAL_ARGUMENT = "illegal_argument"
    ILLEGAL_STATE = "illegal_state"
    NOT_FOUND = "not_found"
    NOT_READY = "not_ready"


def error_answer(kind: ErrorKind) -> Json:
    """The answer that is an error of *kind*."""
    return {"error": str(kind)}


def is_error(answer: Json) -> bool:
    """Whether *answer* has the form of an error."""
    return isinstance(answer, dict) and set(answer) == {"error"}


def check_expectation(op: StepOperation, value: Json) -> Json:
    """The expectation of a step of *op*; raises `FieldError` when *value* cannot be one."""
    if isinstance(value, dict) and "error" in value:
        kind = object_of("expect", value, ("error",))["error"]
        if not isinstance(kind, str) or kind not in set(ErrorKind):
            raise refuse("error", f"one of {', '.join(ErrorKind)}", kind)
        return value
    if op in _EVENTS:
        return _one_of((APPLIED, DROPPED), value)
    if op in _CALLS:
        return _one_of((OK,), value)
    return _query_expectation(op, value)


def _one_of(words: tuple[str, ...], value: Json) -> Json:
    if value not in words:
        raise refuse("expect", f"{' or '.join(map(repr, words))} or an error", value)
    return value


def _query_expectation(op: StepOperation, value: Json) -> Json:
    match op:
        case StepOperation.IS_READY:
            return flag_of("expect", value)
        case StepOperation.SIZE:
            return _whole_number(value)
        case StepOperation.LIST:
            return _labels("expect", value)
        case StepOperation.LIST_EPOCH:
            return _label_groups(value)
        case _:
            return None if value is None else _optional_expectation(op, value)


def _optional_expectation(op: StepOperation, value: Json) -> Json:
    """The expectation of a query that may also find nothing."""
    match op:
        case StepOperation.GET | StepOperation.NEXT_TXN:
            return text_of("expect", value)
        case StepOperation.HIGHEST:
            return int64_of("expect", value)
        case StepOperation.PARTITION_STATE:
            return partition_state_of("expect", value).name
        case StepOperation.SEGMENT:
            return _segment_expectation(value)
        case _:
            return _epoch_state_expectation(value)


def _whole_number(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse("expect", "a whole number", value)
    return value


def _labels(name: str, value: Json) -> Json:
    labels = [text_of(name, label) for label in list_of(name, value)]
    for label, times in Counter(labels).items():
        if times > 1:
            msg = f"'{name}' names {label!r} {times} times"
            raise FieldError(msg)
    return list[Json](labels)


def _label_groups(value: Json) -> Json:
    return [
        _labels("expect", group) if isinstance(group, list) else text_of("expect", group)
        for group in list_of("expect", value)
    ]


def _segment_expectation(value: Json) -> Json:
    fields = dict(object_of("expect", value, SEGMENT_KEYS))
    text_of("id", fields["id"])
    segment_state_of("state", fields["state"])
    flag_of("txn_empty", fields["txn_empty"])
    epochs_of("epochs", fields["epochs"])
    for name in ("start", "end", "max_ts", "event_ts"):
        int64_of(name, fields[name])
    for name in ("broker", "size"):
        int32_of(name, fields[name])
    fields["custom"] = custom_text(custom_of("custom", fields["custom"]))
    return fields


def _epoch_state_expectation(value: Json) -> Json:
    fields = object_of("expect", value, EPOCH_STATE_KEYS)
    referenced = fields["referenced"]
    if not isinstance(referenced, dict):
        raise refuse("referenced", "an object of offset to id", referenced)
    for offset, label in referenced.items():
        int64_of("referenced key", decimal_of("referenced", offset))
        text_of(f"referenced.{offset}", label)
    _labels("unreferenced", fields["unreferenced"])
    if fields["highest"] is not None:
        int64_of("highest", fields["highest"])
    return fields


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
    """
    Whether one sequence of labels satisfies both listings, each of which may leave groups in any
    order.

    Taking any label that both sides allow next is safe: labels of one group on both sides are
    exchangeable.
    """
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
