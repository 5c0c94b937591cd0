"""The audit names every leftover of failed copies, with its reason, until the job has gone on."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.execution import CopyExecution
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.object_set_verdict import DAY_MS, AuditVerdict, SetVerdict
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.local import LocalStore
from spark_tiering.tier_metadata.embedded import EmbeddedMetadata
from tests.support.builders import update
from tests.support.partitions.segments import example_partition
from tests.support.stores.failing_stores import StoreTrouble, failing
from tests.support.tier.audited_tiers import CF, CS, AuditedTier, codes, verdicts
from tests.support.tier.copy_tasks import PLAIN, PREFIX, ZSTD, copy_task, run
from tests.support.tier.driver_process import SHORT, Point, kind_of
from tests.support.tier.job_folders import LATER_MS, LISTED, ORDERS, TierPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyOptions
    from spark_tiering.maintenance.audit.report import AuditReport

EXAMPLE = example_partition()
DS = SegmentState.DELETE_SEGMENT_STARTED
OLD_MS = 2 * DAY_MS
"""So much later everything is old."""


class Died(BaseException):
    pass


@contextmanager
def dying_at(point: Point, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    counts: Counter[str] = Counter()

    def passed(name: str) -> None:
        counts[name] += 1
        if point == Point(name, counts[name]):
            raise Died(str(point))

    def told(owner: Any, method: str, name: Callable[..., str]) -> None:
        real = getattr(owner, method)

        def call(self: Any, *args: Any, **options: Any) -> Any:
            outcome = real(self, *args, **options)
            passed(name(*args))
            return outcome

        patch.setattr(owner, method, call)

    publish_all = EmbeddedMetadata.publish_all

    def one_by_one(self: Any, events: Any, timeout_s: float) -> Any:
        told_of = []
        for event in events:
            told_of += publish_all(self, [event], timeout_s)
            passed(f"event:{SHORT[event.state]}")
        return told_of

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedMetadata, "publish_all", one_by_one)
        told(EmbeddedMetadata, "publish", lambda event, *_: f"event:{SHORT[event.state]}")
        told(LocalStore, "_give_name", lambda key, *_: kind_of(key))
        told(LocalStore, "delete", lambda key: f"deleted:{kind_of(key)}")
        told(CopyExecution, "_came_back", lambda *_: "came-back")
        with pytest.raises(Died):
            yield


def audited(place: TierPlace) -> AuditReport:
    request = CareRequest(embedded=place.archive, store=place.store_settings, prefix=place.prefix)
    with (
        open_tier(request, now_ms=lambda: SYSTEM_CLOCK.now_ms() + OLD_MS) as tier,
        Audit(tier, AuditOptions()) as audit,
    ):
        report = audit.run()
        assert not list(audit.orphans()), "what a job may go on with is no orphan"
        return report


def expected_codes(place: TierPlace) -> Counter[str]:
    found: Counter[str] = Counter()
    there = set(place.objects())
    for segment in place.segments():
        keys = object_keys(segment.id, segment.start_offset, place.prefix).values()
        if segment.state is CS:
            is_begun = any(key in there for key in keys)
            found["TIER-INCOMPLETE-SET" if is_begun else "TIER-COPY-UNFINISHED"] += 1
        elif segment.state is DS:
            found["TIER-DELETE-UNFINISHED"] += 1
    return found


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    return TierPlace(tmp_path, partitions=(ORDERS,))


COPYING = {
    Point("plan"): "",
    Point("event:CS"): "the store has nothing of it",
    Point("event:CS", 2): "the store has nothing of it",
    Point("log"): "without indexes, rsm-manifest",
    Point("indexes"): "without rsm-manifest",
    Point("indexes", 2): "without rsm-manifest",
    Point("rsm-manifest"): "all three objects are there",
    Point("came-back"): "the store has nothing of it",
    Point("event:CF"): "",
    Point("rsm-manifest", 2): "all three objects are there",
    Point("event:CF", 2): "",
}
"""What is said of the leftovers of a driver that died there; nothing where there may be none."""


@pytest.mark.parametrize("point", COPYING, ids=str)
def test_f102_f121_driver_when_it_died_while_it_copied_then_its_leftovers_are_named(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    """The audit is dirty with a dead driver's open copy, and clean after the next job."""
    with dying_at(point, monkeypatch):
        place.run()
    expected = expected_codes(place)
    report = audited(place)
    assert codes(report) == dict(expected)
    assert report.overall is (AuditVerdict.DIRTY if expected else AuditVerdict.CLEAN)
    said = [one.detail for one in report.findings.ranked()]
    if COPYING[point]:
        assert any(COPYING[point] in detail for detail in said), said
    named = {one.fields["id"] for one in report.findings.ranked() if "id" in one.fields}
    opened = [one for one in place.segments() if one.state is not CF]
    assert named == {str(one.id.uuid) for one in opened}
    place.run(later_ms=LATER_MS)
    after = audited(place)
    assert after.overall is AuditVerdict.CLEAN
    assert verdicts(after) == {SetVerdict.REFERENCED: len(LISTED)}


