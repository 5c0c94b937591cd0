"""Reports of expire, and objects of segments taken away."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import StoreUnavailable
from rlmm.findings import expire_findings as kinds
from rlmm.metadata.segment import SegmentState
from rlmm.retention.retention import RetentionSettings
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.expire.actions import RemovalTarget, RemovalTask, remove
from spark_tiering.maintenance.expire.decision import (
    ExpireOptions,
    ExpireReason,
    PartitionExpirePlan,
    SegmentAmount,
    decide,
)
from spark_tiering.maintenance.expire.execution import ExpireFate, ExpireReceipt
from spark_tiering.maintenance.expire.job import count_receipts, deletion_meter
from spark_tiering.maintenance.expire.report import SEGMENTS_MAX, ExpireReport
from spark_tiering.maintenance.expire.topic_ownership import TopicOwner
from spark_tiering.reporting.report import LINES_MAX
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import process_store
from tests.support.builders import segment_id, started, tp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.results import OpenUpload

TARGETS = tuple(RemovalTarget(segment_id(at), at * 100, True) for at in range(3))


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    found = LocalSettings(tmp_path, is_synced=False)
    store = process_store(found)
    for one in TARGETS:
        keys = [*object_keys(one.segment_id, one.start_offset, "tier/").values()]
        for key in keys[:1] if one is TARGETS[2] else keys:
            store.put(key, BytesContent(b"something"))
    store.put("tier/other", BytesContent(b"something else"))
    return found


def left(settings: LocalSettings) -> list[str]:
    return [one.key for one in process_store(settings).list()]


def test_f118_unit_when_objects_are_gone_or_not_then_deletes_all(settings: LocalSettings) -> None:
    """The removal deletes only named objects, and reports whether a manifest was there."""
    task = pickle.loads(pickle.dumps(RemovalTask(settings, "tier/", (), TARGETS)))
    removals = remove(task)
    assert [(one.segment_id, one.is_done, one.was_there) for one in removals] == [
        (TARGETS[0].segment_id, True, True),
        (TARGETS[1].segment_id, True, True),
        (TARGETS[2].segment_id, True, False),
    ]
    assert left(settings) == ["tier/other"]
    assert [(one.is_done, one.was_there) for one in remove(task)] == [(True, False)] * 3


def test_unit_ends_at_store_fault(settings: LocalSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure of the store the unit reports deletions and tries no other."""
    real, tried = LocalStore.delete, []

    def failing(self: LocalStore, key: str, **_: bool) -> None:
        tried.append(key)
        if len(tried) > 3:
            raise StoreUnavailable("no room for anything")
        real(self, key)

    monkeypatch.setattr(LocalStore, "delete", failing)
    removals = remove(RemovalTask(settings, "tier/", (), TARGETS))
    assert [one.is_done for one in removals] == [True, False, False]
    assert {one.detail for one in removals[1:]} == {"no room for anything"}
    assert len(tried) == 4
    monkeypatch.setattr(LocalStore, "head", failing)
    assert [one.is_done for one in remove(RemovalTask(settings, "x/", (), TARGETS))] == [False] * 3


@pytest.mark.parametrize("was_finished", [True, False])
def test_unit_when_a_copy_was_never_finished_then_its_uploads_are_looked_for(
    settings: LocalSettings, monkeypatch: pytest.MonkeyPatch, was_finished: bool
) -> None:
    """A unit lists uploads only of unfinished copies: a listing costs a request."""
    looked = []

    def looking(_: LocalStore, prefix: str = "") -> Iterator[OpenUpload]:
        looked.append(prefix)
        return iter(())

    monkeypatch.setattr(LocalStore, "open_uploads", looking)
    target = TARGETS[0]._replace(was_finished=was_finished)
    remove(RemovalTask(settings, "tier/", (), (target,)))
    assert len(looked) == (not was_finished)


CS, CF, DS, _ = SegmentState


def plan_of(partition: int = 7, standing: TopicOwner = TopicOwner.OURS) -> PartitionExpirePlan:
    found = [
        started(at, at * 100, at * 100 + 99, size_bytes=10, state=CF,
                max_timestamp_ms=9_000 if at == 2 else 0)
        for at in range(3)
    ]  # fmt: skip
    return decide(
        tp(partition=partition),
        found,
        standing=standing,
        rules=RetentionSettings(retention_ms=5_000),
        options=ExpireOptions(),
        now_ms=10_000,
    )


