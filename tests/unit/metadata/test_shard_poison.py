"""Records and batches that cannot be trusted, by content or by offsets, between those that can."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import pytest

from bench.history import single, written_events
from rlmm.errors import InvalidArgument
from rlmm.metadata import open_record_set
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.python_shard import STEPS_MAX
from rlmm.metadata.record_layout import VALUE_BYTES_MAX
from rlmm.metadata.report import Tally
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.varint import encode_varint
from rlmm.metadata.verdicts import COUNTED_APART, Undecodable, UndecodableReason
from rlmm.records.control import ControlType
from rlmm.records.damage import DamageReason
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import Producer, build_batch, build_control_batch
from tests.support.builders import finished, started, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import (
    METADATA_PARTITION,
    apply,
    batch_of,
    check_report,
    new_shard,
    record_set,
    values_of,
)
from tests.support.records.batches import forge, record
from tests.support.records.record_sets import broken, life

if TYPE_CHECKING:
    from rlmm.metadata.report import Report

CS, CF, DS, DF = SegmentState


GOOD = encode_any(started("good", 0, 9))
_HEAD = 3 + 7 + 16 + 4 + 1 + 16 + 1  # up to the start offset, name `orders`
_EPOCHS = _HEAD + 8 + 8 + 4 + 8 + 8
POISON: dict[UndecodableReason, bytes | None] = {
    UndecodableReason.TOMBSTONE: None,
    UndecodableReason.RECORD_VERSION_1: b"\x01\x00\x01" + GOOD[3:],
    UndecodableReason.EMPTY_VALUE: b"",
    UndecodableReason.BAD_VARINT: b"\xff" * 6,
    UndecodableReason.UNKNOWN_FRAME_VERSION: b"\x02" + GOOD[1:],
    UndecodableReason.UNKNOWN_API_KEY: b"\x01\x04\x00" + GOOD[3:],
    UndecodableReason.UNKNOWN_RECORD_VERSION: b"\x01\x00\x02" + GOOD[3:],
    UndecodableReason.TRUNCATED: GOOD[:-3],
    UndecodableReason.TRAILING_BYTES: GOOD + b"\x00",
    UndecodableReason.NULL_NAME: b"\x01\x00\x00\x00" + GOOD[10:],
    UndecodableReason.NAME_TOO_LONG: (
        b"\x01\x00\x00" + encode_varint(32_769) + b"n" * 32_768 + GOOD[10:]
    ),
    UndecodableReason.NULL_EPOCHS: GOOD[:_EPOCHS] + b"\x00" + GOOD[_EPOCHS + 14 :],
    UndecodableReason.NO_EPOCHS: GOOD[:_EPOCHS] + b"\x01" + GOOD[_EPOCHS + 14 :],
    UndecodableReason.NEGATIVE_START_OFFSET: GOOD[:_HEAD] + b"\xff" * 8 + GOOD[_HEAD + 8 :],
    UndecodableReason.END_BEFORE_START: GOOD[:_HEAD] + b"\x00" * 7 + b"\x0a" + GOOD[_HEAD + 8 :],
    UndecodableReason.UNKNOWN_STATE: GOOD[:-2] + b"\x09\x00",
    UndecodableReason.OVERSIZED: bytes(VALUE_BYTES_MAX + 1),
}


def test_poison_table_then_has_every_reason() -> None:
    """Each reason except damage to a batch has a value in the table."""
    assert {*POISON, UndecodableReason.DAMAGED_BATCH} == set(UndecodableReason)
    assert set(POISON) >= COUNTED_APART


@pytest.mark.parametrize("reason", POISON)
def test_f62_poison_between_good_records_then_is_set_aside_and_the_good_ones_apply(
    reason: UndecodableReason,
) -> None:
    """The report has the poison once with bytes, offset and reason, and later records apply."""
    shard = new_shard(position=7)
    value = POISON[reason]
    good = life("good")
    report = apply(shard, record_set(batch_of([good[0], value, good[1]], 7)))
    (entry,) = report.entries
    assert isinstance(entry.verdict, Undecodable)
    assert entry.verdict.reason is reason
    assert (entry.offset, entry.next_offset, entry.value) == (8, 9, value)
    assert report.partition == METADATA_PARTITION
    assert report.tally == Tally(applied=2, undecodable=1)
    assert shard.statistics().undecodable_by_reason == {reason: 1}
    assert shard.segment_for(tp(), 0, 5) is not None


def test_f63_poison_then_is_visible_in_the_statistics_whatever_came_before() -> None:
    """Moving past bad records is on record: how many, and why, since the shard was made."""
    shard = new_shard()
    values = [POISON[reason] for reason in POISON if reason is not UndecodableReason.OVERSIZED]
    apply(shard, record_set(batch_of([*values, GOOD, *values])))
    statistics = shard.statistics()
    assert statistics.tally == Tally(applied=1, undecodable=2 * len(values))
    assert set(statistics.undecodable_by_reason.values()) == {2}
    redelivered = apply(shard, record_set(batch_of([*values, GOOD, *values])))
    assert redelivered.entries == ()
    assert shard.statistics().tally == statistics.tally


def test_damaged_batch_then_stops_before_it_and_can_be_set_aside() -> None:
    """The shard applies nothing of a damaged batch, and nothing behind it until it is set aside."""
    shard = new_shard()
    bad = broken(batch_of(life("bad", 50), 2))
    given = record_set(batch_of(life("a")[:2]), bad, batch_of(life("b", 10)[:2], 6))
    report = apply(shard, given)
    assert (report.complete, report.next_offset, report.tally) == (False, 2, Tally(applied=2))
    damage = report.damage
    assert damage is not None
    assert damage.reason is DamageReason.CRC_MISMATCH
    assert apply(shard, given).damage == damage
    aside = check_report(shard.set_aside(damage, given.data, 6))
    assert (aside.from_offset, aside.next_offset) == (2, 6)
    (entry,) = aside.entries
    assert (entry.offset, entry.next_offset, entry.value) == (2, 6, bad)
    assert isinstance(entry.verdict, Undecodable)
    assert entry.verdict.reason is UndecodableReason.DAMAGED_BATCH
    assert shard.statistics().undecodable_by_reason == {UndecodableReason.DAMAGED_BATCH: 4}
    last = apply(shard, given)
    assert (last.complete, last.tally, shard.position) == (True, Tally(applied=2), 8)
    assert [segment.start_offset for segment in shard.segments(tp())] == [0, 10]


def test_damaged_batch_below_the_position_then_is_passed() -> None:
    """The shard passes damage that a sound batch or the log end shows to lie below its position."""
    bad = broken(batch_of(life("bad", 50)))
    shard = new_shard(position=4)
    report = apply(shard, record_set(bad, batch_of(life("a"), 4)))
    assert (report.complete, report.tally) == (True, Tally(applied=4))
    assert apply(new_shard(position=4), record_set(bad, next_offset=4)).complete
    assert not apply(new_shard(position=4), record_set(bad, next_offset=5)).complete
    assert not apply(new_shard(position=4), record_set(bad)).complete


def test_batch_of_unbelievable_length_then_stops_the_set() -> None:
    """The shard stops at a batch of impossible length, as the next one cannot be found."""
    shard = new_shard()
    wrong = forge(b"", 0, base_offset=2, length=2**31 - 1)
    report = apply(shard, record_set(batch_of(life("a")[:2]), wrong, batch_of(life("b"), 3)))
    assert report.damage is not None
    assert (report.damage.stop, shard.position) == (None, 2)
    check_report(shard.set_aside(report.damage, wrong, 3))
    assert shard.position == 3


@pytest.mark.parametrize("next_offset", [-1, 0, 2, INT64_MAX + 1])
def test_set_aside_that_would_not_move_on_then_is_refused(next_offset: int) -> None:
    """The position rises or stays; it is never set beyond the largest offset."""
    shard = new_shard()
    report = apply(shard, record_set(batch_of(life("a")[:2]), broken(batch_of(life("b"), 2))))
    assert report.damage is not None
    with pytest.raises(InvalidArgument, match="set aside"):
        shard.set_aside(report.damage, b"", next_offset)
    assert shard.position == 2


def test_f62_damaged_records_in_a_sound_batch_then_are_set_aside_with_its_bytes() -> None:
    """The records before the damage apply; the rest of the batch's offsets are counted once."""
    values = values_of(life("a"))
    section = record(0, values[0]) + record(1, values[1]) + b"\x7f junk"
    bad = forge(section, 4, base_offset=10, last_offset_delta=4)
    shard = new_shard(position=10)
    report = apply(shard, record_set(bad, batch_of([started("b", 10, 19)], 15)))
    (entry,) = report.entries
    assert (entry.offset, entry.next_offset, entry.value) == (12, 15, bad)
    assert report.tally == Tally(applied=3, undecodable=3)
    assert shard.statistics().undecodable_by_reason == {UndecodableReason.DAMAGED_BATCH: 3}
    assert report.complete