ENDING = [
    Point("event:DS"), Point("deleted:rsm-manifest"), Point("deleted:indexes"),
    Point("deleted:log"), Point("event:DF"),
]  # fmt: skip


@pytest.mark.parametrize("point", ENDING, ids=str)
def test_f108_f114_f115_driver_when_it_died_while_it_ended_a_copy_then_that_is_named(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    """The audit names the objects of a begun deletion, until DELETE_SEGMENT_FINISHED."""
    with dying_at(Point("indexes"), monkeypatch):
        place.run()
    for path in place.file("").glob("00000000000000000000.*"):
        path.unlink()  # by the broker: nobody can go on with its copy
    with dying_at(point, monkeypatch):
        place.run(later_ms=LATER_MS)
    expected = expected_codes(place)
    assert expected["TIER-DELETE-UNFINISHED"] == (point != Point("event:DF"))
    report = audited(place)
    assert codes(report) == dict(expected)
    assert report.overall is (AuditVerdict.DIRTY if expected else AuditVerdict.CLEAN)
    place.run(later_ms=2 * LATER_MS)
    assert audited(place).overall is AuditVerdict.CLEAN


def test_f122_upload_that_a_killed_writer_left_open_is_named(place: TierPlace) -> None:
    """The audit names an open upload, which is no object but takes room."""
    place.run()
    left = place.folder / "store" / ".rlmm-writing" / "left" / "orders-x" / "y.log"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half of it")
    report = audited(place)
    assert report.overall is AuditVerdict.DIRTY
    assert codes(report) == {"TIER-UPLOAD-OPEN": 1}
    assert report.uploads.examples == ("orders-x/y.log",)


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
@pytest.mark.parametrize("trouble", StoreTrouble)
def test_f102_f108_f121_leftovers_are_named(trouble: StoreTrouble, options: CopyOptions) -> None:
    """The audit names objects that an unfinished copy lacks, and none once it is finished."""
    for call in range(12):
        tier = AuditedTier(PREFIX)
        try:
            task = copy_task(EXAMPLE, options=options)
            tier.say(task.segment)
            result = run(task, failing(tier.store, {call: trouble}))
            there = {ObjectKind(key.rpartition(".")[2]) for key in tier.store.objects}
            report = tier.audit()
            assert report.overall is AuditVerdict.DIRTY
            said = "TIER-INCOMPLETE-SET" if there else "TIER-COPY-UNFINISHED"
            assert codes(report) == {said: 1}
            detail = report.findings.ranked()[0].detail
            for kind in ObjectKind:
                is_lacking = kind not in there
                assert not there or (kind.value in detail.partition("without")[2]) == is_lacking
            assert not tier.orphans
            if not result.outcome.is_done:
                healthy = replace(task, action=SegmentAction.RESUME)
                assert run(healthy, tier.store).outcome.is_done
            assert (
                run(replace(task, action=SegmentAction.COMPLETE), tier.store).outcome
                is UnitOutcome.FOUND
            )
            tier.say(update(task.segment.id, CF, event_timestamp_ms=0))
            assert tier.audit().overall is AuditVerdict.CLEAN
        finally:
            tier.close()
