"""Whole jobs, and their verification, over a bucket that refuses, loses, cuts and throttles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import CredentialsAbsent, StoreAbsent, StoreNotPermitted
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.stores.s3_faults import S3FaultKind
from spark_tiering.stores.s3_policies import POLICIES
from spark_tiering.stores.s3_settings import S3Settings
from tests.faults.conftest import SILENCE_MS
from tests.support.stores.s3_stub_requests import Trouble
from tests.support.stores.stores_under_test import stub_bucket
from tests.support.tier.job_folders import ORDERS, PLAIN, ZSTD, TierPlace, WatchedUnits, states
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.copy_job.report import JobReport
    from spark_tiering.executor.tasks import CopyOptions, CopyTask
    from tests.support.stores.s3_stub import ObjectStub

pytestmark = pytest.mark.usefixtures("without_pauses")
LATE = (Trouble.ANSWER_LATE, Trouble.NOT_DONE_LATE)
MORE = 12


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


def fates(report: JobReport) -> list[str]:
    return [one.fate.value for one in report.receipts if one.partition == ORDERS]


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
def test_f107_job_to_a_bucket_when_nothing_fails_then_all_is_copied_once(
    place: TierPlace, options: CopyOptions
) -> None:
    """The bucket gives back the source, and a second job sends no object."""
    assert place.run(options=options).is_fine
    place.check_clean()
    assert not place.run(options=options).receipts


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
def test_f102_job_when_requests_keep_failing_then_leaves_open_what_the_next_one_finishes(
    place: TierPlace,
    stub: ObjectStub,
    trouble: Trouble,
    nth: int,
    attempts: int,
    outcome: UnitOutcome,
) -> None:
    """Failing requests leave one copy open and delay no other; the next job finishes it."""
    engine = befalling(stub, "PutObject", *[Trouble.NOTHING] * nth, *[trouble] * attempts)
    report = place.run(engine=engine, store=store_for(place, trouble))
    assert fates(report) == ["left-open"] * 2
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


def test_f108_job_when_an_object_is_damaged_on_its_way_again_and_again_then_ends_its_copy(
    place: TierPlace, stub: ObjectStub
) -> None:
    """The job ends a copy that no repeat helps; a later job copies the segment anew."""
    damaged = [Trouble.DAMAGED] * _attempts(S3FaultKind.DAMAGED)
    report = place.run(engine=befalling(stub, "PutObject", *damaged))
    assert fates(report) == ["ended", "left-open"]
    assert not [key for key in place.objects() if str(report.receipts[0].uuid) in key]
    assert states(place.check()) == ["CS", "CF", "CF"]
    assert place.run().is_fine
    place.check_clean()


def test_f108_objects_when_they_cannot_be_deleted_then_the_next_job_deletes_them(
    place: TierPlace, stub: ObjectStub
) -> None:
    """A deletion whose objects stay is not finished, and the next job deletes them."""
    damaged = [Trouble.DAMAGED] * _attempts(S3FaultKind.DAMAGED)

    def befall(task: CopyTask) -> None:
        if task.segment.id.partition == ORDERS and not task.segment.start_offset:
            stub.befall("PutObject", Trouble.NOTHING, *damaged)
            stub.befall("DeleteObject", Trouble.DENIED)

    report = place.run(engine=WatchedUnits(before=befall))
    assert fates(report) == ["ending", "left-open"]
    assert states(place.check())[:2] == ["DS", "CS"]
    assert [key for key in place.objects() if str(report.receipts[0].uuid) in key]
    again = place.run()
    assert again.is_fine
    assert [one.fate for one in again.ends] == [CopyFate.ENDED]
    place.check_clean()


def test_report_when_the_store_does_not_take_it_then_is_given_all_the_same(
    place: TierPlace, stub: ObjectStub
) -> None:
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


# ------------------------------------------------------------------ what keeps a job from beginning


def test_job_when_there_is_no_such_bucket_then_publishes_nothing(place: TierPlace) -> None:
    """A bucket that is not there is named before the first event."""
    assert isinstance(place.store_settings, S3Settings)
    absent = replace(place.store_settings, bucket="nobody-made-this")
    with pytest.raises(StoreAbsent, match="nobody-made-this"):
        place.run(store=absent)
    assert not place.segments()


def test_job_when_it_may_not_write_then_publishes_nothing(
    place: TierPlace, stub: ObjectStub
) -> None:
    """The error quotes the store's refusal, before the first event."""
    stub.befall("PutObject", *[Trouble.DENIED] * MORE)
    with pytest.raises(StoreNotPermitted, match="PutObject"):
        place.run()
    assert not place.segments()
    assert not stub.objects


