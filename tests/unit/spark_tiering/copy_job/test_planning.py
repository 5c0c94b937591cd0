"""Planning: the segments read for a plan, and the reasons for those left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.copy_job.planning import look_around, plan_now
from spark_tiering.copy_job.report import hindrances
from spark_tiering.copy_plan.planner import make_plan
from spark_tiering.copy_plan.reasons import NotCopiedReason
from spark_tiering.copy_plan.rules import Budgets, SegmentSelection
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.protocol import UnitLost
from tests.support.builders import tp
from tests.support.partitions.segments import changed, example_partition
from tests.support.tier.copy_plans import cut, image, metadata, new_ids, rules, source
from tests.support.tier.job_parts import NOW_MS, ORDERS, HeldMetadata, job_parts

if TYPE_CHECKING:
    from spark_tiering.copy_job.planning import Read
    from spark_tiering.copy_plan.inputs import SegmentDetails
    from spark_tiering.copy_plan.plan import CopyPlan

OTHER = tp("others", 1)


class CountingUnits(InProcess):
    """Count its units and lose those at an offset in *lost*."""

    def __init__(self, lost: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.rounds: list[list[int]] = []
        self._lost = lost

    def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
        self.rounds.append([unit.listed.base_offset for unit in units])
        return [
            UnitLost(index, "its worker died")
            if unit.listed.base_offset in self._lost
            else super(CountingUnits, self).run_units([unit], fn)[0]
            for index, unit in enumerate(units)
        ]


def planned(engine: CountingUnits | None = None, **parts: Any) -> CopyPlan:
    engine = engine or CountingUnits()
    at = job_parts(open_engine=lambda: engine, **parts)
    return plan_now(at, look_around(at))


def left_out(plan: CopyPlan) -> list[tuple[NotCopiedReason, int]]:
    """Return the reasons and base offsets of the segments left out."""
    return [(run.reason, run.first_offset) for one in plan.partitions for run in one.left_out]


def test_plan_when_made_then_reads_each_segment_once_and_asks_for_what_the_request_says() -> None:
    """The plan reads each rolled segment once, with the request's rules and the present time."""
    engine = CountingUnits()
    budgets = Budgets(objects_max=6)
    plan = planned(engine, prefix="tier/", budgets=budgets, broker_id=5)
    assert engine.rounds == [[0, 120]]
    assert [copy.start_offset for _, copy in plan.in_turn()] == [0, 120]
    assert left_out(plan) == [(NotCopiedReason.ACTIVE, 251)]
    assert (plan.rules.prefix, plan.rules.budgets, plan.rules.broker_id) == ("tier/", budgets, 5)
    assert plan.rules.now_ms == NOW_MS
    assert len({copy.uuid for _, copy in plan.in_turn()}) == 2


def test_plan_when_nothing_is_left_to_copy_then_reads_nothing() -> None:
    """The plan reads no segment that the tier already has or that filters leave out."""
    engine = CountingUnits()
    assert planned(engine, filters=SegmentSelection(kept_local_bytes=10**9)).is_empty
    assert not engine.rounds


def test_plan_when_made_again_then_what_was_read_is_known() -> None:
    """A second plan reads no segment again."""
    engine = CountingUnits()
    known: dict[Read, SegmentDetails] = {}
    at = job_parts(open_engine=lambda: engine)
    first = plan_now(at, look_around(at), known)
    again = plan_now(at, look_around(at), known)
    assert engine.rounds == [[0, 120]]
    assert len(known) == 2
    assert len(again.in_turn()) == len(first.in_turn())


