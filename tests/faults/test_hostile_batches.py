"""Record sets that were cut, flipped, zeroed or forged: named damage, and bounded work."""

from __future__ import annotations

import ctypes
import mmap
import random
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from rlmm.records import records
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import INFLATED_BYTES_MAX, Compression, deflate
from rlmm.records.damage import DamagedBatch, DamagedRecords, DamageReason, PartialTail
from rlmm.records.header import CRC_FROM, HEADER_BYTES
from rlmm.records.records import PADDING_BYTES, Record, compiled_values
from rlmm.records.writer import build_batch, records_of
from tests.support.records.batches import field, forge, lying_record, record, varint

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE = build_batch(records_of([b"one"], 0, 1_000), 0)
TWO = build_batch(records_of([b"two", b"three"], 1, 1_000), 1)
FOUR = build_batch(records_of([b"four"], 3, 1_000), 3)

HUGE = [2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63 - 20, 2**63 - 40, -(2**63), -2]
CODECS = [pytest.param(codec, id=codec.name.lower()) for codec in Compression if codec]


@pytest.fixture
def peak_bytes() -> Iterator[list[int]]:
    peak: list[int] = []
    tracemalloc.start()
    yield peak
    tracemalloc.stop()


def values_of(data: bytes) -> list[tuple[int, bytes | None]]:
    batches = (found for found in walk(data) if isinstance(found, Batch))
    return [pair for batch in batches for pair in batch.values()]


def damage_of(data: bytes, **limits: int) -> DamagedRecords:
    (batch,) = walk(data)
    assert isinstance(batch, Batch)
    damage = batch.values(**limits).damage
    assert damage is not None
    assert list(batch.records(**limits))[-1] == damage
    return damage


@pytest.mark.parametrize("at", range(CRC_FROM, len(TWO)))
def test_batch_when_any_covered_byte_is_flipped_then_the_crc_tells(at: int) -> None:
    """The CRC detects each flipped bit behind its field, and the batches around stay readable."""
    for bit in (0x01, 0x80):
        flipped = bytearray(TWO)
        flipped[at] ^= bit
        first, second, third = walk(ONE + bytes(flipped) + FOUR)
        assert isinstance(first, Batch)
        assert isinstance(third, Batch)
        assert isinstance(second, DamagedBatch)
        assert second.reason is DamageReason.CRC_MISMATCH
        assert (second.start, second.stop) == (len(ONE), len(ONE) + len(TWO))
        assert second.base_offset == 1


@pytest.mark.parametrize("at", range(CRC_FROM))
def test_batch_when_any_uncovered_byte_is_flipped_then_nothing_before_it_is_lost(at: int) -> None:
    """Offsets and epoch may change unseen; other flips may end the walk behind earlier batches."""
    for bit in (0x01, 0x80):
        flipped = bytearray(TWO)
        flipped[at] ^= bit
        found = list(walk(ONE + bytes(flipped) + FOUR))
        assert isinstance(found[0], Batch)
        is_outside_crc = at < 8 or 12 <= at < 16
        assert isinstance(found[1], Batch) == (is_outside_crc and not (at == 0 and bit == 0x80))


def test_record_set_when_cut_at_any_byte_then_ends_cleanly() -> None:
    """A cut record set gives its whole batches and a partial tail, or none between batches."""
    data = ONE + TWO + FOUR
    bounds = [0, len(ONE), len(ONE) + len(TWO), len(data)]
    for size in range(len(data)):
        found = list(walk(data[:size]))
        whole = sum(bound <= size for bound in bounds[1:])
        assert all(isinstance(each, Batch) for each in found[:whole])
        assert values_of(data[:size]) == values_of(data)[: [0, 1, 3][whole]]
        rest = size - bounds[whole]
        tail = found[whole:]
        if rest:
            is_zeros = not any(data[bounds[whole] : size])
            assert tail == [PartialTail(bounds[whole], rest, is_zeros=is_zeros)]
        else:
            assert tail == []


@pytest.mark.parametrize("size", [1, 11, 12, 17, 60, 61, 62, 10_000_000])
def test_record_set_when_it_ends_in_zeros_then_the_tail_is_a_preallocated_files(size: int) -> None:
    """A preallocated file ends behind its last batch."""
    first, tail = walk(ONE + bytes(size))
    assert isinstance(first, Batch)
    assert tail == PartialTail(len(ONE), size, is_zeros=True)


