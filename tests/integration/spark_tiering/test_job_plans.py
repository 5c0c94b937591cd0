"""Plans that were kept: carried out as they are, or refused with nothing done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, PlanStale
from rlmm.metadata.ids import SegmentId, Uuid
from spark_tiering.copy_job.job import run_job
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.copy_plan.document import format_plan, parse_plan
from spark_tiering.copy_plan.plan import CopyPlan
from spark_tiering.copy_plan.reasons import CopyMode, StaleReason
from spark_tiering.copy_plan.rules import Budgets
from tests.support.builders import started
from tests.support.tier.copy_tasks import SECOND
from tests.support.tier.job_folders import JOBS, ORDERS, TierPlace

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = Budgets(objects_max=3)
"""For a job of one segment."""


def kept(plan: CopyPlan) -> CopyPlan:
    found = parse_plan(format_plan(plan))
    assert isinstance(found, CopyPlan)
    return found


def test_plan_when_kept_and_carried_out_then_exactly_that_is_done(place: TierPlace) -> None:
    """A kept plan is carried out with its reviewed ids, and a second run has nothing to do."""
    plan = kept(place.plan())
    report = place.run(plan)
    assert report.is_fine
    planned = [copy.uuid for _, copy in plan.in_turn()]
    assert sorted(one.uuid for one in report.receipts) == sorted(planned)
    place.check_clean()
    with pytest.raises(PlanStale, match=StaleReason.METADATA_CHANGED):
        place.run(plan)
    place.check_clean()


def copy_one(place: TierPlace) -> None:
    assert len(place.run(budgets=ONE).receipts) == 1


def cut_log(place: TierPlace) -> None:
    log = place.file(SECOND.file(".log"))
    log.write_bytes(log.read_bytes()[:-78])


@pytest.mark.parametrize(
    ("change", "reason"),
    [(copy_one, StaleReason.METADATA_CHANGED), (cut_log, StaleReason.SEGMENT_CHANGED)],
    ids=["metadata", "source"],
)
def test_plan_when_what_it_stands_on_has_changed_then_is_refused_with_nothing_done(
    place: TierPlace, change: Callable[[TierPlace], None], reason: StaleReason
) -> None:
    """An outdated job publishes no event, writes no object and releases its topics."""
    plan = kept(place.plan())
    change(place)
    before, segments = place.objects(), place.segments()
    plans = [key for key in place.objects(JOBS) if key.endswith("plan.json")]
    with pytest.raises(PlanStale, match=reason) as raised:
        place.run(plan)
    assert "orders" in str(raised.value) or reason is StaleReason.METADATA_CHANGED
    assert place.objects() == before
    assert place.segments() == segments
    assert [key for key in place.objects(JOBS) if key.endswith("plan.json")] == plans
    place.run()
    place.check()


def test_job_when_something_happens_between_its_plan_and_its_claim_then_plans_anew(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job whose own plan becomes stale before its claim plans again instead of refusing it."""
    other = SegmentId(ORDERS, Uuid.of(9, 9))
    with place.opened() as at:
        write_once = at.jobs.write_once
        published: list[object] = []

        def publish_first(key: str, content: bytes) -> bool:
            if "claims/" in key and not published:
                published.append(at.metadata.publish(started(other, 251, 256), 5.0))
            return write_once(key, content)

        monkeypatch.setattr(at.jobs, "write_once", publish_first)
        report = run_job(at)
    assert published
    assert report.is_fine
    assert report.count(CopyFate.FINISHED) == 4
    assert other in {one.id for one in place.check()}


def test_plan_for_brokers_when_run_without_a_window_then_is_refused(place: TierPlace) -> None:
    """A plan of copies for brokers is refused without a window."""
    plan = place.plan()
    adopting = replace(plan, rules=replace(plan.rules, mode=CopyMode.ADOPT))
    with pytest.raises(ConfigError, match="adopt"):
        place.run(adopting)
    assert not place.objects(JOBS)