def test_f127_job_when_no_credentials_are_found_then_publishes_nothing(
    place: TierPlace, stub: ObjectStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says where credentials were looked for, and the job sends no request."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CredentialsAbsent, match="looked for in: env, "):
        place.run()
    assert not stub.asked
    assert not place.segments()


def test_job_to_an_endpoint_that_ignores_conditions_when_run_then_says_so(
    place: TierPlace, stub: ObjectStub
) -> None:
    """The report names ignored conditions, because two jobs at once are not kept apart there."""
    stub.ignores_conditions = True
    report = place.run()
    assert report.is_fine
    assert [text for text in report.findings if "second" in text or "condition" in text]
    place.check_clean()


@pytest.fixture
def copied_place(place: TierPlace) -> TierPlace:
    assert place.run().is_fine
    return place


@pytest.mark.parametrize("trouble", [Trouble.THROTTLED, Trouble.CUT])
def test_request_when_it_fails_once_then_nothing_is_found(
    copied_place: TierPlace, stub: ObjectStub, trouble: Trouble
) -> None:
    """Verify finds nothing when a request fails once, because the store repeats it."""
    stub.befall("GetObject", Trouble.NOTHING, trouble, Trouble.NOTHING, trouble)
    stub.befall("HeadObject", Trouble.NOTHING, trouble)
    assert verify(copied_place, DEEP).is_fine


@pytest.mark.parametrize(
    "troubles",
    [[Trouble.THROTTLED] * POLICIES[S3FaultKind.THROTTLED].attempts_max, [Trouble.DENIED]],
    ids=["throttled", "denied"],
)
def test_segment_when_its_requests_keep_failing_then_was_not_looked_at(
    copied_place: TierPlace, stub: ObjectStub, troubles: list[Trouble]
) -> None:
    """A segment whose requests fail is named as not verified, and the others are verified."""
    stub.befall("GetObject", *troubles)
    report = verify(copied_place)
    assert report.counts == {"TIER-UNREADABLE": 1}
    assert "GetObject" in report.findings[0].detail
    assert report.work.segments == 3
    assert not report.lost


@pytest.mark.parametrize("kind", list(ObjectKind))
def test_object_when_it_is_archived_then_its_class_is_told(
    copied_place: TierPlace, stub: ObjectStub, kind: ObjectKind
) -> None:
    """The report names an archived object's class: no broker can read it before it is restored."""
    one = stored(copied_place)
    stub.objects[one.keys[kind]].storage_class = "GLACIER"
    for options in (None, DEEP):
        report = verify(copied_place, options)
        assert {code for code, _, _ in told(report)} == {"TIER-OBJECT-ARCHIVED"}
        assert "GLACIER" in report.findings[0].detail


def test_store_when_it_tells_no_sums_then_only_reading_finds_a_changed_bit(
    copied_place: TierPlace, stub: ObjectStub
) -> None:
    """Without the store's checksums only a full read finds a changed bit."""
    stored(copied_place).flip(ObjectKind.LOG, 300)
    stub.tells_sums = False
    assert verify(copied_place).is_fine
    assert told(verify(copied_place, DEEP)) == [("TIER-BATCH-DAMAGED", "log", [[0, 9]])]


def test_bucket_when_it_is_not_there_or_nobody_may_ask_then_that_is_raised(
    copied_place: TierPlace, stub: ObjectStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing or forbidden bucket is an error of the store, not a finding about a segment."""
    assert isinstance(copied_place.store_settings, S3Settings)
    absent = replace(copied_place.store_settings, bucket="nobody-made-this")
    with pytest.raises(StoreAbsent, match="nobody-made-this"):
        verify(copied_place, store=absent)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CredentialsAbsent):
        verify(copied_place)
