"""Decoding beside readers that go record by record, and of committed rows alone."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c
import hypothesis.strategies as st
from hypothesis import given, settings

from rlmm.records.batch import TimestampType
from rlmm.records.compression import Compression, deflate
from rlmm.records.control import ControlType
from rlmm.records.header import CRC_FROM, HEADER, HEADER_BYTES
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, build_control_batch
from spark_tiering.decoding import COLUMNS, AbortedSearch, DecodingFault, read_txn_index
from tests.support.datasource.decoded_rows import (
    Row,
    decode,
    in_small,
    only,
    parsed_by_aiokafka,
    read_by_records,
    wanted,
)
from tests.support.records.strategies import RANDOM, damaged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

TIMES = st.integers(0, 2**45) | st.just(-1)
CONTENT = st.none() | st.binary(max_size=40) | st.integers(60, 9_000).map(lambda size: size * b"v")
HEADERS = st.lists(
    st.tuples(st.text(max_size=5) | st.just(80 * "k"), st.none() | st.binary(max_size=9)),
    max_size=3,
).map(tuple)
KINDS = st.sampled_from([*6 * ["data"], "log-append", "empty", "marker", "horizon"])
PIECES = st.sampled_from([1 << 20, 1 << 20, 700, 61, 7])


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    log, offset = b"", draw(st.sampled_from([0, 0, 7, 2**40]))
    for kind in draw(st.lists(KINDS, max_size=6)):
        batch, offset = _batch(draw, kind, offset)
        log += batch
        offset += draw(st.sampled_from([0, 0, 0, 3]))
    return log


def _batch(draw: st.DrawFn, kind: str, base: int) -> tuple[bytes, int]:
    if kind == "marker":
        producer = Producer(9, 0, is_transactional=True)
        marker = draw(st.sampled_from([ControlType.COMMIT, ControlType.ABORT]))
        return build_control_batch(marker, base, producer=producer, timestamp_ms=5), base + 1
    if kind == "empty":
        codec = draw(st.sampled_from(Compression))
        last = base + draw(st.integers(0, 3))
        return build_batch([], base, last_offset=last, compression=codec), last + 1
    deltas = sorted(draw(st.sets(st.integers(0, 12), min_size=1, max_size=6)))
    records = [
        Record(base + delta, draw(TIMES), draw(CONTENT), draw(CONTENT), draw(HEADERS))
        for delta in deltas
    ]
    last = records[-1].offset + draw(st.sampled_from([0, 0, 2]))
    is_appended = kind == "log-append"
    batch = build_batch(
        records,
        base,
        last_offset=last,
        compression=draw(st.sampled_from(Compression)),
        timestamp_type=TimestampType(is_appended),
        max_timestamp_ms=2**41 if is_appended else None,
    )
    if kind == "horizon":
        batch = resealed(batch, attributes=64)
    return batch, last + 1


def resealed(batch: bytes, *, attributes: int = 0) -> bytes:
    header = list(HEADER.unpack_from(batch))
    header[5] |= attributes
    changed = HEADER.pack(*header) + batch[HEADER_BYTES:]
    header[4] = google_crc32c.value(changed[CRC_FROM:])
    return HEADER.pack(*header) + batch[HEADER_BYTES:]


@given(logs(), PIECES, st.booleans())
def test_decoder_gives_sound_logs_whole(log: bytes, piece_bytes: int, is_small: bool) -> None:
    """The decoder gives aiokafka's rows for any piece size, with and without its fast paths."""
    with in_small(lanes=1 if is_small else 2, rows_max=3 if is_small else 1_000):
        found = decode(log, piece_bytes=piece_bytes)
    assert found.fault is None
    assert found.rows == parsed_by_aiokafka(log)


@given(logs(), st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True), st.booleans())
def test_decoder_gives_any_columns_equally(log: bytes, columns: list[str], is_small: bool) -> None:
    """The decoder gives the same values for any columns in any order."""
    with in_small() if is_small else in_small(lanes=2):
        found = decode(log, wanted(columns=tuple(columns)))
    assert found.fault is None
    assert found.rows == only(parsed_by_aiokafka(log), columns)


