"""Expiring runs killed at every point: the next one ends clean, and nothing else is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.tier_metadata.opening import open_metadata_access
from tests.support.tier.driver_process import Drivers, Point
from tests.support.tier.job_folders import LATER_MS, ORDERS, PLACES, TierPlace, states
from tests.support.tier.simulated_expiry import lives_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tier.driver_process import Ended

CS, CF, DS, DF = SegmentState
WAIT_S = 10.0
KEPT = "/00000000000000000120-"
BYTES = "14842"
PHASES = [
    Point("claims"),
    Point("event:DS"),
    Point("deleted:rsm-manifest"),
    Point("deleted:log"),
    Point("event:DF"),
    Point("report"),
]
DELETION = [
    Point("event:STARTED"),
    Point("event:DS"),
    Point("event:DS", 2),
    Point("deleted:log", 2),
    Point("event:DF"),
    Point("event:FINISHED"),
]


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    place = TierPlace(tmp_path, partitions=(ORDERS,))
    assert place.run().is_fine
    return place


def expire(place: TierPlace, drivers: Drivers, *more: str, dies_at: Point | int | None = None,
           later_ms: int = 0) -> Ended:  # fmt: skip
    return drivers.run(
        "tier", "expire", "--embedded", str(place.archive), "--store",
        str(place.folder / "store"), "--no-spark", "--apply", *more,
        dies_at=dies_at, later_ms=later_ms,
    )  # fmt: skip


def check_rerun(place: TierPlace, drivers: Drivers, objects: dict[str, int], *more: str) -> None:
    ended = expire(place, drivers, *more, later_ms=LATER_MS)
    assert ended.exit_code == 0, ended.output
    assert place.objects() == {key: size for key, size in objects.items() if KEPT in key}
    assert states(place.check()) == ["CF"]
    (gone,) = [life for life in lives_in(place.archive, PLACES).values() if DF in life]
    assert [state for at, state in enumerate(gone) if state not in gone[:at]] == [CS, CF, DS, DF]


def test_f114_run_when_killed_nowhere_then_passes_every_phase(
    place: TierPlace, drivers: Drivers
) -> None:
    """A run without a kill passes every phase at which the tests below kill it."""
    objects = place.objects()
    ended = expire(place, drivers, "--retention-bytes", BYTES)
    assert ended.exit_code == 0, ended.output
    for point in PHASES:
        assert ended.passed.count(point.name) >= point.nth, point
    check_rerun(place, drivers, objects, "--retention-bytes", BYTES)


@pytest.mark.parametrize("point", PHASES, ids=str)
def test_f114_f118_run_when_killed_in_any_phase_then_the_next_one_ends_clean(
    place: TierPlace, drivers: Drivers, point: Point
) -> None:
    """The next run finishes a killed one, also without the limit that began a deletion."""
    objects = place.objects()
    ended = expire(place, drivers, "--retention-bytes", BYTES, dies_at=point)
    assert ended.exit_code is None, ended.output
    is_begun = "event:DS" in ended.passed
    assert states(place.segments()) in (["CF", "CF"], ["DS", "CF"], ["CF"])
    more = () if is_begun else ("--retention-bytes", BYTES)
    check_rerun(place, drivers, objects, *more)


def test_topic_of_a_killed_run_when_it_may_still_live_is_its_own(
    place: TierPlace, drivers: Drivers
) -> None:
    """No job begins before the heartbeats are overdue; the message names the topic's owner."""
    expire(place, drivers, "--retention-bytes", BYTES, dies_at=Point("event:DS"))
    ended = expire(place, drivers, "--retention-bytes", BYTES)
    assert ended.exit_code == 4, ended.output
    assert "TIER-EXPIRE-BUSY (1)" in ended.output
    assert states(place.segments()) == ["DS", "CF"]


def test_f115_open_copy_of_a_killed_job_when_its_end_is_killed_then_it_ends_clean(
    tmp_path: Path, drivers: Drivers
) -> None:
    """The segment passes CS, DS, DF through all kills, and its half-written objects go with it."""
    place = TierPlace(tmp_path, partitions=(ORDERS,))
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
    place: TierPlace, drivers: Drivers, point: Point
) -> None:
    """The rerun marks, starts, deletes and finishes, also a deletion that another began."""
    assert place.metadata is not None
    first, *_ = place.segments()
    metadata = open_metadata_access(place.metadata)
    marked = PartitionDeleteState.DELETE_PARTITION_MARKED
    metadata.put_partition_delete(PartitionDelete(ORDERS, 1, 1, marked), WAIT_S)
    if point.name != "event:DS":
        metadata.publish(SegmentUpdate(first.id, 1, 1, first.custom_metadata, DS), WAIT_S)
    metadata.close()
    ended = expire(place, drivers, dies_at=point)
    if ended.exit_code is not None:
        assert point == Point("event:DS", 2), ended.output
    ended = expire(place, drivers, later_ms=LATER_MS)
    assert ended.exit_code == 0, ended.output
    assert (place.segments(), place.objects()) == ([], {})
    metadata = open_metadata_access(place.metadata)
    (image,) = metadata.image([ORDERS], {}, WAIT_S).partitions
    metadata.close()
    assert image.delete is PartitionDeleteState.DELETE_PARTITION_FINISHED


@pytest.mark.long
@pytest.mark.timeout(600)
def test_f114_f118_run_when_killed_at_every_single_point_then_the_next_one_ends_clean(
    tmp_path: Path, drivers: Drivers
) -> None:
    """A run killed between any two effects is finished by the next one."""
    (tmp_path / "whole").mkdir()
    whole = TierPlace(tmp_path / "whole", partitions=(ORDERS,))
    assert whole.run().is_fine
    points = len(expire(whole, drivers, "--retention-bytes", BYTES).passed)
    assert points > 8
    for number in range(1, points + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = TierPlace(folder, partitions=(ORDERS,))
        assert place.run().is_fine
        objects = place.objects()
        ended = expire(place, drivers, "--retention-bytes", BYTES, dies_at=number)
        assert ended.exit_code is None, ended.output
        check_rerun(place, drivers, objects, "--retention-bytes", BYTES)
