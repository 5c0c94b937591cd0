"""Tasks of units and their outcomes."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import Uuid
from spark_tiering.executor.segment_writer import OUTCOMES
from spark_tiering.executor.tasks import (
    DETAIL_CHARACTERS_MAX,
    CopyOptions,
    InspectTask,
    UnitOutcome,
    one_line,
)
from spark_tiering.layout.object_names import main_key
from spark_tiering.stores.results import PutRefusal
from tests.support.partitions.segments import example_partition
from tests.support.tier.copy_tasks import FIRST, ORDERS, SECOND, copy_task

EXAMPLE = example_partition()


def test_outcomes_when_sorted_are_done_or_retriable_or_to_be_ended() -> None:
    """Every outcome is exactly one of done, retriable and to be ended."""
    assert {one for one in UnitOutcome if one.is_done} == {UnitOutcome.COPIED, UnitOutcome.FOUND}
    assert {one for one in UnitOutcome if one.is_retriable} == {
        UnitOutcome.UNKNOWN,
        UnitOutcome.STORE_FAILED,
        UnitOutcome.SOURCE_FAILED,
        UnitOutcome.STOPPED,
        UnitOutcome.TIMED_OUT,
    }
    assert not [one for one in UnitOutcome if one.is_done and one.is_retriable]


def test_refusals_of_stores_when_they_end_a_unit_have_an_outcome_each() -> None:
    """Each refusal of a store that ends a unit has an outcome of its own, and none is a success."""
    assert set(OUTCOMES) == set(PutRefusal)
    assert not [one for one in OUTCOMES.values() if one.is_done]


def test_units_when_named_have_a_name_of_their_own() -> None:
    """Units have names that are equal for repeated attempts and differ for anything else."""
    task = copy_task(EXAMPLE)
    other = copy_task(EXAMPLE, uuid=Uuid(bytes(range(1, 17))))
    assert task.unit_id == main_key(task.segment.id, 120) != other.unit_id
    inspected = [InspectTask(ORDERS, EXAMPLE, listed).unit_id for listed in (FIRST, SECOND)]
    assert len({*inspected, task.unit_id}) == 3


@pytest.mark.parametrize("deadline_s", [0.0, -1.0, float("nan")])
def test_task_without_time_when_made_is_refused(deadline_s: float) -> None:
    """A task without time is refused as a planning mistake."""
    with pytest.raises(InvalidArgument):
        copy_task(EXAMPLE, deadline_s=deadline_s)
    with pytest.raises(InvalidArgument):
        InspectTask(ORDERS, EXAMPLE, FIRST, deadline_s=deadline_s)


@pytest.mark.parametrize(
    "options",
    [{"chunk_bytes": 4095}, {"chunk_bytes": 2**26 + 1}, {"level": 0}, {"level": 23}],
    ids=lambda options: next(iter(options)),
)
def test_options_that_make_no_log_are_refused(options: dict[str, int]) -> None:
    """Options with an impossible chunk size or an unknown level are refused."""
    with pytest.raises(InvalidArgument):
        CopyOptions(**options)  # type: ignore[arg-type]  # numbers


def test_detail_when_it_is_told_is_one_line_of_bounded_length() -> None:
    """A detail is one line of bounded length without control characters."""
    assert one_line("a\x1b[31m\nb") == "a?[31m?b"
    assert len(one_line("x" * 10_000)) == DETAIL_CHARACTERS_MAX