@pytest.mark.parametrize(
    ("budgets", "rounds", "copies"),
    [
        (Budgets(bytes_max=1_000), [[0, 0]], 0),
        (Budgets(bytes_max=20_000), [[0, 0], [120]], 1),
        (Budgets(objects_max=3), [[0, 0], [120]], 1),
        (Budgets(objects_max=9), [[0, 120, 0, 120]], 3),
    ],
    ids=["no-bytes", "bytes", "objects", "more-objects"],
)
def test_budget_limits_what_is_read(budgets: Budgets, rounds: list[list[int]], copies: int) -> None:
    """A plan with a budget reads the segments within it and one more."""
    engine = CountingUnits()
    files = {ORDERS: example_partition(), OTHER: example_partition()}
    plan = planned(engine, files=files, budgets=budgets)
    assert engine.rounds == rounds
    assert len(plan.in_turn()) == copies
    assert not hindrances(plan)


def test_segment_when_unreadable_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """An unreadable segment is left out and reported, with those above it."""
    engine = CountingUnits(lost=(120,))
    plan = planned(engine)
    assert [copy.start_offset for _, copy in plan.in_turn()] == [0]
    assert (NotCopiedReason.NOT_INSPECTED, 120) in left_out(plan)
    assert "orders-3: segment 120 could not be read: its worker died" in caplog.text
    (line,) = hindrances(plan)
    assert line.startswith("orders-3: 120 to 250 (1 segments, 14.5 KiB) cannot be copied, not-insp")


def test_hindrances_when_segments_wait_or_are_not_wanted_then_there_are_none() -> None:
    """Segments that filters leave out or that only have to wait are no hindrance."""
    assert not hindrances(planned())
    assert not hindrances(planned(filters=SegmentSelection(topics=("other*",))))
    assert not hindrances(planned(budgets=Budgets(objects_max=3)))


def test_topic_that_the_source_lacks_when_asked_for_by_name_then_is_a_hindrance() -> None:
    """A topic wanted by name that the source lacks is a hindrance."""
    filters = SegmentSelection(topics=("ordres", "order?", "[p-q]*", "orders"))
    assert hindrances(planned(filters=filters)) == (
        "ordres: no partition of it was found at the source",
    )


@pytest.mark.parametrize("reason", [NotCopiedReason.BROKER_COPIES, NotCopiedReason.COMPACTED])
@pytest.mark.parametrize("topics", [(), ("orders",)], ids=["all-topics", "named"])
def test_topic_by_name_is_a_hindrance(topics: tuple[str, ...], reason: NotCopiedReason) -> None:
    """A topic wanted by name that cannot be copied is a hindrance; in an archive of all, none."""
    is_tiered = reason is NotCopiedReason.BROKER_COPIES
    kept = replace(source(cut(0, 10, 20), is_tiered=is_tiered), is_compacted=not is_tiered)
    filters = SegmentSelection(topics=topics)
    plan = make_plan(rules(filters=filters), metadata(image()), [kept], [], new_ids())
    lines = hindrances(plan)
    assert bool(lines) is bool(topics)
    assert all(reason in line for line in lines)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"metadata": HeldMetadata(absent={ORDERS})}, NotCopiedReason.METADATA_ABSENT),
        (
            {"files": {ORDERS: changed(example_partition(), log=b"\x01" * 9_999)}},
            NotCopiedReason.BLOCKED,
        ),
        (
            {"files": {ORDERS: example_partition().without(".snapshot", "0000.log")}},
            NotCopiedReason.STABILITY_UNKNOWN,
        ),
        (
            {"files": {ORDERS: changed(example_partition(), checkpoint=b"0\n1\n6 251\n")}},
            NotCopiedReason.EPOCH_UNKNOWN,
        ),
    ],
    ids=lambda value: value.value if isinstance(value, NotCopiedReason) else "",
)
def test_f109_hindrance_is_one_line(parts: dict[str, Any], reason: NotCopiedReason) -> None:
    """Each segment that no later run copies is one line with place, size and reason."""
    lines = hindrances(planned(**parts))
    assert [line for line in lines if line.startswith("orders-3: ") and reason in line], lines
    assert not any("\n" in line for line in lines)
