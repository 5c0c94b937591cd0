"""Jobs whose metadata a service holds: the same outcome, and failures of the service."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogUnavailable, NotAssigned, NotReady, SidecarUnavailable
from rlmm.log.memory.partition import AppendOutcome
from rlmm.metadata.assignment import Assignment
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.copy_job.request import WaitLimits
from spark_tiering.copy_plan.reasons import NotCopiedReason, SegmentAction
from tests.support.server.memory_service import ServedMetadata
from tests.support.tier.job_folders import (
    JOBS,
    ORDERS,
    PARTITIONS,
    TierPlace,
    WatchedUnits,
    fates,
    states,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rlmm.log.memory.script import LogScript
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.executor.tasks import CopyTask

HURRIED = WaitLimits(publish_s=3.0, ready_s=4.0, unit_s=60.0)
"""What is not there is not waited for very long; what is there has time enough to be heard."""


@pytest.fixture
def served() -> Iterator[ServedMetadata]:
    with ServedMetadata() as served:
        yield served


@pytest.fixture
def place(tmp_path: Path, served: ServedMetadata) -> TierPlace:
    return TierPlace(tmp_path, metadata=served.access)


@pytest.mark.parametrize("is_service", [True, False], ids=["service", "embedded"])
def test_plan_over_either_metadata(place: TierPlace, tmp_path: Path, is_service: bool) -> None:
    """A plan over a service equals the plan over the embedded metadata after half a job."""
    (tmp_path / "own").mkdir()
    here = place if is_service else TierPlace(tmp_path / "own")
    here.run(engine=WatchedUnits(lost=[120]))
    plan = here.plan()
    acts = {(one.partition, copy.action, copy.start_offset) for one, copy in plan.in_turn()}
    assert acts == {(one, SegmentAction.RESUME, 120) for one in PARTITIONS}
    assert sorted(plan.positions.items()) == [(1, 3), (2, 3)]
    assert here.run().is_fine
    here.check_clean()


def test_f106_job_without_service_writes_none(place: TierPlace, served: ServedMetadata) -> None:
    """A job whose metadata service is down writes neither a claim nor an object."""
    served.hang_up()
    with pytest.raises(SidecarUnavailable):
        place.run()
    assert not place.objects()
    assert not place.objects(JOBS)


@pytest.mark.parametrize("is_away", [True, False], ids=["log-away", "behind"])
def test_f106_job_when_the_metadata_is_not_ready_then_writes_nothing(
    place: TierPlace, served: ServedMetadata, is_away: bool
) -> None:
    """A job whose metadata is not ready, for a moment or for hours, writes nothing."""
    for at in range(3):
        served.tell(partial(_disturb, at=at, is_away=is_away))
    with pytest.raises((NotReady, LogUnavailable)) as raised:
        place.run(waits=HURRIED)
    assert raised.value.exit_code == (3 if is_away else 4)
    assert not place.objects()
    assert not place.objects(JOBS)
    for at in range(3):
        served.tell(partial(_calm, at=at))
    assert place.run().is_fine
    place.check_clean()


def _disturb(script: LogScript, at: int, *, is_away: bool) -> None:
    """Take the leader of a metadata partition away, or stop its deliveries."""
    if is_away:
        script.lose_leader(at)
    else:
        script.stall(at)
        script.write(at, b"")


def _appending(at: int, *outcomes: AppendOutcome) -> Callable[[LogScript], object]:
    return lambda script: script.plan_appends(at, *outcomes)


def _calm(script: LogScript, at: int) -> None:
    script.elect_leader(at)
    script.resume(at)


@pytest.mark.parametrize("behind", PARTITIONS, ids=["last", "first"])
def test_f106_partition_whose_metadata_is_not_ready_then_is_told_and_others_are_copied(
    place: TierPlace, served: ServedMetadata, behind: TopicIdPartition
) -> None:
    """The job reports a partition whose metadata is not ready and copies the others."""
    (other,) = {*PARTITIONS} - {behind}
    at = served.place_of(behind)
    assert at != served.place_of(other)
    served.tell(lambda script: script.lose_leader(at))
    report = place.run(waits=HURRIED)
    assert {one.partition for one in report.receipts} == {other}
    assert report.count(CopyFate.FINISHED) == 2
    assert not report.is_fine
    assert [line for line in report.hindrances if NotCopiedReason.METADATA_ABSENT in line]
    assert all(other.topic in key for key in place.objects())
    served.tell(lambda script: script.elect_leader(at))
    assert place.run().is_fine
    place.check_clean()


def test_service_that_is_not_assigned_when_asked_refuses_the_job(tmp_path: Path) -> None:
    """A service that is not assigned the partitions refuses the job, and nothing is written."""
    with ServedMetadata(Assignment.of_metadata([])) as served:
        place = TierPlace(tmp_path, metadata=served.access)
        with pytest.raises(NotAssigned) as raised:
            place.run()
        assert "assigned" in str(raised.value)
        assert not place.objects()
        assert not place.objects(JOBS)


def test_copy_without_service_stays_open(place: TierPlace, served: ServedMetadata) -> None:
    """A copy whose service goes away before the finish stays open for the next job."""
    at = served.place_of(ORDERS)

    def lose(task: CopyTask) -> None:
        served.tell(lambda script: script.lose_leader(at))

    report = place.run(engine=WatchedUnits(before=lose), waits=HURRIED)
    assert fates(report.receipts) == ["left-open"] * 2
    assert not report.is_fine
    served.tell(lambda script: script.elect_leader(at))
    assert states([one for one in place.check() if one.id.partition == ORDERS]) == ["CS"] * 2
    again = place.run()
    assert {one.action for one in again.receipts} == {SegmentAction.COMPLETE}
    assert again.is_fine
    place.check_clean()


@pytest.mark.parametrize(
    "outcome", [one for one in AppendOutcome if "UNCERTAIN" in one.name or "LOST" in one.name]
)
def test_f126_event_when_its_answer_is_lost_then_is_looked_for_and_published_once(
    place: TierPlace, served: ServedMetadata, outcome: AppendOutcome
) -> None:
    """An event whose answer was lost is searched in the log and published exactly once."""
    for number in range(3):
        served.tell(_appending(number, outcome))
    place.run()
    assert place.run().is_fine
    place.check_clean()
