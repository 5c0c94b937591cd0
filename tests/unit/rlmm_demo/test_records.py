"""The records and events of the demonstration, and the checksum that judges every read."""

from __future__ import annotations

import pytest

from rlmm.metadata.encoding import encode
from rlmm.metadata.segment import SegmentState
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from rlmm_demo.world.events import archive_in, copies, late_finish, place_of
from rlmm_demo.world.records import CODECS, PARTITIONS, checksum_of, committed_rows, portions
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engine.chosen import ChosenShard

NOW_MS = 1_700_000_000_000
PLACES = 5
ROWS = [(0, 0, b"a"), (0, 1, b"b"), (1, 0, b"c")]


def applied(shard: ChosenShard, values: list[bytes], first: int = 0) -> dict[str, int]:
    """Apply events as records; return the counts of their verdicts."""
    tally = shard.apply(RecordSet(0, build_batch(records_of(values, first), first))).tally
    return {"applied": tally.applied, "rejected": tally.rejected}


@pytest.mark.parametrize("place", range(PLACES), ids=str)
def test_archive_when_asked_for_a_place_then_lies_there(place: int) -> None:
    """An archive lies in the metadata partition that the caller asks for."""
    assert place_of(archive_in(place, PLACES), PLACES) == place


def test_copies_when_applied_then_leave_the_live_ones_alone() -> None:
    """All events apply, and retention leaves the newer copies only."""
    archive, shard = archive_in(0, PLACES), ChosenShard(0)
    values = list(copies(archive, NOW_MS, expired=30, live=20))
    assert applied(shard, values) == {"applied": 30 * 4 + 20 * 2, "rejected": 0}
    states = [segment.state for segment in shard.segments(archive)]
    assert states == [SegmentState.COPY_SEGMENT_FINISHED] * 20


def test_late_finish_when_applied_then_is_rejected_and_hides_nothing() -> None:
    """A look-up finds the successor's segment before and after the late finish."""
    mine = segment_id("s1", tp())
    begun = started(mine, 0, 99, {0: 0})
    shard = ChosenShard(0)
    applied(shard, [encode(begun), encode(finished(mine))])
    before = shard.segment_for(tp(), 0, 50)
    assert applied(shard, list(late_finish(begun, NOW_MS)), 2) == {"applied": 3, "rejected": 1}
    assert shard.segment_for(tp(), 0, 50) == before
    assert before is not None
    assert [one.id for one in shard.segments(tp())] == [before.id]


def test_portions_are_200000_records_in_three_codecs_with_one_aborted_transaction() -> None:
    """Every run produces the same records, with the aborted ones between others."""
    sent = portions()
    assert sum(len(one.values) for one in sent) == 200_000
    assert {one.codec for one in sent} == set(CODECS)
    assert {one.partition for one in sent} == set(range(PARTITIONS))
    (aborted,) = (number for number, one in enumerate(sent) if one.is_aborted)
    assert 0 < aborted < len(sent) - 1
    assert portions() == sent


def test_committed_rows_when_some_were_aborted_then_are_the_others_in_order_of_offsets() -> None:
    """Committed rows are sorted by offset and hold no aborted record."""
    sent = portions()
    offsets, ends = [], dict.fromkeys(range(PARTITIONS), 0)
    for one in sent:
        offsets.append(list(range(ends[one.partition], ends[one.partition] + len(one.values))))
        ends[one.partition] += len(one.values) + one.is_aborted
    rows = list(committed_rows(sent, offsets))
    assert rows == sorted(rows)
    aborted = next(one for one in sent if one.is_aborted)
    assert len(rows) == 200_000 - len(aborted.values)
    assert not {value for _, _, value in rows} & set(aborted.values)


def test_checksum_when_anything_but_the_order_of_partitions_differs_then_is_another() -> None:
    """The checksum changes with a missing, moved, changed, doubled or split record."""
    assert checksum_of(ROWS).text == checksum_of([ROWS[2], *ROWS[:2]]).text
    others = [
        ROWS[:2],
        [(0, 0, b"a"), (0, 2, b"b"), (1, 0, b"c")],
        [(0, 0, b"a"), (0, 1, b"B"), (1, 0, b"c")],
        [(0, 0, b"a"), (0, 1, b"b"), (2, 0, b"c")],
        [*ROWS, ROWS[2]],
        [ROWS[1], ROWS[0], ROWS[2]],
        [],
    ]
    texts = {checksum_of(rows).text for rows in others}
    assert len(texts) == len(others)
    assert checksum_of(ROWS).text not in texts
