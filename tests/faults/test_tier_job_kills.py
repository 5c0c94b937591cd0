"""Copy jobs killed at every point: nothing false is left, and a rerun ends clean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import TopicBusy
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.job import run_job
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.execution.opening import engine_over
from spark_tiering.stores.abandoned_uploads import left_behind, sweep
from spark_tiering.stores.opening import process_store
from tests.support.datasource.killed_readers import ALWAYS, KillingSource
from tests.support.spark.sessions import SLOTS, TIMEOUT_S
from tests.support.tier.copy_tasks import SECOND
from tests.support.tier.driver_process import WRITING, Drivers, Point
from tests.support.tier.job_folders import LATER_MS, LISTED, ORDERS, TierPlace, states

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_tiering.stores.results import OpenUpload

CF = SegmentState.COPY_SEGMENT_FINISHED
FAR_MS = 2**50
PHASES = [
    Point("beats"),
    Point("claims"),
    Point("plan"),
    Point("event:CS"),
    Point("event:CS", 2),
    Point(f"{WRITING}log"),
    Point("log"),
    Point("indexes", 2),
    Point(f"{WRITING}rsm-manifest"),
    Point("rsm-manifest"),
    Point("came-back"),
    Point("event:CF"),
    Point("rsm-manifest", 2),
    Point("event:CF", 2),
    Point("receipts"),
    Point("report"),
]


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    return TierPlace(tmp_path, partitions=(ORDERS,))


def command(place: TierPlace, *more: str) -> list[str]:
    return [
        "tier", "run", "--log-dir", str(place.log_dir), "--offline",
        "--embedded", str(place.archive), "--store", str(place.folder / "store"),
        "--chunk-size", "4KiB", *more,
    ]  # fmt: skip


def check_rerun(place: TierPlace) -> None:
    opened = {one.id.uuid for one in place.check() if one.state is not CF}
    left = [one.key for one in uploads(place)]
    assert len(set(left)) <= 1, "one object at a time is written"
    report = place.run(later_ms=LATER_MS)
    assert report.is_fine
    handled = {one.uuid for one in report.receipts} | {one.uuid for one in report.ends}
    assert handled >= opened
    assert not place.run(later_ms=LATER_MS).receipts
    # What nobody wrote to its end is listed by `rlmm tier sweep`, and ended when that is asked for.
    assert [one.key for one in uploads(place)] == left
    assert [one.key for one in sweep(process_store(place.store_settings), "", FAR_MS)] == left
    place.check_clean()


def uploads(place: TierPlace) -> list[OpenUpload]:
    return list(left_behind(process_store(place.store_settings), "", FAR_MS))


def test_f102_f121_driver_when_killed_nowhere_then_passes_every_phase(
    place: TierPlace, drivers: Drivers
) -> None:
    """A driver without a kill passes every phase at which the tests below kill it."""
    ended = drivers.run(*command(place, "--no-spark"))
    assert ended.exit_code == 0, ended.output
    for point in PHASES:
        assert ended.passed.count(point.name) >= point.nth, point
    place.check_clean()


@pytest.mark.parametrize("point", PHASES, ids=str)
def test_f102_f121_driver_when_killed_in_any_phase_then_the_next_job_ends_clean(
    place: TierPlace, drivers: Drivers, point: Point
) -> None:
    """Every finished segment is whole, every object is known, and no offset is copied twice."""
    ended = drivers.run(*command(place, "--no-spark"), dies_at=point)
    assert ended.exit_code is None, ended.output
    check_rerun(place)


def test_topics_of_a_killed_driver_when_it_may_still_live_are_its_own(
    place: TierPlace, drivers: Drivers
) -> None:
    """No job begins before the heartbeats are overdue; the message names the topics' owner."""
    drivers.run(*command(place, "--no-spark"), dies_at=Point("log"))
    before = place.objects()
    with pytest.raises(TopicBusy, match=r"orders: job \S+ on \S+ works on it"):
        place.run()
    ended = drivers.run(*command(place, "--no-spark"))
    assert (ended.exit_code, ended.output.count("\n")) == (4, 1), ended.output
    assert "topic-busy" in ended.output
    assert place.objects() == before
    assert states(place.check()) == ["CS"] * 2
    check_rerun(place)


