"""A tier looked at in a bucket that refuses, cuts, throttles and archives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import CredentialsAbsent, StoreAbsent
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.stores.s3_faults import S3FaultKind
from spark_tiering.stores.s3_policies import POLICIES
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.stores.s3_stub_requests import Trouble
from tests.support.stores.stores_under_test import stub_bucket
from tests.support.tier.job_folders import TierPlace
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.stores.s3_stub import ObjectStub


pytestmark = pytest.mark.usefixtures("without_pauses")


@pytest.fixture
def place(tmp_path: Path, stub: ObjectStub) -> TierPlace:
    place = TierPlace(tmp_path, stub_bucket(stub).settings, prefix="tier/")
    assert place.run().is_fine
    return place


@pytest.mark.parametrize("trouble", [Trouble.THROTTLED, Trouble.CUT])
def test_request_when_it_fails_once_then_nothing_is_found(
    place: TierPlace, stub: ObjectStub, trouble: Trouble
) -> None:
    """Verify finds nothing when a request fails once, because the store repeats it."""
    stub.befall("GetObject", Trouble.NOTHING, trouble, Trouble.NOTHING, trouble)
    stub.befall("HeadObject", Trouble.NOTHING, trouble)
    assert verify(place, DEEP).is_fine


def test_requests_when_they_keep_failing_then_a_segment_was_not_looked_at(
    place: TierPlace, stub: ObjectStub
) -> None:
    """A segment whose requests keep failing counts as not verified, and the others are verified."""
    attempts = POLICIES[S3FaultKind.THROTTLED].attempts_max
    stub.befall("GetObject", *[Trouble.THROTTLED] * attempts)
    report = verify(place)
    assert report.counts == {"TIER-UNREADABLE": 1}
    assert report.work.segments == 3
    assert not report.lost


def test_segment_when_it_may_not_be_read_then_that_is_told(
    place: TierPlace, stub: ObjectStub
) -> None:
    """
    Without the right to list, a store answers as if the object was absent; the finding says so.
    """
    stub.befall("GetObject", Trouble.DENIED)
    report = verify(place)
    assert report.counts == {"TIER-UNREADABLE": 1}
    assert "GetObject" in report.findings[0].detail


@pytest.mark.parametrize("kind", list(ObjectKind))
def test_object_when_it_is_archived_then_its_class_is_told(
    place: TierPlace, stub: ObjectStub, kind: ObjectKind
) -> None:
    """The report names an archived object's class: no broker can read it before it is restored."""
    one = stored(place)
    stub.objects[one.keys[kind]].storage_class = "GLACIER"
    for options in (None, DEEP):
        report = verify(place, options)
        assert {code for code, _, _ in told(report)} == {"TIER-OBJECT-ARCHIVED"}
        assert "GLACIER" in report.findings[0].detail


def test_store_when_it_tells_no_sums_then_only_reading_finds_a_changed_bit(
    place: TierPlace, stub: ObjectStub
) -> None:
    """Without the store's checksums only a full read finds a changed bit."""
    stored(place).flip(ObjectKind.LOG, 300)
    stub.tells_sums = False
    assert verify(place).is_fine
    assert told(verify(place, DEEP)) == [("TIER-BATCH-DAMAGED", "log", [[0, 9]])]


def test_bucket_when_it_is_not_there_or_nobody_may_ask_then_that_is_raised(
    place: TierPlace, stub: ObjectStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing or forbidden bucket is an error of the store, not a finding about a segment."""
    assert isinstance(place.store_settings, S3Settings)
    absent = replace(place.store_settings, bucket="nobody-made-this")
    with pytest.raises(StoreAbsent, match="nobody-made-this"):
        verify(place, store=absent)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CredentialsAbsent):
        verify(place)