def test_record_set_when_zeros_are_not_the_end_then_they_are_damage() -> None:
    """Zeros before further bytes are damage with its place, not a tail."""
    first, damaged = walk(ONE + bytes(5_000) + FOUR)
    assert isinstance(first, Batch)
    assert isinstance(damaged, DamagedBatch)
    assert (damaged.reason, damaged.stop) == (DamageReason.LENGTH_TOO_SMALL, None)


def test_record_set_when_the_middle_is_damaged_then_the_rest_is_read() -> None:
    """Damage in one batch, or in its records, costs nothing but that batch."""
    rotten = bytearray(TWO)
    rotten[-1] ^= 0xFF
    assert values_of(ONE + bytes(rotten) + FOUR) == [(0, b"one"), (3, b"four")]
    forged = forge(record(0, b"two") + b"\xff", 2, base_offset=1)
    assert values_of(ONE + forged + FOUR) == [(0, b"one"), (1, b"two"), (3, b"four")]


@pytest.mark.parametrize("step", [-1, 1], ids=["short", "long"])
def test_record_set_when_a_length_is_one_off_then_the_walk_ends_in_damage(step: int) -> None:
    """A batch length that is off by one ends the walk in damage."""
    wrong = bytearray(TWO)
    wrong[8:12] = (len(TWO) - 12 + step).to_bytes(4, "big")
    first, second, *rest = walk(ONE + bytes(wrong) + FOUR)
    assert isinstance(first, Batch)
    assert isinstance(second, DamagedBatch)
    assert second.reason is DamageReason.CRC_MISMATCH
    assert not any(isinstance(each, Batch) for each in rest)


@pytest.mark.parametrize("length", HUGE)
@pytest.mark.parametrize(
    "place", ["record", "key", "value", "header-count", "header-key", "header-value"]
)
def test_record_when_a_length_is_absurd_under_a_valid_crc_then_is_damage_or_null(
    place: str, length: int
) -> None:
    """An absurd length under a right CRC is damage or null, and never leaves the batch."""
    data = forge(record(0, b"good") + lying_record(place, length), 2)
    for behind in (b"", FOUR, bytes(range(256))):
        batch = next(iter(walk(data + behind)))
        assert isinstance(batch, Batch)
        found = list(batch.records())
        assert found[0] == Record(0, 1_000, None, b"good")
        if length < 0 and place in ("key", "value", "header-value"):
            assert isinstance(found[1], Record)
            assert batch.values().damage is None
        else:
            assert isinstance(found[1], DamagedRecords)
            assert found[1].reason is DamageReason.BAD_RECORD
            assert list(batch.values()) == [(0, b"good")]


def test_record_when_varints_run_on_past_the_batch_then_what_follows_is_not_read() -> None:
    """A varint that runs past the batch is not completed from the next batch."""
    for overrun in (1, 5, 9, 10):
        headers = varint(2) + field(b"k") + b"\xff" * overrun
        body = b"\x00\x00\x00" + field(None) + field(b"v") + headers
        for length in range(len(body), len(body) + 25):
            data = forge(varint(length) + body, 1)
            expected = damage_of(data)
            assert expected.records_read == 0
            for behind in (b"\x01" * 40, b"\xff" * 9 + b"\x01" * 40, FOUR):
                batch = next(iter(walk(data + behind)))
                assert isinstance(batch, Batch)
                assert list(batch.records()) == [expected]
                assert len(batch.values()) == 0


