"""Whole jobs over a bucket that refuses, loses, cuts and throttles requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import CredentialsAbsent, StoreAbsent
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.stores.s3_faults import S3FaultKind
from spark_tiering.stores.s3_policies import POLICIES
from spark_tiering.stores.s3_settings import S3Settings
from tests.faults.conftest import SILENCE_MS
from tests.support.stores.s3_stub_requests import Trouble
from tests.support.stores.stores_under_test import stub_bucket
from tests.support.tier.job_folders import (
    ORDERS,
    TierPlace,
    WatchedUnits,
    fates,
    states,
)

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyTask
    from tests.support.stores.s3_stub import ObjectStub

pytestmark = pytest.mark.usefixtures("without_pauses")
LATE = (Trouble.ANSWER_LATE, Trouble.NOT_DONE_LATE)


def _attempts(kind: S3FaultKind) -> int:
    return POLICIES[kind].attempts_max


@pytest.fixture
def place(tmp_path: Path, stub: ObjectStub) -> TierPlace:
    return TierPlace(tmp_path, stub_bucket(stub).settings, prefix="tier/")


def store_for(place: TierPlace, trouble: Trouble) -> S3Settings:
    assert isinstance(place.store_settings, S3Settings)
    if trouble not in LATE:
        return place.store_settings
    return replace(place.store_settings, read_timeout_ms=SILENCE_MS)


def befalling(stub: ObjectStub, operation: str, *troubles: Trouble) -> WatchedUnits:
    met: list[Trouble] = []

    def befall(task: CopyTask) -> None:
        if not met:
            met.extend(troubles)
            stub.befall(operation, *troubles)

    return WatchedUnits(before=befall)


@pytest.mark.parametrize(
    ("trouble", "nth"),
    [(Trouble.THROTTLED, 0), (Trouble.CUT, 1), (Trouble.ANSWER_LATE, 0), (Trouble.ANSWER_LOST, 2)],
)
def test_f126_job_when_a_request_fails_once_then_all_is_copied_once(
    place: TierPlace, stub: ObjectStub, trouble: Trouble, nth: int
) -> None:
    """A 503, a cut, and a time-out after success cost a repeat and nothing else."""
    engine = befalling(stub, "PutObject", *[Trouble.NOTHING] * nth, trouble)
    report = place.run(engine=engine, store=store_for(place, trouble))
    assert report.is_fine
    place.check_clean()


@pytest.mark.parametrize(
    ("trouble", "nth", "attempts", "outcome"),
    [
        (Trouble.DENIED, 0, 1, UnitOutcome.STORE_FAILED),
        (Trouble.THROTTLED, 1, _attempts(S3FaultKind.THROTTLED), UnitOutcome.STORE_FAILED),
        (Trouble.NOT_DONE_LATE, 2, _attempts(S3FaultKind.TIMED_OUT), UnitOutcome.UNKNOWN),
        (Trouble.CUT, 0, _attempts(S3FaultKind.CUT), UnitOutcome.UNKNOWN),
    ],
    ids=["log-denied", "indexes-throttled", "manifest-too-late", "log-cut"],
)
def test_f102_f126_job_when_requests_keep_failing_then_leaves_open_what_the_next_one_finishes(
    place: TierPlace,
    stub: ObjectStub,
    trouble: Trouble,
    nth: int,
    attempts: int,
    outcome: UnitOutcome,
) -> None:
    """Failing requests leave one named copy open, which the next job finishes."""
    engine = befalling(stub, "PutObject", *[Trouble.NOTHING] * nth, *[trouble] * attempts)
    report = place.run(engine=engine, store=store_for(place, trouble))
    assert fates(report.receipts) == ["left-open"] * 2
    assert report.receipts[0].why == outcome
    assert report.count(CopyFate.FINISHED) == 2
    segments = place.check()
    assert states(segments) == ["CS", "CS", "CF", "CF"]
    named = {one.uuid for one in report.receipts if one.fate is CopyFate.LEFT_OPEN}
    assert named == {one.id.uuid for one in segments[:2]}
    again = place.run()
    assert [one.action for one in again.receipts] == [SegmentAction.RESUME, SegmentAction.COMPLETE]
    assert again.is_fine
    place.check_clean()


def test_f108_job_when_an_object_stays_damaged_is_ended(place: TierPlace, stub: ObjectStub) -> None:
    """The job ends a copy that no repeat helps, and a later job copies it anew."""
    damaged = [Trouble.DAMAGED] * _attempts(S3FaultKind.DAMAGED)
    report = place.run(engine=befalling(stub, "PutObject", *damaged))
    assert fates(report.receipts) == ["ended", "left-open"]
    assert not [key for key in place.objects() if str(report.receipts[0].uuid) in key]
    assert states(place.check()) == ["CS", "CF", "CF"]
    assert place.run().is_fine
    place.check_clean()


def test_f108_undeletable_objects_are_left_to_next(place: TierPlace, stub: ObjectStub) -> None:
    """A deletion whose objects stay is not finished, and the next job deletes them."""
    damaged = [Trouble.DAMAGED] * _attempts(S3FaultKind.DAMAGED)

    def befall(task: CopyTask) -> None:
        if task.segment.id.partition == ORDERS and not task.segment.start_offset:
            stub.befall("PutObject", Trouble.NOTHING, *damaged)
            stub.befall("DeleteObject", Trouble.DENIED)

    report = place.run(engine=WatchedUnits(before=befall))
    assert fates(report.receipts) == ["ending", "left-open"]
    assert states(place.check())[:2] == ["DS", "CS"]
    assert [key for key in place.objects() if str(report.receipts[0].uuid) in key]
    again = place.run()
    assert again.is_fine
    assert [one.fate for one in again.ends] == [CopyFate.ENDED]
    place.check_clean()


def test_report_is_given_though_not_stored(place: TierPlace, stub: ObjectStub) -> None:
    """The caller gets the report even where the store refuses the job's records."""

    def befall(task: CopyTask) -> None:
        if len(engine.copied) == 3:
            # The last copy's own objects, and then receipts and report.
            stub.befall("PutObject", *[Trouble.NOTHING] * 3, *[Trouble.DENIED] * 2)

    engine = WatchedUnits(before=befall)
    report = place.run(engine=engine)
    assert report.is_fine
    assert not [key for key in place.objects("rlmm-jobs/") if key.endswith("report.json")]
    place.check_clean()


@pytest.mark.parametrize(
    ("bucket", "has_credentials", "error", "text"),
    [
        ("nobody-made-this", True, StoreAbsent, "nobody-made-this"),
        ("", False, CredentialsAbsent, "looked for in: env, "),
    ],
    ids=["no-bucket", "no-credentials"],
)
def test_f127_job_when_its_bucket_cannot_be_used_then_publishes_nothing(
    place: TierPlace,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    has_credentials: bool,
    error: type[Exception],
    text: str,
) -> None:
    """A missing bucket, or credentials that are nowhere, are named before the first event."""
    assert isinstance(place.store_settings, S3Settings)
    if not has_credentials:
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(error, match=text):
        place.run(store=replace(place.store_settings, bucket=bucket or place.store_settings.bucket))
    assert not place.segments()


def test_job_names_ignored_conditions(place: TierPlace, stub: ObjectStub) -> None:
    """The report names ignored conditions, because two jobs at once are not kept apart."""
    stub.ignores_conditions = True
    report = place.run()
    assert report.is_fine
    assert [text for text in report.findings if "second" in text or "condition" in text]
    place.check_clean()
