"""Jobs that copy or expire, killed at every point: nothing false is left, a rerun ends clean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import TopicBusy
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.copy_job.job import run_job
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.execution.opening import engine_over
from spark_tiering.stores.abandoned_uploads import left_behind, sweep
from spark_tiering.stores.opening import process_store
from spark_tiering.tier_metadata.opening import open_metadata_access
from tests.support.datasource.killed_readers import ALWAYS, KillingSource
from tests.support.spark.sessions import SLOTS, TIMEOUT_S
from tests.support.tier.copy_tasks import SECOND
from tests.support.tier.driver_process import WRITING, Drivers, Point
from tests.support.tier.job_folders import LATER_MS, LISTED, ORDERS, PLACES, TierPlace, states
from tests.support.tier.simulated_expiry import lives_in

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_tiering.stores.results import OpenUpload
    from tests.support.tier.driver_process import Ended

CS, CF, DS, DF = SegmentState
FAR_MS = 2**50


def points(*names: str) -> list[Point]:
    """Return the points of *names*; a repeated name means the next time that it is passed."""
    return [Point(name, names[: at + 1].count(name)) for at, name in enumerate(names)]


PHASES = [
    *points("beats", "claims", "plan", "event:CS", "event:CS", "came-back", "event:CF", "event:CF"),
    *points(f"{WRITING}log", "log", f"{WRITING}rsm-manifest", "rsm-manifest", "rsm-manifest"),
    *points("receipts", "report"),
    Point("indexes", 2),
]


def place_in(folder: Path) -> TierPlace:
    folder.mkdir(exist_ok=True)
    return TierPlace(folder, partitions=(ORDERS,))


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    return place_in(tmp_path)


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
    # `rlmm tier sweep` lists unfinished uploads of a killed job, and aborts them with its flag.
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


ENDING = points("event:DS", "deleted:rsm-manifest", "deleted:log", "event:DF")


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
    whole = place_in(tmp_path / "whole")
    points = len(drivers.run(*command(whole, "--no-spark")).passed)
    assert points > 30
    for number in range(1, points + 1):
        place = place_in(tmp_path / str(number))
        ended = drivers.run(*command(place, "--no-spark"), dies_at=number)
        assert ended.exit_code is None, ended.output
        check_rerun(place)


# ----------------------------------------------------------------------- Spark


ON_SPARK = [
    *points("claims", "plan", "event:CS", "event:CS", "came-back", "event:CF", "event:CF"),
    *points("receipts", "report"),
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


WAIT_S = 10.0
KEPT = "/00000000000000000120-"
BYTES = "14842"
EXPIRY = points("claims", "event:DS", "deleted:rsm-manifest", "deleted:log", "event:DF", "report")
DELETION = [
    *points("event:STARTED", "event:DS", "event:DS", "event:DF", "event:FINISHED"),
    Point("deleted:log", 2),
]


@pytest.fixture
def copied(place: TierPlace) -> TierPlace:
    assert place.run().is_fine
    return place


def expire(copied: TierPlace, drivers: Drivers, *more: str, dies_at: Point | int | None = None,
           later_ms: int = 0) -> Ended:  # fmt: skip
    return drivers.run(
        "tier", "expire", "--embedded", str(copied.archive), "--store",
        str(copied.folder / "store"), "--no-spark", "--apply", *more,
        dies_at=dies_at, later_ms=later_ms,
    )  # fmt: skip


def check_expired(copied: TierPlace, drivers: Drivers, objects: dict[str, int], *more: str) -> None:
    ended = expire(copied, drivers, *more, later_ms=LATER_MS)
    assert ended.exit_code == 0, ended.output
    assert copied.objects() == {key: size for key, size in objects.items() if KEPT in key}
    assert states(copied.check()) == ["CF"]
    (gone,) = [life for life in lives_in(copied.archive, PLACES).values() if DF in life]
    assert [state for at, state in enumerate(gone) if state not in gone[:at]] == [CS, CF, DS, DF]


def test_f114_run_when_killed_nowhere_then_passes_every_phase(
    copied: TierPlace, drivers: Drivers
) -> None:
    """A run without a kill passes every phase at which the tests below kill it."""
    objects = copied.objects()
    ended = expire(copied, drivers, "--retention-bytes", BYTES)
    assert ended.exit_code == 0, ended.output
    for point in EXPIRY:
        assert ended.passed.count(point.name) >= point.nth, point
    check_expired(copied, drivers, objects, "--retention-bytes", BYTES)


@pytest.mark.parametrize("point", EXPIRY, ids=str)
def test_f114_f118_run_when_killed_in_any_phase_then_the_next_one_ends_clean(
    copied: TierPlace, drivers: Drivers, point: Point
) -> None:
    """The next run finishes a killed one, also without the limit that began a deletion."""
    objects = copied.objects()
    ended = expire(copied, drivers, "--retention-bytes", BYTES, dies_at=point)
    assert ended.exit_code is None, ended.output
    is_begun = "event:DS" in ended.passed
    assert states(copied.segments()) in (["CF", "CF"], ["DS", "CF"], ["CF"])
    more = () if is_begun else ("--retention-bytes", BYTES)
    check_expired(copied, drivers, objects, *more)


def test_topic_of_a_killed_run_when_it_may_still_live_is_its_own(
    copied: TierPlace, drivers: Drivers
) -> None:
    """No job begins before the heartbeats are overdue; the message names the topic's owner."""
    expire(copied, drivers, "--retention-bytes", BYTES, dies_at=Point("event:DS"))
    ended = expire(copied, drivers, "--retention-bytes", BYTES)
    assert ended.exit_code == 4, ended.output
    assert "TIER-EXPIRE-BUSY (1)" in ended.output
    assert states(copied.segments()) == ["DS", "CF"]