@given(logs(), st.data())
def test_decoder_when_ranges_are_wanted_counts_the_others(log: bytes, data: st.DataObject) -> None:
    """The decoder gives exactly the rows of its offsets and times, and counts the others."""
    everything = parsed_by_aiokafka(log)
    offsets = [row.offset for row in everything] or [0]
    times = [row.timestamp_ms for row in everything] or [0]
    first, behind = sorted(data.draw(st.sampled_from(offsets)) + each for each in (0, 3))
    behind = max(first, data.draw(st.sampled_from([behind, offsets[-1], offsets[-1] + 1])))
    from_ms, to_ms = sorted(data.draw(st.tuples(*2 * [st.sampled_from(times)])))
    if data.draw(st.booleans()):
        from_ms, to_ms = -(2**63), 2**63 - 1
    asked = wanted(
        first_offset=first, next_offset=behind, first_time_ms=from_ms, last_time_ms=to_ms
    )
    with in_small():
        found = decode(log, asked)
    assert found.fault is None
    inside = [row for row in everything if first <= row.offset < behind]
    assert found.rows == [row for row in inside if from_ms <= row.timestamp_ms <= to_ms]
    # A batch that is too old as a whole is not looked into, and counted whole.
    gone = len(inside) - len(found.rows)
    assert gone <= found.counts.untimely <= len(everything) - len(found.rows)


@given(logs(), RANDOM, st.booleans())
def test_decoder_when_damaged_gives_rows_before(log: bytes, chance: Random, is_small: bool) -> None:
    """After damage, with a right CRC or a wrong one, there are earlier rows and a named fault."""
    if not log:
        return
    for _ in range(8):
        bad = damaged(chance, log)
        if not bad:
            continue
        for checks_crc in (True, False):
            with in_small(lanes=1 if is_small else 50):
                found = decode(bad, wanted(checks_crc=checks_crc))
            _assert_nothing_wrong(found.rows, found.fault, bad, checks_crc=checks_crc)


@given(logs(), RANDOM)
@settings(max_examples=60)
def test_decoder_when_damage_has_a_right_crc_gives_earlier_rows(log: bytes, chance: Random) -> None:
    """The decoder gives the rows before the damage, which lies below compression and CRC."""
    records = parsed_by_aiokafka(log)
    if not records:
        return
    base = records[0].offset
    few = [
        Record(base + at, row.timestamp_ms, row.key, row.value, row.headers or ())
        for at, row in enumerate(records[:5])
    ]
    plain = build_batch(few, base)
    for codec in Compression:
        section = deflate(codec, damaged(chance, plain[HEADER_BYTES:]))
        header = list(HEADER.unpack_from(plain))
        header[1], header[5] = 49 + len(section), codec.value
        bad = resealed(HEADER.pack(*header) + section)
        with in_small(lanes=chance.choice((1, 50))):
            found = decode(bad)
        _assert_nothing_wrong(found.rows, found.fault, bad)


def _assert_nothing_wrong(
    found: list[Row], fault: DecodingFault | None, log: bytes, *, checks_crc: bool = True
) -> None:
    expected, is_damaged = read_by_records(log, checks_crc=checks_crc)
    assert found == expected[: len(found)]
    if fault is None:
        assert found == expected
        assert not is_damaged


@given(st.binary(max_size=200), st.booleans())
def test_decoder_when_bytes_are_anything_gives_no_row(data: bytes, checks_crc: bool) -> None:
    """The decoder makes no rows of arbitrary bytes."""
    found = decode(data, wanted(checks_crc=checks_crc))
    assert not found.rows
    assert bool(data) == (found.fault is not None)


def test_decoder_when_batches_are_many_and_of_many_sizes_then_rows_are_aiokafkas() -> None:
    """The decoder gives aiokafka's rows for hundreds of batches and for one very long one."""
    chance = random.Random(11)
    log, offset = b"", 0
    for number in range(300):
        count = 3_000 if number == 150 else chance.choice((1, 2, 2, 2, 5, 40))
        records = [_any_record(offset + at, chance) for at in range(count)]
        log += build_batch(records, offset, compression=chance.choice(list(Compression)))
        offset += count
    found = decode(log, piece_bytes=100_000)
    assert found.fault is None
    assert found.rows == parsed_by_aiokafka(log)
    assert found.counts.batches == 300


def _any_record(offset: int, chance: Random) -> Record:
    key = chance.choice((None, b"", chance.randbytes(8), chance.randbytes(90)))
    value = chance.choice((None, b"", chance.randbytes(50), chance.randbytes(300)))
    count = 40 if offset % 500 == 0 else chance.choice((0, 0, 1, 2))
    headers = tuple(
        (f"h{at}", chance.choice((None, b"", chance.randbytes(6)))) for at in range(count)
    )
    return Record(
        offset, 1_700_000_000_000 + chance.randrange(-(10**9), 10**9), key, value, headers
    )


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["data", "data", "abort", "commit", "alone"])),
    max_size=40,
)