def report(*fates: ExpireFate, plans: tuple[PartitionExpirePlan, ...] | None = None, **said: Any
           ) -> ExpireReport:  # fmt: skip
    plan = plan_of()
    receipts = tuple(
        ExpireReceipt(
            one.segment, one.reason, fate, "why" if fate is not ExpireFate.DELETED else ""
        )
        for one, fate in zip(plan.doomed, fates, strict=False)
    )
    options: dict[str, Any] = {
        "is_applied": True, "cluster_id": "cluster", "job_id": "job", "began_ms": 1, "ended_ms": 2,
        "plans": (plan,) if plans is None else plans, "receipts": receipts,
    }  # fmt: skip
    return ExpireReport(**(options | said))


def codes(told: ExpireReport) -> list[str]:
    return [one.kind.code for one in told.findings()]


def test_report_when_all_is_deleted_then_is_fine_and_says_where_the_log_begins() -> None:
    """A report of a complete run is fine and shows the new log starts."""
    told = report(ExpireFate.DELETED, ExpireFate.DELETED)
    assert told.is_fine
    assert [*told.lines()] == [
        "job job: 2 segments, 20 B deleted, of 2 segments that were to go",
        "  orders-7: 2 segments, 20 B (2 by retention-ms); start 0 -> 200",
    ]
    document = told.document()
    assert document["partitions"][0]["startAfter"] == 200
    assert document["totals"]["deleted"] == {"segments": 2, "sizeBytes": 20}
    assert document["segmentsLeftOut"] == 0


def test_report_when_something_is_left_then_names_it_and_is_not_fine() -> None:
    """A report with a begun deletion and an untouched segment has two findings and is not fine."""
    told = report(ExpireFate.LEFT, ExpireFate.CHANGED)
    assert codes(told) == ["TIER-EXPIRE-LEFT", "TIER-EXPIRE-SKIPPED"]
    assert not told.is_fine
    assert "  deletion-left: 1 segment, 10 B" in [*told.lines()]
    assert told.findings()[0].detail == "1 segments, the first at 0: why"


def test_report_when_it_was_stopped_or_limited_then_what_was_not_begun_is_no_finding() -> None:
    """A limited run is fine and a stopped one is not, without findings for the rest."""
    plan = plan_of()
    limited = tuple(
        ExpireReceipt(one.segment, one.reason, ExpireFate.NOT_BEGUN, "max-delete")
        for one in plan.doomed
    )
    told = report(receipts=limited)
    assert (codes(told), told.is_fine) == ([], True)
    stopped = tuple(one._replace(detail="SIGTERM") for one in limited)
    told = report(receipts=stopped, stopped="SIGTERM")
    assert (codes(told), told.is_fine) == ([], False)
    assert "  stopped: SIGTERM" in [*told.lines()]


def test_report_when_topics_are_refused_or_busy_then_each_is_named_once() -> None:
    """Refused or busy topics are each named once; segments of old epochs that stay are a note."""
    plans = tuple(plan_of(number, TopicOwner.LIVE) for number in range(3))
    told = report(plans=plans, busy={("logs", "id"): "topic logs: job j on h works on it"})
    assert codes(told) == ["TIER-EXPIRE-LIVE", "TIER-EXPIRE-BUSY"]
    assert (told.is_busy, told.is_fine) == (True, False)
    untold = report(plans=(plan_of(1, TopicOwner.UNTOLD),))
    assert codes(untold) == [kinds.EXPIRE_UNTOLD.code]
    kept = report(plans=(replace(plan_of(), replaced=SegmentAmount(1, 10)),))
    assert (codes(kept), kept.is_fine) == (["TIER-EXPIRE-REPLACED"], True)


def test_report_when_very_much_goes_then_is_bounded() -> None:
    """A report of very many deletions bounds its lines and rows and keeps exact totals."""
    plan = plan_of()
    one = ExpireReceipt(plan.doomed[0].segment, ExpireReason.TIME, ExpireFate.WOULD_GO)
    told = report(
        plans=tuple(plan_of(number) for number in range(LINES_MAX + 5)),
        receipts=(one,) * (SEGMENTS_MAX + 3), is_applied=False,
    )  # fmt: skip
    assert len([*told.lines()]) < LINES_MAX + 5
    document = told.document()
    assert (len(document["segments"]), document["segmentsLeftOut"]) == (SEGMENTS_MAX, 3)
    assert document["totals"]["would-go"]["segments"] == SEGMENTS_MAX + 3


def test_progress_when_segments_come_to_their_end_then_tells_how_far_it_is() -> None:
    """The progress counts deletions of segments."""
    told: list[Any] = []
    meter = deletion_meter([plan_of()], 2, told.append)
    first, second = report(ExpireFate.DELETED, ExpireFate.LEFT).receipts
    count_receipts(meter, [first])
    count_receipts(meter, [second])
    assert (told[-1].done, told[-1].total, told[-1].failed, told[-1].failed_as) == (2, 2, 1, "left")