def test_compiled_reader_when_given_hostile_sections_then_stays_within_the_padding() -> None:
    """The compiled reader never reads beyond the padding, even for the widest hostile section."""
    guarded_at = 16 * mmap.PAGESIZE
    memory = mmap.mmap(-1, guarded_at + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    guard = ctypes.c_void_p(address + guarded_at)
    assert libc.mprotect(guard, mmap.PAGESIZE, 0) == 0
    # A header value without bytes, then the next header's key: each length as long as can be.
    body = b"\x00\x00\x00" + field(None) + field(b"v") + varint(2) + field(b"k")
    sections = [varint(len(body) + 9) + body]
    chance = random.Random(7)
    numbers = [varint(sign * 2**bits) for sign in (1, -1) for bits in (0, 3, 31, 40, 62)]
    numbers += [b"\x00", b"\xff", b"\xff" * 9, varint(2**63 - 1), varint(-(2**63)), body]
    sections += [b"".join(chance.choices(numbers, k=chance.randrange(20))) for _ in range(3_000)]
    end = guarded_at - PADDING_BYTES
    for section in sections:
        batch = forge(section, 3)
        memory[end - len(batch) : end] = batch
        for behind in (b"\xff" * 9 + b"\x01", b"\xff", b"\x00"):
            memory[end:guarded_at] = (behind * PADDING_BYTES)[:PADDING_BYTES]
            compiled_values(memoryview(memory)[end - len(batch) : end], 0, 2)


@pytest.mark.parametrize("count", [2, 1_000, 2**31 - 1])
def test_batch_when_it_claims_more_records_than_bytes_then_nothing_is_reserved_for_them(
    count: int, peak_bytes: list[int]
) -> None:
    """A false record count reserves no memory, which follows the bytes that are there."""
    data = forge(record(0, b"x"), count, last_offset_delta=5)
    assert damage_of(data).records_read == 1
    peak_bytes.append(tracemalloc.get_traced_memory()[1])
    # Whatever other threads of this process do meanwhile is traced as well.
    assert peak_bytes[0] < 1_000_000


@pytest.mark.parametrize("codec", CODECS)
def test_batch_when_a_bomb_then_is_refused_within_the_limit(
    codec: Compression, peak_bytes: list[int]
) -> None:
    """A small section that inflates to 32 MiB ends at the limit as a value."""
    limit = 1_000_000
    data = forge(deflate(codec, bytes(32 * 1024 * 1024)), 1, attributes=codec, last_offset_delta=9)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    damage = damage_of(data, inflated_bytes_max=limit)
    peak_bytes.append(tracemalloc.get_traced_memory()[1] - before)
    assert damage.reason is DamageReason.INFLATED_TOO_LARGE
    assert (damage.records_read, damage.first_offset, damage.next_offset) == (0, 0, 10)
    assert peak_bytes[0] < 3 * limit + len(data)


def test_batch_when_a_bomb_passes_the_default_limit_then_is_refused() -> None:
    """The reader applies a default limit when the caller names none."""
    section = deflate(Compression.ZSTD, bytes(INFLATED_BYTES_MAX + 1))
    assert len(section) < 10_000
    damage = damage_of(forge(section, 1, attributes=Compression.ZSTD))
    assert damage.reason is DamageReason.INFLATED_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_batch_when_its_compressed_section_is_rotten_then_all_its_records_are_lost(
    codec: Compression,
) -> None:
    """A section that its codec cannot have written is damage from its first offset on."""
    damage = damage_of(
        forge(b"\x82SNAPPY\x00 rotten", 3, base_offset=40, attributes=codec, last_offset_delta=4)
    )
    assert damage.reason is DamageReason.BAD_COMPRESSION
    assert (damage.records_read, damage.first_offset, damage.next_offset) == (0, 40, 45)


@pytest.mark.parametrize("codec", CODECS)
def test_batch_when_a_compressed_section_ends_in_damage_then_good_records_are_delivered(
    codec: Compression,
) -> None:
    """Inflated records are judged as strictly as plain ones."""
    section = deflate(codec, record(0, b"good") + record(1, b"cut")[:-2])
    (batch,) = walk(forge(section, 2, attributes=codec))
    assert isinstance(batch, Batch)
    values = batch.values()
    assert list(values) == [(0, b"good")]
    assert values.damage is not None
    assert values.damage.reason is DamageReason.BAD_RECORD


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_batch_when_its_codec_is_unknown_then_its_records_are_lost(codec_id: int) -> None:
    """The reader loses the records of a batch whose codec the format does not define."""
    damage = damage_of(forge(record(0, b"x"), 1, attributes=codec_id))
    assert damage.reason is DamageReason.UNKNOWN_COMPRESSION
    assert str(codec_id) in damage.detail


def test_record_when_it_is_a_bomb_of_headers_then_values_stay_cheap(
    peak_bytes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch full of two-byte headers uses memory in proportion to its bytes."""
    headers = varint(10_000) + (field(b"") + field(None)) * 10_000
    data = forge(b"".join(record(n, b"x", headers=headers) for n in range(6)), 6)
    monkeypatch.setattr(records, "COMPILED_BYTES_MAX", len(data) - 1)
    (batch,) = walk(data)
    assert isinstance(batch, Batch)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert len(batch.values()) == 6
    peak_bytes.append(tracemalloc.get_traced_memory()[1] - before)
    assert peak_bytes[0] < 3 * len(data)


def test_walk_when_rubbish_is_long_then_looks_at_its_begin_only() -> None:
    """A megabyte of rubbish is one damaged batch, not a search for the next one."""
    found = list(walk(b"\xa5" * 1_000_000))
    assert len(found) == 1
    assert isinstance(found[0], DamagedBatch)
    assert len(list(walk(b"\xa5" * (HEADER_BYTES - 1)))) == 1