class Segment(NamedTuple):
    first: int
    log: bytes
    txn_index: bytes


class History:
    def __init__(self) -> None:
        self.offset = 0
        self.committed: set[int] = set()
        self.segments: list[Segment] = [Segment(0, b"", b"")]
        self._open: dict[int, list[int]] = {}

    @property
    def stable_offset(self) -> int:
        return min((offsets[0] for offsets in self._open.values()), default=self.offset)

    def data(self, producer: int, count: int, *, is_transactional: bool) -> None:
        offsets = list(range(self.offset, self.offset + count))
        if is_transactional:
            self._open.setdefault(producer, []).extend(offsets)
        else:
            self.committed.update(offsets)
        by = Producer(producer, 0, 0, is_transactional)
        records = [Record(offset, 1_000, None, b"%d" % offset) for offset in offsets]
        self._add(build_batch(records, self.offset, producer=by), count)

    def end(self, producer: int, kind: ControlType) -> None:
        offsets = self._open.pop(producer, [])
        entry = b""
        if kind is ControlType.COMMIT:
            self.committed.update(offsets)
        elif offsets:
            stable = min((each[0] for each in self._open.values()), default=self.offset + 1)
            entry = struct.pack(">hqqqq", 0, producer, offsets[0], self.offset, stable)
        by = Producer(producer, 0, -1, is_transactional=True)
        self._add(build_control_batch(kind, self.offset, producer=by, timestamp_ms=1), 1, entry)

    def roll(self) -> None:
        if self.segments[-1].log:
            self.segments.append(Segment(self.offset, b"", b""))

    def _add(self, batch: bytes, count: int, entry: bytes = b"") -> None:
        last = self.segments[-1]
        self.segments[-1] = Segment(last.first, last.log + batch, last.txn_index + entry)
        self.offset += count


def history_of(steps: Sequence[tuple[int, str]], rolls: Sequence[bool]) -> History:
    history = History()
    for at, (producer, step) in enumerate(steps):
        if rolls[at % len(rolls)]:
            history.roll()
        if step == "abort":
            history.end(producer, ControlType.ABORT)
        elif step == "commit":
            history.end(producer, ControlType.COMMIT)
        else:
            # Who writes by itself is nobody who has transactions.
            is_alone = step == "alone"
            history.data(producer + 10 * is_alone, 1 + at % 3, is_transactional=not is_alone)
    return history


@given(STEPS, st.lists(st.booleans(), min_size=1, max_size=5), st.data())
def test_decoder_when_transactions_were_aborted_then_their_rows_are_left_out(
    steps: list[tuple[int, str]], rolls: list[bool], data: st.DataObject
) -> None:
    """Aborted rows are left out in any range below the last stable offset."""
    history = history_of(steps, rolls)
    first = data.draw(st.integers(0, history.stable_offset))
    behind = data.draw(st.integers(first, history.stable_offset))
    search, asked = AbortedSearch(first, behind), 0
    behinds = [segment.first for segment in history.segments[1:]] + [history.offset]
    for segment, segment_behind in zip(history.segments, behinds, strict=True):
        if segment_behind <= first or search.is_complete:
            continue
        entries = read_txn_index(segment.txn_index)
        assert not isinstance(entries, DecodingFault)
        search.take(entries)
        asked += 1
    log = b"".join(segment.log for segment in history.segments)
    found = decode(log, wanted(first_offset=first, next_offset=behind, aborted=search.found))
    assert found.fault is None
    expected = [offset for offset in range(first, behind) if offset in history.committed]
    assert [row.offset for row in found.rows] == expected
    assert all(row.value == b"%d" % row.offset for row in found.rows)
    assert asked <= len(history.segments)


@given(st.binary(max_size=150) | st.lists(st.binary(min_size=34, max_size=34)).map(b"".join))
def test_txn_index_when_bytes_are_anything_then_is_sound_or_a_fault(content: bytes) -> None:
    """Any index bytes give whole, ordered entries of the known version, or a fault."""
    found = read_txn_index(content)
    if isinstance(found, DecodingFault):
        assert found.detail
        return
    assert 34 * len(found) == len(content)
    assert all(0 <= one.first_offset <= one.last_offset for one in found)
    assert [one.last_offset for one in found] == sorted({one.last_offset for one in found})
