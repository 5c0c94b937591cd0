"""Job hands: tasks, results, claims and objects of a real job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import StoreUnavailable
from rlmm.metadata.ids import SegmentId
from spark_tiering.copy_job.job_actions import CLAIM_AGE_MS, CopyJobActions, NoFiles
from spark_tiering.copy_job.planning import look_around, plan_now
from spark_tiering.copy_job.request import WaitLimits
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.tasks import CopyOptions, CopyResult, UnitOutcome
from spark_tiering.executor.throttle import PaceLimits
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.job_registry.records import JobRecords
from spark_tiering.layout.object_names import object_keys
from tests.support.builders import tp
from tests.support.stores.memory_store import MemoryStore
from tests.support.tier.job_parts import JOB_ID, NOW_MS, ORDERS, HeldMetadata, job_parts

if TYPE_CHECKING:
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.plan import CopyPlan


class HeldClaims:
    """Answer whether a topic is this job's, or fail, and record the allowed age of the answer."""

    def __init__(self, answer: bool | StoreUnavailable) -> None:
        self.asked: list[tuple[JobTopic, int]] = []
        self._answer = answer

    def check(self, topic: JobTopic, *, younger_ms: int = 0) -> bool:
        self.asked.append((topic, younger_ms))
        if isinstance(self._answer, StoreUnavailable):
            raise self._answer
        return self._answer


class TwoSlots(InProcess):
    def __init__(self, *results: CopyResult | UnitLost) -> None:
        super().__init__(slots=2)
        self.results = results
        self.sent: list[Any] = []

    def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
        if not self.results:
            return InProcess().run_units(units, fn, on_result)
        self.sent += units
        for result in self.results:
            on_result(result)
        return list(self.results)


def hands_of(
    at: CopyJobContext, claims: HeldClaims | None = None, plan: CopyPlan | None = None
) -> tuple[CopyJobActions, CopyPlan]:
    seen = look_around(at)
    plan = plan or plan_now(at, seen)
    return CopyJobActions(at, plan, seen, claims or HeldClaims(True)), plan  # type: ignore[arg-type]


def test_task_when_made_then_says_what_was_planned_and_what_was_asked_for() -> None:
    """A task carries source, store, prefix, options, its share of the limit and deadline."""
    at = job_parts(
        prefix="tier/",
        options=CopyOptions(is_compressed=True),
        pace=PaceLimits(1e9, 1e6),
        waits=WaitLimits(unit_s=77.0),
        broker_id=5,
        open_engine=TwoSlots,
    )
    hands, plan = hands_of(at)
    copy = plan.in_turn()[1][1]
    event = hands.started_event(ORDERS, copy)
    assert event.event_timestamp_ms == NOW_MS
    task = hands.unit(ORDERS, copy, event)
    assert task.segment == event
    assert (task.prefix, task.job_id, task.deadline_s) == ("tier/", JOB_ID, 77.0)
    assert task.options.is_compressed
    assert task.pace == PaceLimits(5e8, 5e5)
    assert task.files.facts()
    assert task.store == at.request.store
    assert task.pause_key == f"tier/rlmm-jobs/jobs/{JOB_ID}/pause"


def test_units_find_the_stop_mark_of_any_process(caplog: pytest.LogCaptureFixture) -> None:
    """Units find the stop mark of any process; a refused mark is reported."""
    store = MemoryStore()
    at = job_parts(store=store, prefix="tier/")
    hands, plan = hands_of(at)
    copy = plan.in_turn()[0][1]
    task = hands.unit(ORDERS, copy, hands.started_event(ORDERS, copy))
    hands.stop_units("SIGTERM")
    assert b'"by":"SIGTERM"' in store.objects[task.pause_key]
    assert JobRecords(at.jobs, JOB_ID).is_asked_to_stop()

    def fail(name: str, key: str) -> None:
        raise StoreUnavailable("no answer")

    store.before = fail
    hands.stop_units("SIGTERM")
    assert "copies that wait cannot be told" in caplog.text


def test_event_of_a_copy_that_is_open_when_asked_for_then_is_the_one_that_opened_it() -> None:
    """The event of an open copy has the time of the event in the log that opened it."""
    metadata = HeldMetadata()
    at = job_parts(metadata=metadata)
    _, plan = hands_of(at)
    copy = plan.in_turn()[0][1]
    opened = plan.started_event(ORDERS, copy, 5)
    metadata.segments = [opened]
    hands, _ = hands_of(at, plan=plan)
    assert hands.started_event(ORDERS, copy) == opened


def test_task_of_a_partition_that_the_source_lost_when_made_then_has_no_files() -> None:
    """A partition that the source lost has no files; whole objects need none."""
    hands, plan = hands_of(job_parts())
    copy = plan.in_turn()[0][1]
    elsewhere = tp("elsewhere", 1)
    task = hands.unit(elsewhere, copy, hands.started_event(elsewhere, copy))
    assert isinstance(task.files, NoFiles)
    assert (task.files.facts(), task.files.read("x", 0, 1), task.log_start) == ({}, b"", None)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (True, ""),
        (False, "topic orders is not this job's any more"),
        (StoreUnavailable("away"), "topic orders: the store did not tell whose it is: away"),
    ],
    ids=["held", "lost", "unknown"],
)
@pytest.mark.parametrize("mode", CopyMode)
def test_topic_is_ours_only_by_the_store(
    answer: bool | StoreUnavailable, why: str, mode: CopyMode
) -> None:
    """A job publishes only where the store confirms its claim, anew each time for brokers."""
    claims, at = HeldClaims(answer), job_parts()
    _, plan = hands_of(at)
    hands, _ = hands_of(at, claims, replace(plan, rules=replace(plan.rules, mode=mode)))
    assert hands.why_not_ours(ORDERS) == why
    age_ms = 0 if mode is CopyMode.ADOPT else CLAIM_AGE_MS
    assert claims.asked == [(JobTopic("orders", ORDERS.topic_id), age_ms)]


def test_results_when_they_come_back_then_each_is_told_by_its_segment() -> None:
    """Results belong to their segments in any order; a lost task is a text."""
    engine = TwoSlots()
    at = job_parts(open_engine=lambda: engine)
    hands, plan = hands_of(at)
    units = [
        hands.unit(ORDERS, copy, hands.started_event(ORDERS, copy)) for _, copy in plan.in_turn()
    ]
    done = CopyResult(units[1].unit_id, UnitOutcome.COPIED, "")
    engine.results = (done, UnitLost(0, "its worker died"))
    told: list[tuple[Any, Any]] = []
    hands.copy(units, lambda uuid, result: told.append((uuid, result)))
    assert told == [(units[1].segment.id.uuid, done), (units[0].segment.id.uuid, "its worker died")]
    assert engine.sent == units
    hands.copy([], lambda uuid, result: told.append((uuid, result)))
    assert len(told) == 2


def test_objects_when_deleted_then_all_three_are_gone_and_a_failure_is_said() -> None:
    """The deletion removes all three objects, and reports a failing store without raising."""
    store = MemoryStore()
    at = job_parts(store=store, prefix="tier/")
    hands, plan = hands_of(at)
    copy = plan.in_turn()[0][1]
    keys = object_keys(SegmentId(ORDERS, copy.uuid), copy.start_offset, "tier/").values()
    store.objects.update(dict.fromkeys(keys, b"x"))
    assert hands.delete_objects(ORDERS, copy) == ""
    assert not store.objects

    def fail(name: str, key: str) -> None:
        if name == "delete":
            msg = "no answer"
            raise StoreUnavailable(msg)

    store.before = fail
    assert hands.delete_objects(ORDERS, copy) == "no answer"