def test_damaged_records_where_some_are_below_the_position_then_count_from_there() -> None:
    """The report counts lost records from the position on."""
    bad = forge(record(0, values_of(life("a"))[0]) + b"\x7f", 5, base_offset=10)
    shard = new_shard(position=13)
    report = apply(shard, record_set(bad))
    assert (report.tally, report.redelivered) == (Tally(undecodable=2), 1)
    again = apply(shard, record_set(bad))
    assert (again.tally, again.entries) == (Tally(), ())


def test_undecompressable_batch_then_is_lost_as_a_whole() -> None:
    """All offsets of the batch are undecodable, and the next batch applies."""
    bad = forge(b"no gzip", 3, base_offset=0, attributes=1)
    shard = new_shard()
    report = apply(shard, record_set(bad, batch_of(life("a")[:2], 3)))
    assert report.tally == Tally(applied=2, undecodable=3)
    assert report.entries[0].value == bad


def test_superfluous_bytes_behind_the_records_then_cost_no_event() -> None:
    """Bytes behind the last counted record lose no event."""
    values = values_of(life("a"))
    section = b"".join(record(at, value) for at, value in enumerate(values)) + b"\0\0"
    shard = new_shard()
    report = apply(shard, record_set(forge(section, 4)))
    assert (report.tally, report.next_offset) == (Tally(applied=4), 4)


