"""When two answers are the same, and what an expectation may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm_conformance.answers import agrees, check_expectation, same_answer
from rlmm_conformance.fields import FieldError
from rlmm_conformance.steps import Op

if TYPE_CHECKING:
    from rlmm_conformance.fields import Json

STATE: dict[str, Json] = {"referenced": {"0": "a"}, "unreferenced": ["b", "c"], "highest": 9}
SEGMENT: dict[str, Json] = {
    "id": "a", "start": 0, "end": 9, "max_ts": -1, "broker": 0, "event_ts": 0, "epochs": {"0": 0},
    "size": 1, "custom": "0a", "state": "COPY_SEGMENT_STARTED", "txn_empty": False,
}  # fmt: skip

AGREEING: list[tuple[str, Op, Json, Json]] = [
    ("list in another order", Op.LIST, ["a", "b"], ["b", "a"]),
    ("inner list in another order", Op.LIST_EPOCH, [["a", "b"], "c"], ["b", "a", "c"]),
    ("inner list at the end", Op.LIST_EPOCH, ["a", ["b", "c"]], ["a", "c", "b"]),
    ("unreferenced in another order", Op.EPOCH_STATE, STATE, {**STATE, "unreferenced": ["c", "b"]}),
    ("keys in another order", Op.SEGMENT, SEGMENT, dict(reversed(SEGMENT.items()))),
    ("null", Op.GET, None, None),
    ("error", Op.LIST, {"error": "not_found"}, {"error": "not_found"}),
]

DIFFERING: list[tuple[str, Op, Json, Json]] = [
    ("one missing", Op.LIST, ["a", "b"], ["a"]),
    ("one twice", Op.LIST, ["a"], ["a", "a"]),
    ("not labels", Op.LIST, ["1"], [1]),
    ("not a list", Op.LIST, [], None),
    ("epoch listing in another order", Op.LIST_EPOCH, ["a", "b"], ["b", "a"]),
    ("out of its inner list", Op.LIST_EPOCH, [["a", "b"], "c"], ["a", "c", "b"]),
    ("nested answer of an engine", Op.LIST_EPOCH, [["a", "b"], "c"], [["a", "b"], "c"]),
    ("epoch listing too long", Op.LIST_EPOCH, ["a"], ["a", "b"]),
    ("epoch listing too short", Op.LIST_EPOCH, ["a", "b"], ["a"]),
    ("true is not 1", Op.HIGHEST, 1, True),
    ("1 is not true", Op.IS_READY, True, 1),
    ("1.0 is not 1", Op.SIZE, 1, 1.0),
    ("zero is not null", Op.HIGHEST, None, 0),
    ("false is not null", Op.GET, None, False),
    ("another error", Op.GET, {"error": "not_found"}, {"error": "not_ready"}),
    ("an error is not null", Op.GET, None, {"error": "not_found"}),
    ("a field of another type", Op.SEGMENT, SEGMENT, {**SEGMENT, "txn_empty": 0}),
    ("a field less", Op.SEGMENT, SEGMENT, {k: v for k, v in SEGMENT.items() if k != "custom"}),
    ("a field more", Op.SEGMENT, SEGMENT, {**SEGMENT, "colour": "red"}),
    ("empty is not absent", Op.SEGMENT, {**SEGMENT, "custom": None}, {**SEGMENT, "custom": ""}),
    ("referenced differs", Op.EPOCH_STATE, STATE, {**STATE, "referenced": {"1": "a"}}),
    ("unreferenced twice", Op.EPOCH_STATE, STATE, {**STATE, "unreferenced": ["b", "c", "c"]}),
    ("no unreferenced", Op.EPOCH_STATE, STATE, {"referenced": {"0": "a"}, "highest": 9}),
]


@pytest.mark.parametrize(
    ("op", "expected", "actual"),
    [case[1:] for case in AGREEING],
    ids=[case[0] for case in AGREEING],
)
def test_answer_when_it_says_the_same_agrees(op: Op, expected: Json, actual: Json) -> None:
    """Order does not count where the format says so, and in the keys of an object."""
    assert agrees(op, expected, actual)


@pytest.mark.parametrize(
    ("op", "expected", "actual"),
    [case[1:] for case in DIFFERING],
    ids=[case[0] for case in DIFFERING],
)
def test_answer_when_it_says_something_else_differs(op: Op, expected: Json, actual: Json) -> None:
    """Everything but the named freedoms counts, types included."""
    assert not agrees(op, expected, actual)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([["a", "b", "c"]], ["a", ["c", "b"]], True),
        ([["a", "b"], "c"], ["a", ["b", "c"]], True),
        ([["a", "b"], "c"], [["a", "c"], "b"], False),
        ([["a", "b"], "c"], ["c", ["a", "b"]], False),
        (["a", "b"], [["a", "c"]], False),
        ([["a", "b"]], ["a"], False),
    ],
    ids=["wider", "overlapping", "crossing", "contradicting", "other", "shorter"],
)
def test_listings_when_both_leave_orders_open_are_the_same_if_one_order_fits_both(
    left: Json, right: Json, same: bool
) -> None:
    """Two listings with inner lists say the same when some order of ids satisfies both."""
    assert same_answer(Op.LIST_EPOCH, left, right) is same
    assert same_answer(Op.LIST_EPOCH, right, left) is same


@pytest.mark.parametrize("op", Op)
def test_expectation_when_it_is_an_error_is_taken_for_every_operation(op: Op) -> None:
    """Any operation may be expected to fail with a kind that exists, and with no other."""
    assert check_expectation(op, {"error": "not_ready"}) == {"error": "not_ready"}
    for bad in ({"error": "no_idea"}, {"error": None}, {"error": "not_ready", "why": "x"}):
        with pytest.raises(FieldError):
            check_expectation(op, dict[str, "Json"](bad))


@pytest.mark.parametrize(
    ("op", "value"),
    [
        (Op.ADD, "ok"),
        (Op.UPDATE, None),
        (Op.LOAD, "applied"),
        (Op.IS_READY, "true"),
        (Op.IS_READY, None),
        (Op.GET, 5),
        (Op.GET, ""),
        (Op.HIGHEST, "5"),
        (Op.HIGHEST, True),
        (Op.SIZE, None),
        (Op.SIZE, 1.5),
        (Op.LIST, None),
        (Op.LIST, [["a"]]),
        (Op.LIST, ["a", "a"]),
        (Op.LIST_EPOCH, [[["a"]]]),
        (Op.LIST_EPOCH, [1]),
        (Op.PARTITION_STATE, "COPY_SEGMENT_STARTED"),
        (Op.SEGMENT, {"id": "a"}),
        (Op.SEGMENT, {**SEGMENT, "state": "GONE"}),
        (Op.SEGMENT, {**SEGMENT, "custom": "0"}),
        (Op.SEGMENT, {**SEGMENT, "start": True}),
        (Op.EPOCH_STATE, {"referenced": {}, "unreferenced": []}),
        (Op.EPOCH_STATE, {**STATE, "referenced": {"x": "a"}}),
        (Op.EPOCH_STATE, {**STATE, "highest": "9"}),
        (Op.EPOCH_STATE, []),
    ],
)
def test_expectation_when_no_answer_could_meet_it_is_refused(op: Op, value: Json) -> None:
    """An expectation of the wrong form is bad input, not a failing step."""
    with pytest.raises(FieldError):
        check_expectation(op, value)


def test_expectation_when_custom_metadata_has_large_letters_is_read_with_small_ones() -> None:
    """Hex has one form in answers."""
    assert check_expectation(Op.SEGMENT, {**SEGMENT, "custom": "0A"}) == SEGMENT
