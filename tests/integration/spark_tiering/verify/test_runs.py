"""Runs of verify: changed prefixes, concurrent changes, samples, budgets and stops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import StoreUnavailable
from rlmm.metadata.segment import SegmentState
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.throttle import PaceLimits, Throttle
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.tier import Tier, TierMoment
from spark_tiering.maintenance.verify.values import VerifyOptions
from spark_tiering.stores.local import LocalStore
from tests.support.tier.job_folders import TierPlace, WatchedUnits, states
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.tier.verified_tiers import Stored

LOG, INDEXES = ObjectKind.LOG, ObjectKind.INDEXES


def test_f125_changed_prefix_finds_old_objects(tiered: Callable[..., TierPlace]) -> None:
    """Objects under an old prefix count as whole for one extra request."""
    place = tiered(prefix="old/")
    lost = verify(place, prefix="new/")
    assert lost.counts == {"TIER-OBJECT-MISSING": 12}
    report = verify(place, VerifyOptions(old_prefixes=("older/", "old/")), prefix="new/")
    assert report.is_fine
    assert report.work.elsewhere == 4
    assert report.work.requests == 12 + 2
    assert any("older prefix" in note for note in report.notes)


def test_f125_custom_metadata_names_the_old_prefix(tiered: Callable[..., TierPlace]) -> None:
    """Custom metadata with the old prefix leads verify to a segment without an option."""
    place = tiered(prefix="old/")
    for at in range(4):
        one = stored(place, at)
        custom = format_custom_metadata(CustomMetadata(1, "old/"))
        one.say_in_metadata(SegmentState.COPY_SEGMENT_FINISHED, custom)
    report = verify(place, prefix="new/")
    assert report.is_fine, told(report)
    assert report.work.elsewhere == 4


class Meanwhile(InProcess):
    def __init__(self, happen: Callable[[], None]) -> None:
        super().__init__()
        self._happen = happen

    def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
        outcomes = super().run_units(units, fn, on_result)
        self._happen()
        return outcomes


def test_segment_deleted_meanwhile_is_no_finding(place: TierPlace, one: Stored) -> None:
    """A segment deleted meanwhile is no finding, as its metadata changes before its objects."""
    for kind in ObjectKind:
        one.put(kind, None)
    before = Meanwhile(lambda: one.say_in_metadata(SegmentState.DELETE_SEGMENT_STARTED))
    report = verify(place, engine=before)
    assert not report.findings
    assert report.gone == 1
    assert report.is_fine
    assert not report.lost
    assert verify(place).is_fine, "and it is not asked after any more"


@pytest.mark.parametrize("left", [(), (LOG,), (LOG, INDEXES), tuple(ObjectKind)])
def test_f121_open_copies_need_no_objects(tmp_path: Path, left: tuple[ObjectKind, ...]) -> None:
    """Missing objects of open copies are no finding."""
    place = TierPlace(tmp_path)
    place.run(engine=WatchedUnits(lost=[120]))
    assert states(place.segments()) == ["CF", "CS"] * 2
    for kind in left:
        stored(place, 1).put(kind, b"half of it")
    report = verify(place, DEEP)
    assert report.is_fine
    assert report.segments_total == 2


def test_store_fault_is_no_missing_object(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing store leaves segments as not verified, never as missing."""
    original = LocalStore.get

    def get(self: LocalStore, key: str, first: int, last: int) -> Any:
        if "payments" in key:
            raise StoreUnavailable("no answer")
        return original(self, key, first, last)

    monkeypatch.setattr(LocalStore, "get", get)
    report = verify(place)
    assert report.counts == {"TIER-UNREADABLE": 2}
    assert (report.not_looked_at, report.work.segments) == (2, 2)
    assert not report.is_fine
    assert not report.lost


def test_run_when_it_is_stopped_then_what_was_looked_at_is_told(
    place: TierPlace, one: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped run reports its progress and where to continue."""
    monkeypatch.setattr("spark_tiering.maintenance.verify.segment_choice.SEGMENTS_MAX", 1)
    one.put(LOG, None)
    asked = iter(["", "", "SIGTERM"])
    report = verify(place, why_stop=lambda: next(asked, "SIGTERM"))
    assert report.stopped == "SIGTERM"
    assert report.work.segments == 2
    assert len(report.findings) == 1
    rest = verify(place, VerifyOptions(after=report.after))
    assert rest.work.segments == 2
    assert rest.is_fine


def test_run_when_it_is_stopped_and_units_are_lost_in_the_middle_then_goes_on_before_them(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped run with lost units continues before them, so that no segment is passed over."""
    monkeypatch.setattr("spark_tiering.maintenance.verify.segment_choice.SEGMENTS_MAX", 1)

    class Losing(InProcess):
        def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
            outcomes = super().run_units(units, fn)
            outcomes[1] = UnitLost(1, "cancelled")
            for one in outcomes:
                on_result(one)
            return outcomes

    asked = iter([""])
    report = verify(place, engine=Losing(), why_stop=lambda: next(asked, "SIGTERM"))
    assert (report.stopped, report.work.segments) == ("SIGTERM", 3)
    assert verify(place, VerifyOptions(after=report.after)).work.segments == 3


def test_metadata_is_read_anew_in_between(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify bounds the number of suspects that it holds by asking the metadata in between."""
    monkeypatch.setattr("spark_tiering.maintenance.verify.segment_choice.SEGMENTS_MAX", 1)
    monkeypatch.setattr("spark_tiering.maintenance.verify.verification.UNITS_AT_ONCE", 1)
    monkeypatch.setattr("spark_tiering.maintenance.verify.verification.SUSPECTS_MAX", 1)
    for at in range(4):
        stored(place, at).put(LOG, None)
    asked: list[object] = []
    moment = Tier.moment

    def counted(tier: Tier) -> TierMoment:
        asked.append(tier)
        return moment(tier)

    monkeypatch.setattr(Tier, "moment", counted)
    report = verify(place)
    assert len(asked) == 1 + 4 + 1, "at first, after each unit, and for what is lost"
    assert report.counts == {"TIER-OBJECT-MISSING": 4}
    assert len(report.lost) == 2


def test_pace_when_set_then_is_kept(place: TierPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify may read one second's worth of bytes at once and waits for the rest."""
    slept: list[float] = []
    monkeypatch.setattr(
        "spark_tiering.maintenance.verify.unit_execution.throttle_of",
        lambda job_id, pace: Throttle(pace, lambda: sum(slept), slept.append),
    )
    report = verify(place, replace(DEEP, pace=PaceLimits(10_000.0)))
    assert report.is_fine
    assert 3 < sum(slept) < 7, "57,788 bytes of logs, and those of indexes and manifests"