PRODUCER = Producer(1, 0, is_transactional=True)
FIRST = batch_of([started("a"), finished("a")])
SECOND = batch_of([started("b", 100, 199), finished("b")], 2)
THIRD = batch_of([started("c", 200, 299), finished("c")], 4)


def moved(batch: bytes, base_offset: int) -> bytes:
    return struct.pack(">q", base_offset) + batch[8:]


FAR = moved(SECOND, 2 ^ 1 << 40)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(record_set(FIRST, FAR, THIRD), id="far ahead, and more behind it"),
        pytest.param(record_set(FIRST, FAR, THIRD, next_offset=6), id="in a set of a known end"),
        pytest.param(record_set(FIRST, moved(SECOND, 3), THIRD), id="one ahead, over the next"),
        pytest.param(record_set(FIRST, moved(SECOND, 0), THIRD), id="below the one before it"),
        pytest.param(record_set(FIRST, FAR, next_offset=4), id="the last one, of a known end"),
    ],
)
def test_batch_with_a_flipped_base_offset_then_is_not_passed(given: RecordSet) -> None:
    """Neighbours show a wrong base offset, which no checksum covers; nothing is skipped."""
    report = new_shard().apply(given)
    assert report.damage is not None
    assert report.damage.reason is DamageReason.BAD_OFFSETS
    assert (report.next_offset, report.complete) == (2, False)
    assert report.tally.missing == 0


def test_hole_between_batches_then_is_no_damage() -> None:
    """Compaction leaves holes: a batch that begins late and ends before the next is sound."""
    shard = new_shard()
    report = shard.apply(record_set(FIRST, moved(SECOND, 10), moved(THIRD, 20), next_offset=30))
    assert report.complete
    assert (report.tally.applied, report.tally.missing, report.next_offset) == (6, 24, 30)


@pytest.mark.parametrize("size", [1, 40, len(SECOND) - 1])
def test_batch_that_is_cut_off_where_the_end_is_known_then_is_not_skipped(size: int) -> None:
    """The position stays before a cut-off batch, even if the known log end lies behind it."""
    shard = new_shard()
    report = shard.apply(record_set(FIRST, SECOND[:size], next_offset=4))
    assert report.complete
    assert (report.next_offset, report.tally.missing) == (2, 0)
    assert shard.apply(record_set(SECOND, next_offset=4)).next_offset == 4


def test_damaged_batches_side_by_side_then_are_passed_together() -> None:
    """The shard passes neighbouring damaged batches and goes on at the next sound one."""
    shard = new_shard()
    broken = SECOND[:-1] + bytes((SECOND[-1] ^ 1,))
    given = record_set(FIRST, broken, moved(broken, 4), moved(THIRD, 6))
    report = shard.apply(given)
    assert report.damage is not None
    aside = shard.set_aside(report.damage, given.data, 6)
    assert (aside.tally.undecodable, aside.next_offset) == (4, 6)
    rest = shard.apply(given)
    assert rest.complete
    assert (rest.tally.applied, rest.next_offset) == (2, 8)


