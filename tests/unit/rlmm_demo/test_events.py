"""The metadata that comes past every service in the demonstration."""

from __future__ import annotations

from rlmm.metadata.encoding import encode
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import SegmentState
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from rlmm_demo.world.events import archive_in, copies, late_finish, place_of
from tests.support.builders import finished, segment_id, started, tp

NOW_MS = 1_700_000_000_000
PLACES = 5


def applied(shard: PythonShard, values: list[bytes], first: int = 0) -> dict[str, int]:
    """Apply events as records; return the counts of their verdicts."""
    tally = shard.apply(RecordSet(0, build_batch(records_of(values, first), first))).tally
    return {"applied": tally.applied, "rejected": tally.rejected}


def test_archive_when_asked_for_a_place_then_lies_there() -> None:
    """An archive lies in the metadata partition that the caller asks for."""
    for place in range(PLACES):
        assert place_of(archive_in(place, PLACES), PLACES) == place


def test_copies_when_applied_then_leave_the_live_ones_alone() -> None:
    """All events apply, and retention leaves the newer copies only."""
    archive = archive_in(0, PLACES)
    shard = PythonShard(0)
    values = list(copies(archive, NOW_MS, expired=30, live=20))
    assert applied(shard, values) == {"applied": 30 * 4 + 20 * 2, "rejected": 0}
    segments = list(shard.segments(archive))
    assert len(segments) == 20
    assert {one.state for one in segments} == {SegmentState.COPY_SEGMENT_FINISHED}


def test_late_finish_when_applied_then_is_rejected_and_hides_nothing() -> None:
    """A look-up finds the successor's segment before and after the late finish."""
    mine = segment_id("s1", tp())
    begun = started(mine, 0, 99, {0: 0})
    shard = PythonShard(0)
    applied(shard, [encode(begun), encode(finished(mine))])
    before = shard.segment_for(tp(), 0, 50)
    assert applied(shard, list(late_finish(begun, NOW_MS)), 2) == {"applied": 3, "rejected": 1}
    assert shard.segment_for(tp(), 0, 50) == before
    assert before is not None
    assert [one.id for one in shard.segments(tp())] == [before.id]