ENDING = [
    Point("event:DS"),
    Point("deleted:rsm-manifest"),
    Point("deleted:log"),
    Point("event:DF"),
]


@pytest.mark.parametrize("point", ENDING, ids=str)
def test_f108_f114_f115_driver_when_killed_while_it_ends_a_copy_then_the_next_one_ends_it(
    place: TierPlace, drivers: Drivers, point: Point
) -> None:
    """The next driver finishes a deletion: its objects go, and then the last event comes."""
    drivers.run(*command(place, "--no-spark"), dies_at=Point("indexes"))
    for path in place.file("").glob("00000000000000000000.*"):
        path.unlink()  # by the broker: nobody can go on with its copy
    ended = drivers.run(*command(place, "--no-spark"), dies_at=point, later_ms=LATER_MS)
    assert ended.exit_code is None, ended.output
    assert "event:DS" in ended.passed
    place.check()
    report = place.run(later_ms=2 * LATER_MS)
    assert report.is_fine
    assert [one.fate for one in report.ends] == [CopyFate.ENDED] * (point.name != "event:DF")
    place.check_clean(LISTED[1:])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_f102_f121_driver_when_killed_at_every_single_point_then_the_next_job_ends_clean(
    tmp_path: Path, drivers: Drivers
) -> None:
    """After a kill between any two effects, or in any object, the next job ends clean."""
    (tmp_path / "whole").mkdir()
    whole = TierPlace(tmp_path / "whole", partitions=(ORDERS,))
    points = len(drivers.run(*command(whole, "--no-spark")).passed)
    assert points > 30
    for number in range(1, points + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = TierPlace(folder, partitions=(ORDERS,))
        ended = drivers.run(*command(place, "--no-spark"), dies_at=number)
        assert ended.exit_code is None, ended.output
        check_rerun(place)


# ----------------------------------------------------------------------- Spark


ON_SPARK = [
    Point("claims"),
    Point("plan"),
    Point("event:CS"),
    Point("event:CS", 2),
    Point("came-back"),
    Point("event:CF"),
    Point("event:CF", 2),
    Point("receipts"),
    Point("report"),
]
SHORT = (Point("event:CS", 2), Point("came-back"))


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(
    "point",
    [pytest.param(one, marks=() if one in SHORT else pytest.mark.long) for one in ON_SPARK],
    ids=str,
)
def test_f102_f121_driver_of_spark_when_killed_then_nothing_is_left_running_and_a_rerun_ends_clean(
    place: TierPlace, drivers: Drivers, point: Point
) -> None:
    """Spark ends with its driver, and the rerun finds or ends what its tasks wrote."""
    ended = drivers.run(*command(place, "--master", f"local[{SLOTS}]"), dies_at=point)
    assert ended.exit_code is None, ended.output
    drivers.wait_for_orphans()
    check_rerun(place)


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("times", [1, ALWAYS], ids=["once", "always"])
def test_worker_when_killed_in_the_middle_of_a_copy_then_nothing_is_copied_twice(
    place: TierPlace, spark_session: SparkSession, times: int
) -> None:
    """Spark repeats a copy after its worker died, and a copy whose workers all die stays open."""
    marks = place.folder / "marks"
    with place.opened(engine_over(spark_session)) as at:
        at.source = KillingSource(at.source, str(marks), SECOND.file(".log"), times)
        report = run_job(at)
    died = len(marks.read_text().splitlines())
    fates = [one.fate for one in report.receipts]
    if times == 1:
        assert died == 1
        assert report.is_fine
    else:
        assert died > 1
        assert fates == [CopyFate.FINISHED, CopyFate.LEFT_OPEN]
        assert report.receipts[1].why == "worker-lost"
    check_rerun(place)