@pytest.mark.parametrize("wrong", [3, 4])
def test_batch_that_was_set_aside_then_is_not_read_again(wrong: int) -> None:
    """A batch that was set aside is not read again, even if its offsets look right then."""
    shard = new_shard()
    given = record_set(FIRST, moved(SECOND, wrong), THIRD, next_offset=6)
    report = shard.apply(given)
    assert report.damage is not None
    shard.set_aside(report.damage, given.data, 4)
    rest = shard.apply(given)
    assert (rest.complete, rest.tally.applied, rest.entries) == (True, 2, ())
    assert [one.start_offset for one in shard.segments(tp())] == [0, 200]


def test_damaged_batch_at_the_end_when_set_aside_then_is_behind() -> None:
    """The same record set given once more has nothing left, though nothing follows the damage."""
    shard = new_shard()
    given = record_set(FIRST, SECOND[:-1] + bytes((SECOND[-1] ^ 1,)))
    report = shard.apply(given)
    assert report.damage is not None
    shard.set_aside(report.damage, given.data, 4)
    assert shard.apply(given).complete
    assert shard.position == 4


@pytest.mark.parametrize("kind", ["empty", "control"])
def test_max_events_where_no_batch_has_a_record_then_still_ends_the_call(kind: str) -> None:
    """Stepping over is work too: a call that is limited steps over so many batches and stops."""
    batches = [
        build_batch([], at, last_offset=at)
        if kind == "empty"
        else build_control_batch(ControlType.COMMIT, at, producer=PRODUCER, timestamp_ms=0)
        for at in range(STEPS_MAX + 5)
    ]
    shard = new_shard()
    given = record_set(*batches)
    assert not shard.apply(given, 1).complete
    assert shard.position == STEPS_MAX
    assert shard.apply(given, 1).complete
    assert shard.position == STEPS_MAX + 5
    assert new_shard().apply(given).complete


def test_image_of_one_partition_when_taken_over_then_replaces_what_was_known() -> None:
    """A user partition moves between shards with everything that is known of it."""
    whole, other = new_shard(), new_shard()
    whole.apply(record_set(FIRST, SECOND))
    other.apply(record_set(THIRD[:0], batch_of([started("x"), finished("x")])))
    image = whole.partition_image(tp())
    assert image is not None
    assert other.import_partition(image) == tp()
    assert other.partition_image(tp()) == image
    assert other.segments(tp()) == whole.segments(tp())
    assert other.knows(tp())


VALUES = [event.value for event in islice(written_events(3, metadata_partitions=1), 40)]


def mutated(seed: int) -> RecordSet:
    rng = Random(seed)
    offset = 0
    data = bytearray()
    for value in VALUES[: rng.randint(2, len(VALUES))]:
        offset += rng.random() < 0.1
        data += single(value, offset)
        offset += 1
    for _ in range(rng.randrange(3)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return RecordSet(0, bytes(data), rng.choice([None, offset, offset + 1]))


def applied(record_set: RecordSet, position: int, max_events: int | None) -> list[Report]:
    shard = ChosenShard(0, position)
    reports = [shard.apply(record_set, max_events)]
    while not reports[-1].complete:
        damage = reports[-1].damage
        if damage is not None:
            if damage.next_offset is None or damage.next_offset <= shard.position:
                break
            reports.append(shard.set_aside(damage, record_set.data, damage.next_offset))
        reports.append(shard.apply(record_set, max_events))
    # A report that ends within a run may name a later batch of it.
    return [
        one if one.complete or one.damage is not None else replace(one, last_batch=None)
        for one in reports
    ]


@pytest.mark.slow
@pytest.mark.parametrize("max_events", [None, 1, 7])
def test_runs_when_batches_are_damaged_or_missing_change_no_report(
    monkeypatch: pytest.MonkeyPatch, max_events: int | None
) -> None:
    """Every report equals that of opening each batch on its own."""
    for seed in range(300):
        record_set = mutated(seed)
        position = seed % 3
        in_runs = applied(record_set, position, max_events)
        with monkeypatch.context() as patch:
            patch.setattr(open_record_set, "RUN_MAX", 0)
            assert in_runs == applied(record_set, position, max_events), seed
