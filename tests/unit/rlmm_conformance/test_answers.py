"""The equality of two answers, and the forms of an expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm_conformance.answers import agrees, check_expectation, same_answer
from rlmm_conformance.fields import FieldError
from rlmm_conformance.steps import StepOperation

if TYPE_CHECKING:
    from rlmm_conformance.fields import Json

STATE: dict[str, Json] = {"referenced": {"0": "a"}, "unreferenced": ["b", "c"], "highest": 9}
SEGMENT: dict[str, Json] = {
    "id": "a", "start": 0, "end": 9, "max_ts": -1, "broker": 0, "event_ts": 0, "epochs": {"0": 0},
    "size": 1, "custom": "0a", "state": "COPY_SEGMENT_STARTED", "txn_empty": False,
}  # fmt: skip

AGREEING: dict[str, tuple[StepOperation, Json, Json]] = {
    "list in another order": (StepOperation.LIST, ["a", "b"], ["b", "a"]),
    "inner list in another order": (
        StepOperation.LIST_EPOCH, [["a", "b"], "c"], ["b", "a", "c"],
    ),
    "inner list at the end": (StepOperation.LIST_EPOCH, ["a", ["b", "c"]], ["a", "c", "b"]),
    "unreferenced in another order": (
        StepOperation.EPOCH_STATE, STATE, {**STATE, "unreferenced": ["c", "b"]},
    ),
    "keys in another order": (StepOperation.SEGMENT, SEGMENT, dict(reversed(SEGMENT.items()))),
    "null": (StepOperation.GET, None, None),
    "error": (StepOperation.LIST, {"error": "not_found"}, {"error": "not_found"}),
}  # fmt: skip
DIFFERING: dict[str, tuple[StepOperation, Json, Json]] = {
    "one missing": (StepOperation.LIST, ["a", "b"], ["a"]),
    "one twice": (StepOperation.LIST, ["a"], ["a", "a"]),
    "not labels": (StepOperation.LIST, ["1"], [1]),
    "not a list": (StepOperation.LIST, [], None),
    "epoch listing in another order": (StepOperation.LIST_EPOCH, ["a", "b"], ["b", "a"]),
    "out of its inner list": (StepOperation.LIST_EPOCH, [["a", "b"], "c"], ["a", "c", "b"]),
    "nested answer of an engine": (
        StepOperation.LIST_EPOCH, [["a", "b"], "c"], [["a", "b"], "c"],
    ),
    "epoch listing too long": (StepOperation.LIST_EPOCH, ["a"], ["a", "b"]),
    "epoch listing too short": (StepOperation.LIST_EPOCH, ["a", "b"], ["a"]),
    "true is not 1": (StepOperation.HIGHEST, 1, True),
    "1 is not true": (StepOperation.IS_READY, True, 1),
    "1.0 is not 1": (StepOperation.SIZE, 1, 1.0),
    "zero is not null": (StepOperation.HIGHEST, None, 0),
    "false is not null": (StepOperation.GET, None, False),
    "another error": (StepOperation.GET, {"error": "not_found"}, {"error": "not_ready"}),
    "an error is not null": (StepOperation.GET, None, {"error": "not_found"}),
    "a field of another type": (StepOperation.SEGMENT, SEGMENT, {**SEGMENT, "txn_empty": 0}),
    "a field less": (
        StepOperation.SEGMENT, SEGMENT, {k: v for k, v in SEGMENT.items() if k != "custom"},
    ),
    "a field more": (StepOperation.SEGMENT, SEGMENT, {**SEGMENT, "colour": "red"}),
    "empty is not absent": (
        StepOperation.SEGMENT, {**SEGMENT, "custom": None}, {**SEGMENT, "custom": ""},
    ),
    "referenced differs": (StepOperation.EPOCH_STATE, STATE, {**STATE, "referenced": {"1": "a"}}),
    "unreferenced twice": (
        StepOperation.EPOCH_STATE, STATE, {**STATE, "unreferenced": ["b", "c", "c"]},
    ),
    "no unreferenced": (
        StepOperation.EPOCH_STATE, STATE, {"referenced": {"0": "a"}, "highest": 9},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("op", "expected", "actual", "is_same"),
    [
        pytest.param(*case, is_same, id=name)
        for is_same, cases in ((True, AGREEING), (False, DIFFERING))
        for name, case in cases.items()
    ],
)
def test_answer_when_compared_agrees_but_for_the_named_freedoms_only_if_it_is_the_same(
    op: StepOperation, expected: Json, actual: Json, is_same: bool
) -> None:
    """Orders of object keys and of sets do not count; everything else does, types included."""
    assert agrees(op, expected, actual) is is_same


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
def test_listings_when_one_order_fits_both_are_equal(left: Json, right: Json, same: bool) -> None:
    """Two listings with inner lists say the same when some order of ids satisfies both."""
    assert same_answer(StepOperation.LIST_EPOCH, left, right) is same
    assert same_answer(StepOperation.LIST_EPOCH, right, left) is same


@pytest.mark.parametrize("op", StepOperation)
def test_expectation_when_it_is_an_error_is_taken_for_every_operation(op: StepOperation) -> None:
    """Any operation may be expected to fail with a kind that exists, and with no other."""
    assert check_expectation(op, {"error": "not_ready"}) == {"error": "not_ready"}
    for bad in ({"error": "no_idea"}, {"error": None}, {"error": "not_ready", "why": "x"}):
        with pytest.raises(FieldError):
            check_expectation(op, dict[str, "Json"](bad))


@pytest.mark.parametrize(
    ("op", "value"),
    [
        (StepOperation.ADD, "ok"),
        (StepOperation.UPDATE, None),
        (StepOperation.LOAD, "applied"),
        (StepOperation.IS_READY, "true"),
        (StepOperation.IS_READY, None),
        (StepOperation.GET, 5),
        (StepOperation.GET, ""),
        (StepOperation.HIGHEST, "5"),
        (StepOperation.HIGHEST, True),
        (StepOperation.SIZE, None),
        (StepOperation.SIZE, 1.5),
        (StepOperation.LIST, None),
        (StepOperation.LIST, [["a"]]),
        (StepOperation.LIST, ["a", "a"]),
        (StepOperation.LIST_EPOCH, [[["a"]]]),
        (StepOperation.LIST_EPOCH, [1]),
        (StepOperation.PARTITION_STATE, "COPY_SEGMENT_STARTED"),
        (StepOperation.SEGMENT, {"id": "a"}),
        (StepOperation.SEGMENT, {**SEGMENT, "state": "GONE"}),
        (StepOperation.SEGMENT, {**SEGMENT, "custom": "0"}),
        (StepOperation.SEGMENT, {**SEGMENT, "start": True}),
        (StepOperation.EPOCH_STATE, {"referenced": {}, "unreferenced": []}),
        (StepOperation.EPOCH_STATE, {**STATE, "referenced": {"x": "a"}}),
        (StepOperation.EPOCH_STATE, {**STATE, "highest": "9"}),
        (StepOperation.EPOCH_STATE, []),
    ],
)
def test_expectation_when_impossible_is_refused(op: StepOperation, value: Json) -> None:
    """An expectation of the wrong form is bad input, not a failing step."""
    with pytest.raises(FieldError):
        check_expectation(op, value)


def test_expectation_when_custom_metadata_has_large_letters_is_read_with_small_ones() -> None:
    """Hex has one form in answers."""
    assert check_expectation(StepOperation.SEGMENT, {**SEGMENT, "custom": "0A"}) == SEGMENT
