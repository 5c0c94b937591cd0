"""Record sets into a shard: every offset accounted for, whatever the bytes are."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.report import Tally
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Applied
from rlmm.records.batch import Batch
from rlmm.records.compression import Compression
from rlmm.records.control import ControlType
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import Producer, build_batch, records_of
from tests.support.builders import delete_started, finished, started, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import (
    METADATA_PARTITION,
    Tier,
    apply,
    batch_of,
    new_shard,
    record_set,
    values_of,
)
from tests.support.records.batches import forge, record
from tests.support.records.record_sets import broken, hole_batch, life, marker, mixed_data

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.report import Report

CS, CF, DS, DF = SegmentState


def test_record_set_of_many_batches_then_is_applied_whole() -> None:
    """Batches of every size, compressed or not, in one set."""
    events = [event for number in range(10) for event in life(number, number * 10)[:2]]
    values = values_of(events)
    data = b"".join(
        build_batch(records_of(values[first:stop], first), first, compression=compression)
        for first, stop, compression in (
            (0, 1, Compression.NONE),
            (1, 8, Compression.GZIP),
            (8, 9, Compression.LZ4),
            (9, 20, Compression.ZSTD),
        )
    )
    shard = new_shard()
    report = apply(shard, RecordSet(METADATA_PARTITION, data))
    assert report.tally == Tally(applied=20)
    assert (report.complete, report.damage, report.entries, report.deleted) == (True, None, (), ())
    assert [segment.start_offset for segment in shard.segments(tp())] == list(range(0, 100, 10))
    assert all(segment.state is CF for segment in shard.segments(tp()))


HOLES = hole_batch(dict(zip((12, 15), life("a")[:2], strict=True)), 10, 19)


@pytest.mark.parametrize(
    ("given", "position", "tally"),
    [
        (record_set(), 0, Tally()),
        (record_set(next_offset=9), 9, Tally(missing=9)),
        (record_set(HOLES, batch_of([started("b", 10, 19)], 25)), 26, Tally(applied=3, missing=23)),
        (
            record_set(build_batch([], 0, last_offset=7), build_batch([], 20, last_offset=20)),
            *(21, Tally(missing=21)),
        ),
        (record_set(batch_of(life("a")), bytes(300)), 4, Tally(applied=4)),
    ],
    ids=["nothing", "a known end", "compaction holes", "empty batches", "preallocated zeros"],
)
def test_offsets_without_records_then_are_counted_as_missing(
    given: RecordSet, position: int, tally: Tally
) -> None:
    """The position passes offsets before, between and behind records, each counted once."""
    shard = new_shard()
    report = apply(shard, given)
    assert (report.complete, shard.position, report.tally) == (True, position, tally)


def test_control_batches_then_move_the_position_and_are_counted() -> None:
    """Markers use up offsets; the records of aborted transactions are applied all the same."""
    shard = new_shard()
    producer = Producer(id=7, epoch=0, base_sequence=0, is_transactional=True)
    aborted = build_batch(records_of(values_of(life("s")[:2]), 0), 0, producer=producer)
    report = apply(shard, record_set(aborted, marker(2, ControlType.ABORT), marker(5)))
    assert report.tally == Tally(applied=2, control=2, missing=2)
    assert shard.position == 6
    assert shard.segment_for(tp(), 0, 5) is not None


@pytest.mark.parametrize(("record_count", "counted"), [(1, 1), (3, 3), (5, 3), (9, 3)])
def test_control_batch_around_the_position_is_cut_there(record_count: int, counted: int) -> None:
    """The control records count from the position on, and at most up to the end of the batch."""
    shard = new_shard(position=12)
    data = forge(
        record(0, b"\0" * 6, key=b"\0\0\0\1"),
        record_count,
        base_offset=10,
        last_offset_delta=4,
        attributes=0x30,
        producer_id=7,
        producer_epoch=0,
    )
    report = apply(shard, record_set(data))
    assert report.next_offset == 15
    assert report.tally == Tally(control=counted, missing=3 - counted)


def test_log_end_behind_the_last_batch_then_is_reached() -> None:
    """The log knows its position better than the batches; nothing ever moves back."""
    shard = new_shard()
    data = batch_of(life("a"))
    apply(shard, record_set(data, next_offset=10))
    assert shard.position == 10
    apply(shard, record_set(data, next_offset=3))
    assert shard.position == 10


def test_partial_tail_then_is_a_clean_end() -> None:
    """A batch that is cut off is not there yet; the next fetch begins with it."""
    whole, tail = batch_of(life("a")[:2]), batch_of(life("a")[2:], 2)
    for size in (1, 12, 60, len(tail) - 1):
        shard = new_shard()
        report = apply(shard, record_set(whole, tail[:size]))
        assert (report.complete, report.damage, shard.position) == (True, None, 2)
        apply(shard, record_set(tail))
        assert shard.segments(tp()) == []
        assert shard.position == 4


@pytest.mark.parametrize("position", range(9))
def test_f4_batch_that_begins_below_the_position_then_is_applied_from_there(position: int) -> None:
    """The shard ignores records below its position in a batch that begins there."""
    events = [*life("a"), *life("b", 10)]
    whole, resumed = new_shard(), new_shard()
    apply(whole, record_set(batch_of(events)))
    if position:
        apply(resumed, record_set(batch_of(events[:position])))
    report = apply(resumed, record_set(batch_of(events)))
    assert report.redelivered == position
    assert report.tally.offsets == 8 - position
    assert resumed.image() == whole.image()


def test_f79_whole_log_when_replayed_at_later_offsets_then_leads_to_the_same_answers() -> None:
    """Copied again behind itself: adds of live ids are refused, deletions are done once more."""
    history: list[Event] = [
        started("kept", 0, 99),
        finished("kept"),
        *life("gone", 100),
        started("leaving", 200, 299),
        finished("leaving"),
        delete_started("leaving"),
    ]
    tier = Tier()
    apply(tier.shard, record_set(batch_of(history)))
    before = (tier.shard.segments(tp()), tier.highest(0), tier.size(0))
    epoch = tier.shard.epoch_view(tp(), 0)
    report = apply(tier.shard, record_set(batch_of(history, 9)))
    assert (tier.shard.segments(tp()), tier.highest(0), tier.size(0)) == before
    assert tier.shard.epoch_view(tp(), 0) == epoch
    assert report.tally == Tally(applied=4, duplicate=2, rejected=3)


def test_record_set_of_another_partition_then_is_refused() -> None:
    """The shard refuses a record set of another metadata partition."""
    shard = new_shard()
    with pytest.raises(InvalidArgument, match="metadata partition 4 for 3"):
        shard.apply(RecordSet(4, batch_of(life("a"))))
    assert shard.position == 0
    assert list(shard.partitions()) == []


def test_shard_of_negative_numbers_or_a_call_without_events_then_is_refused() -> None:
    """A negative partition or position, and a limit below one event, are refused."""
    for partition, position in ((-1, 0), (0, -1)):
        with pytest.raises(InvalidArgument, match="negative"):
            ChosenShard(partition, position)
    shard = new_shard()
    for limit in (0, -1):
        with pytest.raises(InvalidArgument, match="max_events"):
            shard.apply(record_set(batch_of(life("a"))), limit)
    assert shard.position == 0


@pytest.mark.parametrize("offset", [4, -1, INT64_MAX], ids=["below", "negative", "largest"])
def test_event_at_an_offset_that_cannot_be_then_is_refused(offset: int) -> None:
    """The shard refuses an event below its position or at the largest offset."""
    shard = new_shard(position=5)
    with pytest.raises(InvalidArgument, match="offset"):
        shard.apply_event(started("a"), offset)
    assert shard.position == 5


def test_event_beyond_the_position_then_leaves_missing_offsets() -> None:
    """Given one by one, the offsets between count as in a record set."""
    shard = new_shard(position=5)
    shard.apply_event(started("a"), 9)
    shard.apply_event(finished("a"))
    assert shard.statistics().tally == Tally(applied=2, missing=4)
    assert shard.position == 11


@pytest.mark.parametrize("seed", range(20))
def test_i4_any_mixture_of_batches_then_is_accounted_for(seed: int) -> None:
    """Markers, holes, empty batches, bad records, limits, redelivery: each offset counts once."""
    rng = random.Random(seed)
    batches: list[bytes] = []
    at = 0
    for number in range(12):
        at += rng.choice((0, 0, 0, 3))
        kind = rng.choice(("events", "events", "marker", "empty", "holes", "lost"))
        events = life(number % 5, 10 * number)
        if kind == "marker":
            batches.append(marker(at))
            at += 1
        elif kind == "empty":
            batches.append(build_batch([], at, last_offset=at + 2))
            at += 3
        elif kind == "holes":
            batches.append(hole_batch({at + 1: events[0], at + 4: events[1]}, at, at + 6))
            at += 7
        elif kind == "lost":
            batches.append(forge(record(0, values_of(events)[0]) + b"\x7f", 3, base_offset=at))
            at += 3
        else:
            given: list[Event | bytes | None] = [*events, None, b"?"]
            chosen = rng.sample(given, rng.randint(1, 6))
            batches.append(batch_of(chosen, at))
            at += len(chosen)
    whole, pieces = new_shard(), new_shard()
    expected = apply(whole, record_set(*batches, next_offset=at + 5))
    assert (expected.complete, whole.position) == (True, at + 5)
    first = 0
    while first < len(batches):
        stop = min(len(batches), first + rng.randint(1, 4))
        again = max(0, first - rng.randint(0, 2))
        piece = record_set(*batches[again:stop])
        while not apply(pieces, piece, rng.randint(1, 5)).complete:
            pass
        first = stop
    apply(pieces, record_set(next_offset=at + 5))
    assert pieces.image() == whole.image()
    assert pieces.statistics().tally == whole.statistics().tally == expected.tally
    assert expected.tally.offsets == at + 5


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


def test_max_events_where_the_last_record_is_the_last_allowed_then_what_follows_is_judged() -> None:
    """The set is complete at its last allowed record, unless a damaged batch follows."""
    shard = new_shard()
    report = apply(shard, record_set(batch_of(life("a")), marker(4)), 4)
    assert (report.complete, shard.position) == (True, 5)
    report = apply(new_shard(), record_set(batch_of(life("a")), broken(batch_of(life("b"), 4))), 4)
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
