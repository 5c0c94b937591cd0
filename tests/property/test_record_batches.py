"""Record batches under hypothesis: round trips, two readers that agree, arbitrary bytes."""

from __future__ import annotations

import google_crc32c
import hypothesis.strategies as st
from hypothesis import assume, given

from rlmm.records.batch import Batch, TimestampType, walk
from rlmm.records.compression import Compression
from rlmm.records.damage import DamagedBatch, DamagedRecords, PartialTail
from rlmm.records.header import CRC_FROM, HEADER_BYTES
from rlmm.records.records import Record, compiled_records, strict_records, strict_values
from rlmm.records.writer import NO_PRODUCER, Producer, build_batch
from tests.support.records.batches import forge, varint

TIMES = st.integers(min_value=-1, max_value=2**53)
NULLABLE = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=8), NULLABLE), max_size=3).map(tuple)
PRODUCERS = st.just(NO_PRODUCER) | st.builds(
    Producer,
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.booleans(),
)


@st.composite
def records(draw: st.DrawFn) -> tuple[int, int, list[Record]]:
    base_offset = draw(st.integers(0, 2**62))
    deltas = sorted(draw(st.sets(st.integers(0, 300), max_size=12)))
    last_offset = base_offset + max(deltas, default=0) + draw(st.integers(0, 5))
    found = [
        Record(base_offset + delta, draw(TIMES), draw(NULLABLE), draw(NULLABLE), draw(HEADERS))
        for delta in deltas
    ]
    return base_offset, last_offset, found


@given(
    records(),
    st.sampled_from(Compression),
    st.sampled_from(TimestampType),
    PRODUCERS,
    st.integers(-1, 2**31 - 1),
)
def test_batch_when_written_and_read_then_nothing_has_changed(
    shape: tuple[int, int, list[Record]],
    compression: Compression,
    timestamp_type: TimestampType,
    producer: Producer,
    leader_epoch: int,
) -> None:
    """Any records, offsets, codec and producer read back from a written batch."""
    base_offset, last_offset, written = shape
    data = build_batch(
        written,
        base_offset,
        last_offset=last_offset,
        leader_epoch=leader_epoch,
        compression=compression,
        timestamp_type=timestamp_type,
        producer=producer,
    )
    (batch,) = walk(data)
    assert isinstance(batch, Batch)
    assert (batch.base_offset, batch.last_offset) == (base_offset, last_offset)
    assert (batch.leader_epoch, batch.timestamp_type) == (leader_epoch, timestamp_type)
    assert batch.compression is (compression if written else Compression.NONE)
    assert producer == Producer(
        batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional
    )
    assert not batch.is_control
    check_readers_agree(batch)
    newest = max((r.timestamp_ms for r in written), default=-1)
    assert batch.max_timestamp_ms == newest
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        written = [r._replace(timestamp_ms=newest) for r in written]
    assert list(batch.records()) == written
    assert list(batch.values()) == [(r.offset, r.value) for r in written]


def check_readers_agree(batch: Batch) -> None:
    """Check that every way of reading *batch* gives the same records and the same damage."""
    found = list(batch.records(inflated_bytes_max=1_000_000))
    values = batch.values(inflated_bytes_max=1_000_000)
    good = [each for each in found if isinstance(each, Record)]
    lost = [each for each in found if isinstance(each, DamagedRecords)]
    assert list(values) == [(each.offset, each.value) for each in good]
    assert len(lost) <= 1
    assert values.damage == (lost[0] if lost else None)
    assert found[len(good) :] == lost
    offsets = [each.offset for each in good]
    assert offsets == sorted(set(offsets))
    assert all(batch.base_offset <= offset <= batch.last_offset for offset in offsets)
    for damage in lost:
        assert damage.records_read == len(good) <= batch.record_count
        assert damage.first_offset == (offsets[-1] + 1 if offsets else batch.base_offset)
        assert damage.next_offset == batch.next_offset
    readable = batch._readable(1_000_000)
    if not isinstance(readable, DamagedRecords):
        section = batch._section(readable)
        strict = list(strict_records(section))
        assert strict == found
        compiled = compiled_records(section)
        assert compiled in (None, strict)
        again = strict_values(section)
        assert (list(again), again.damage) == (list(values), values.damage)


def check_walk(data: bytes) -> None:
    """Check that a walk over *data* accounts for every byte and reads every batch."""
    position = 0
    for found in walk(data):
        assert found.start == position
        if isinstance(found, Batch):
            check_readers_agree(found)
        if isinstance(found, PartialTail):
            assert found.size == len(data) - position > 0
            return
        if isinstance(found, DamagedBatch) and found.stop is None:
            return
        assert found.stop is not None
        assert found.start < found.stop <= len(data)
        position = found.stop
    assert position == len(data)


@given(st.binary(max_size=400))
def test_walk_when_given_any_bytes_then_accounts_for_each(data: bytes) -> None:
    """A walk over any bytes accounts for each and never raises."""
    check_walk(data)


@given(st.data())
def test_walk_when_batches_are_mutated_then_never_raises(data: st.DataObject) -> None:
    """A walk over batches that are changed, cut, inserted or repeated never raises."""
    shapes = data.draw(st.lists(st.tuples(records(), st.sampled_from(Compression)), max_size=3))
    whole = bytearray(
        b"".join(
            build_batch(found, base, last_offset=last, compression=codec)
            for (base, last, found), codec in shapes
        )
    )
    assume(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        stop = data.draw(st.integers(at, min(len(whole), at + 8)))
        whole[at:stop] = data.draw(st.binary(max_size=8))
        assume(whole)
    check_walk(bytes(whole))


@given(records(), st.sampled_from(Compression), st.data())
def test_batch_when_mutated_under_a_valid_crc_then_readers_agree_and_never_raise(
    shape: tuple[int, int, list[Record]], compression: Compression, data: st.DataObject
) -> None:
    """Readers of a mutated batch under a right CRC agree and never raise."""
    base_offset, last_offset, found = shape
    batch = bytearray(
        build_batch(found, base_offset, last_offset=last_offset, compression=compression)
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(CRC_FROM, len(batch) - 1))
        batch[at] = data.draw(st.integers(0, 255))
    batch[17:21] = google_crc32c.value(bytes(batch[CRC_FROM:])).to_bytes(4, "big")
    check_walk(bytes(batch) + bytes(data.draw(st.integers(0, 100))))


HOSTILE = st.sampled_from([-(2**63), -2, -1, 0, 1, 2**31 - 1, 2**40, 2**62, 2**63 - 1]).map(varint)
PIECES = st.one_of(HOSTILE, st.integers(-3, 40).map(varint), st.binary(max_size=6))


@given(
    st.lists(PIECES, max_size=40).map(b"".join),
    st.integers(0, 6) | st.just(2**31 - 1),
    st.integers(0, 10),
    st.binary(max_size=80),
)
def test_section_when_made_of_hostile_numbers_then_readers_agree_whatever_follows(
    section: bytes, record_count: int, last_offset_delta: int, behind: bytes
) -> None:
    """Bytes after a batch never change the records that readers return of it."""
    batch_bytes = forge(section, record_count, last_offset_delta=last_offset_delta)
    (alone,) = walk(batch_bytes)
    assert isinstance(alone, Batch)
    check_readers_agree(alone)
    followed = next(iter(walk(batch_bytes + behind)))
    assert isinstance(followed, Batch)
    check_readers_agree(followed)
    assert list(followed.records()) == list(alone.records())
    assert followed.stop == len(batch_bytes) == HEADER_BYTES + len(section)