def test_f115_open_copy_of_a_killed_job_when_its_end_is_killed_then_it_ends_clean(
    place: TierPlace, drivers: Drivers
) -> None:
    """The segment passes CS, DS, DF through all kills, and its half-written objects go with it."""
    drivers.run(
        "tier", "run", "--log-dir", str(place.log_dir), "--offline", "--embedded",
        str(place.archive), "--store", str(place.folder / "store"), "--no-spark",
        dies_at=Point("indexes"),
    )  # fmt: skip
    assert states(place.segments()) == ["CS", "CS"]
    more = ("--end-open-copies", "--min-age", "1s")
    for times, point in enumerate((Point("event:DS"), Point("deleted:log", 2)), 1):
        ended = expire(place, drivers, *more, dies_at=point, later_ms=times * LATER_MS)
        assert ended.exit_code is None, ended.output
    ended = expire(place, drivers, *more, later_ms=3 * LATER_MS)
    assert ended.exit_code == 0, ended.output
    assert (place.segments(), place.objects()) == ([], {})
    for life in lives_in(place.archive, PLACES).values():
        assert [state for at, state in enumerate(life) if state not in life[:at]] == [CS, DS, DF]


@pytest.mark.parametrize("point", DELETION, ids=str)
def test_f116_deletion_of_a_partition_when_killed_at_any_step_then_is_brought_to_its_end(
    copied: TierPlace, drivers: Drivers, point: Point
) -> None:
    """The rerun marks, starts, deletes and finishes, also a deletion that another began."""
    assert copied.metadata is not None
    first, *_ = copied.segments()
    metadata = open_metadata_access(copied.metadata)
    marked = PartitionDeleteState.DELETE_PARTITION_MARKED
    metadata.put_partition_delete(PartitionDelete(ORDERS, 1, 1, marked), WAIT_S)
    if point.name != "event:DS":
        metadata.publish(SegmentUpdate(first.id, 1, 1, first.custom_metadata, DS), WAIT_S)
    metadata.close()
    ended = expire(copied, drivers, dies_at=point)
    if ended.exit_code is not None:
        assert point == Point("event:DS", 2), ended.output
    ended = expire(copied, drivers, later_ms=LATER_MS)
    assert ended.exit_code == 0, ended.output
    assert (copied.segments(), copied.objects()) == ([], {})
    metadata = open_metadata_access(copied.metadata)
    (image,) = metadata.image([ORDERS], {}, WAIT_S).partitions
    metadata.close()
    assert image.delete is PartitionDeleteState.DELETE_PARTITION_FINISHED


@pytest.mark.long
@pytest.mark.timeout(600)
def test_f114_f118_run_when_killed_at_every_single_point_then_the_next_one_ends_clean(
    tmp_path: Path, drivers: Drivers
) -> None:
    """A run killed between any two effects is finished by the next one."""
    whole = place_in(tmp_path / "whole")
    assert whole.run().is_fine
    points = len(expire(whole, drivers, "--retention-bytes", BYTES).passed)
    assert points > 8
    for number in range(1, points + 1):
        place = place_in(tmp_path / str(number))
        assert place.run().is_fine
        objects = place.objects()
        ended = expire(place, drivers, "--retention-bytes", BYTES, dies_at=number)
        assert ended.exit_code is None, ended.output
        check_expired(place, drivers, objects, "--retention-bytes", BYTES)
