"""Record sets that are applied in several calls: `max_events` stops and goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.report import Tally
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Applied
from rlmm.records.batch import Batch
from tests.support.builders import finished
from tests.support.engine.shards import apply, batch_of, new_shard, record_set
from tests.support.records.record_sets import life, marker, mixed_data

if TYPE_CHECKING:
    from rlmm.metadata.report import Report

CS, CF, DS, DF = SegmentState


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    read: list[Batch] = []
    values = Batch.values

    def counted(batch: Batch, *, inflated_bytes_max: int) -> object:
        read.append(batch)
        return values(batch, inflated_bytes_max=inflated_bytes_max)

    monkeypatch.setattr(Batch, "values", counted)
    return read


@pytest.mark.parametrize("limit", range(1, 16))
def test_max_events_then_stops_and_resumes_to_the_same_end(limit: int, reads: list[Batch]) -> None:
    """The reports of all limited calls add up to the whole, and no batch is read twice."""
    data = mixed_data()
    whole, stepped = new_shard(), new_shard()
    expected = apply(whole, record_set(data))
    assert expected.complete
    batches_read = len(reads)
    given = record_set(data)
    reports: list[Report] = []
    while not reports or not reports[-1].complete:
        reports.append(apply(stepped, given, limit))
        counted = reports[-1].tally
        records = counted.applied + counted.duplicate + counted.rejected + counted.undecodable
        assert records == limit or (reports[-1].complete and records <= limit)
    assert stepped.image() == whole.image()
    assert len(reads) == 2 * batches_read
    total = Tally()
    for report in reports:
        total.add(report.tally)
    assert total == expected.tally
    assert tuple(entry for report in reports for entry in report.entries) == expected.entries
    assert sum((report.deleted for report in reports), ()) == expected.deleted
    assert stepped.statistics() == whole.statistics()
    assert len(reports) == -(-13 // limit)


def test_max_events_where_the_last_record_is_the_last_allowed_then_is_complete() -> None:
    """The set is complete when its last record is the last one allowed."""
    shard = new_shard()
    report = apply(shard, record_set(batch_of(life("a")), marker(4)), 4)
    assert (report.complete, shard.position) == (True, 5)


def test_max_events_where_a_damaged_batch_follows_then_names_it() -> None:
    """The report names a damaged batch right behind the limit of events."""
    broken = bytearray(batch_of(life("b"), 4))
    broken[-1] ^= 1
    shard = new_shard()
    report = apply(shard, record_set(batch_of(life("a")), bytes(broken)), 4)
    assert (report.complete, report.tally.applied) == (False, 4)
    assert report.damage is not None


def test_max_events_with_the_same_bytes_as_another_object_then_goes_on_all_the_same() -> None:
    """A caller that fetches again loses time, no event."""
    shard, whole = new_shard(), new_shard()
    data = mixed_data()
    apply(whole, record_set(data))
    while not apply(shard, record_set(bytes(bytearray(data))), 3).complete:
        pass
    assert shard.image() == whole.image()


@pytest.mark.parametrize("other", ["event", "set", "image"])
def test_max_events_where_something_else_comes_between_then_nothing_is_lost(other: str) -> None:
    """The shard resumes a half-applied record set by its position after any other call."""
    shard = new_shard()
    given = record_set(batch_of(life("a")))
    apply(shard, given, 1)
    if other == "event":
        assert shard.apply_event(finished("a")) == Applied()
    elif other == "set":
        apply(shard, record_set(batch_of([finished("a")], 1)))
    else:
        shard = type(shard).from_image(shard.image())
        assert apply(shard, given, 1).tally == Tally(applied=1)
    report = apply(shard, given)
    assert (report.complete, report.tally) == (True, Tally(applied=2))
    assert shard.position == 4


@pytest.mark.parametrize("limit", [0, -1])
def test_max_events_below_one_then_is_refused(limit: int) -> None:
    """A call with a limit of 0 events is refused."""
    shard = new_shard()
    with pytest.raises(InvalidArgument, match="max_events"):
        shard.apply(record_set(batch_of(life("a"))), limit)
    assert shard.position == 0
