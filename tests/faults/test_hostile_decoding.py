"""Logs that were cut, flipped, forged or blown up: rows up to there, a fault, little memory."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.records.compression import Compression
from rlmm.records.header import CONTROL_BIT, CRC_FROM
from rlmm.records.writer import build_batch, records_of
from spark_tiering.decoding import DecodingFault, DecodingFaultKind
from tests.support.datasource.decoded_rows import Decoded, decode, in_small, wanted
from tests.support.records.batches import field, forge, lying_record, record, varint

ONE = build_batch(records_of([b"one"], 0, 1_000), 0)
TWO = build_batch(records_of([b"two", b"three"], 1, 1_000), 1)
FOUR = build_batch(records_of([b"four"], 3, 1_000), 3)
HEADER = varint(1) + field(b"k") + field(b"v")
CODECS = [pytest.param(codec, id=codec.name.lower()) for codec in Compression if codec]
HUGE = [2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63), -2, -(2**31)]


def values(found: Decoded) -> list[bytes | None]:
    return [row.value for row in found.rows]


def fault_of(log: bytes, **asked: Any) -> DecodingFault:
    found = decode(log, wanted(**asked))
    with in_small():
        assert decode(log, wanted(**asked))[:2] == found[:2]
    assert found.fault is not None
    return found.fault


@pytest.mark.parametrize("at", range(CRC_FROM, len(TWO)))
def test_batch_when_any_covered_byte_is_flipped_then_is_a_fault_with_its_place(at: int) -> None:
    """The rows before a batch with a flipped byte are given, and none of it or behind it."""
    flipped = bytearray(TWO)
    flipped[at] ^= 0x10
    found = decode(ONE + bytes(flipped) + FOUR)
    assert values(found) == [b"one"]
    assert found.fault is not None
    assert (found.fault.kind, found.fault.position) == (DecodingFaultKind.CRC_MISMATCH, len(ONE))
    assert found.fault.offset == 1


def test_batch_when_a_control_bit_is_flipped_then_it_is_no_marker_that_is_left_out() -> None:
    """The reader checks a batch before it leaves it out, so that no record is lost silently."""
    flipped = bytearray(TWO)
    flipped[22] ^= CONTROL_BIT
    assert fault_of(ONE + bytes(flipped)).kind is DecodingFaultKind.CRC_MISMATCH
    assert decode(ONE + bytes(flipped), wanted(checks_crc=False)).counts.markers == 2


@pytest.mark.parametrize("size", range(1, len(TWO)))
def test_log_when_it_is_cut_then_it_is_torn_unless_the_rest_was_not_asked_for(size: int) -> None:
    """The reader reports a cut within a batch, unless only the header was requested."""
    log = ONE + TWO[:size]
    fault = fault_of(log)
    kinds = (DecodingFaultKind.ZEROS,) if not any(TWO[:size]) else (DecodingFaultKind.TORN,)
    assert fault.kind in kinds
    assert fault.position == len(ONE)
    assert values(decode(log)) == [b"one"]
    assert decode(log, wanted(next_offset=1)).fault is None


@pytest.mark.parametrize("piece_bytes", [50, 1 << 20], ids=["pieces", "whole"])
@pytest.mark.parametrize("size", [1, 60, 61, 5_000])
def test_log_when_it_ends_in_zeros_then_they_are_named(size: int, piece_bytes: int) -> None:
    """The reader names trailing zeros, as of a file that was allocated and not closed."""
    found = decode(ONE + bytes(size), piece_bytes=piece_bytes)
    assert values(found) == [b"one"]
    assert found.fault is not None
    assert (found.fault.kind, found.fault.position) == (DecodingFaultKind.ZEROS, len(ONE))


@pytest.mark.parametrize(
    "piece_bytes", [len(ONE), len(ONE) + 100, 1 << 20], ids=["batch", "within", "whole"]
)
def test_log_when_zeros_are_not_the_end_then_they_are_no_length(piece_bytes: int) -> None:
    """Zeros before further bytes, in the same piece or a later one, are a fault."""
    log = ONE + bytes(2 * len(ONE)) + ONE
    found = decode(log, piece_bytes=piece_bytes)
    assert found.fault is not None
    assert found.fault.kind is DecodingFaultKind.LENGTH_TOO_SMALL
    assert found.fault.position == len(ONE)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"length": 48}, DecodingFaultKind.LENGTH_TOO_SMALL),
        ({"length": -1}, DecodingFaultKind.LENGTH_TOO_SMALL),
        ({"length": 2**31 - 1}, DecodingFaultKind.LENGTH_TOO_LARGE),
        ({"magic": 0}, DecodingFaultKind.OLD_FORMAT),
        ({"magic": 1}, DecodingFaultKind.OLD_FORMAT),
        ({"magic": 1, "length": 10_000}, DecodingFaultKind.OLD_FORMAT),
        ({"magic": 3}, DecodingFaultKind.UNSUPPORTED_MAGIC),
        ({"base_offset": -1}, DecodingFaultKind.BAD_OFFSETS),
        ({"base_offset": 2**63 - 1}, DecodingFaultKind.BAD_OFFSETS),
        ({"base_offset": 2**63 - 3, "last_offset_delta": 9}, DecodingFaultKind.BAD_OFFSETS),
        ({"last_offset_delta": -1}, DecodingFaultKind.BAD_OFFSETS),
        ({"base_offset": 0}, DecodingFaultKind.BATCH_OUT_OF_ORDER),
        ({"base_offset": 11}, DecodingFaultKind.BATCH_OUTSIDE),
        ({"last_offset_delta": 10}, DecodingFaultKind.BATCH_OUTSIDE),
        ({"record_count": -1}, DecodingFaultKind.BAD_RECORD_COUNT),
        ({"record_count": 2}, DecodingFaultKind.BAD_RECORD),
        ({"record_count": 2**31 - 1}, DecodingFaultKind.BAD_RECORD),
        ({"record_count": 0}, DecodingFaultKind.TRAILING_BYTES),
        ({"attributes": 5}, DecodingFaultKind.UNKNOWN_COMPRESSION),
        ({"attributes": 7}, DecodingFaultKind.UNKNOWN_COMPRESSION),
        ({"section": b""}, DecodingFaultKind.BAD_RECORD),
        ({"section": record(1, b"x")}, DecodingFaultKind.RECORD_OUT_OF_ORDER),
        ({"section": record(-1, b"x")}, DecodingFaultKind.RECORD_OUT_OF_ORDER),
        ({"section": record(0, b"x") + b"\x00"}, DecodingFaultKind.TRAILING_BYTES),
        ({"section": record(0, b"x", headers=b"\x00\x00")}, DecodingFaultKind.BAD_RECORD),
        ({"section": record(0, b"x", headers=HEADER + b"\x00")}, DecodingFaultKind.BAD_RECORD),
        ({"section": record(0, b"x", headers=HEADER[:-1])}, DecodingFaultKind.BAD_RECORD),
        ({"section": varint(-8) + record(0, b"x")[1:]}, DecodingFaultKind.BAD_RECORD),
        ({"section": record(0, b"x")[:-1]}, DecodingFaultKind.BAD_RECORD),
        ({"section": record(0, b"x", timestamp_delta=2**60)}, DecodingFaultKind.TIME_OUT_OF_RANGE),
    ],
    ids=str,
)
def test_batch_when_it_lies_under_a_right_crc_then_the_lie_has_a_name(
    change: dict[str, Any], kind: DecodingFaultKind
) -> None:
    """The reader gives the rows before a lie in a header or record, then its kind and place."""
    says: dict[str, Any] = {"section": record(0, b"x"), "record_count": 1, "base_offset": 1}
    says |= {"last_offset_delta": 0, **change}
    # What follows may not be read as if nothing were wrong.
    log = ONE + forge(**says) + build_batch(records_of([b"behind"], 5), 5)
    fault = fault_of(log, log_offsets=(0, 10) if kind is DecodingFaultKind.BATCH_OUTSIDE else None)
    assert (fault.kind, fault.position) == (kind, len(ONE))
    assert str(fault).startswith(f"{kind}: byte {len(ONE)}")
    assert values(decode(log)) in ([b"one"], [b"one", b"x"])


def test_records_when_their_offsets_do_not_rise_then_those_before_are_given() -> None:
    """The records before the first equal or falling offset of a batch are given."""
    for second in (0, 1):
        log = forge(record(1, b"a") + record(second, b"b"), 2)
        assert values(decode(log)) == [b"a"]
        assert fault_of(log).kind is DecodingFaultKind.RECORD_OUT_OF_ORDER
        assert fault_of(log).offset == 2
    # The fourth record is the first of those that are read together with it.
    log = forge(b"".join(record(delta, b"a") for delta in (0, 1, 2, 2)), 4)
    assert fault_of(log).kind is DecodingFaultKind.RECORD_OUT_OF_ORDER
    assert fault_of(forge(record(-1, b"a"), 1, base_offset=5)).offset == 5


@pytest.mark.parametrize("length", HUGE)
@pytest.mark.parametrize(
    "place", ["record", "offset", "key", "value", "header-count", "header-key", "header-value"]
)
def test_record_when_a_length_is_absurd_then_it_is_not_followed(place: str, length: int) -> None:
    """The reader follows no absurd length, wherever it stands; only -1 means null."""
    log = forge(record(0, b"good") + lying_record(place, length), 2)
    is_int32 = -(2**31) <= length < 2**31
    is_order = place == "offset" and is_int32
    kind = DecodingFaultKind.RECORD_OUT_OF_ORDER if is_order else DecodingFaultKind.BAD_RECORD
    for behind in (b"", build_batch(records_of([b"four"], 5), 5), bytes(range(256))):
        assert values(decode(log + behind)) == [b"good"]
        assert fault_of(log + behind).kind is kind


@pytest.mark.parametrize("columns", [("offset",), ("key",), ("value",), ("key", "value")], ids=str)
def test_columns_when_others_are_left_out_then_what_they_need_is_still_judged(
    columns: tuple[str, ...],
) -> None:
    """A field that leaves its record is a fault even if the caller reads only that column."""
    start = b"\x00\x00" + varint(1)
    bodies = {
        "offset": b"\x00\x00" + b"\x80\x80",
        "key": start + varint(9) + b"k" * 4,
        "value": start + field(b"k") + varint(20) + b"v" * 4,
    }
    for place, body in bodies.items():
        log = forge(record(0, b"x" * 50) + varint(len(body)) + body + record(2, b"x" * 50), 3)
        needed = ["offset", "key", "value"].index(place)
        reached = max(["offset", "key", "value"].index(name) for name in columns)
        assert (decode(log, wanted(columns=columns)).fault is None) == (needed > reached)
    # Without headers the value is the last field, and ends where the record does.
    log = forge(record(0, b"x", headers=b"\x00\x00"), 1)
    assert (decode(log, wanted(columns=columns)).fault is None) == ("value" not in columns)
    # A value that has the next record in it, and a count of headers that is a length.
    second, start = record(1, b"y"), b"\x00\x00\x00" + field(None)
    short = start + varint(1 + len(second)) + b"v"
    log = forge(varint(len(short)) + short + second + record(2, b"z"), 3)
    assert (decode(log, wanted(columns=columns)).fault is None) == ("value" not in columns)


@pytest.mark.parametrize("size", [2, 3, 5, 6, 9, 10, 11], ids=str)
@pytest.mark.parametrize("place", ["length", "offset", "key", "value", "header-count"])
def test_varint_when_it_has_more_bytes_than_any_then_is_a_fault(place: str, size: int) -> None:
    """The reader refuses a varint of more than five bytes, which Kafka never writes."""

    def padded(number: int, size: int) -> bytes:
        short = bytearray(varint(number))
        while len(short) < size:
            short[-1] |= 0x80
            short.append(0)
        return bytes(short)

    sizes = dict.fromkeys(("length", "offset", "key", "value", "header-count"), 1)
    sizes[place] = size
    body = b"\x00\x00" + padded(0, sizes["offset"]) + padded(1, sizes["key"]) + b"k"
    body += padded(1, sizes["value"]) + b"v" + padded(0, sizes["header-count"])
    log = forge(padded(len(body), sizes["length"]) + body, 1)
    if size > 5:
        assert fault_of(log).kind is DecodingFaultKind.BAD_RECORD
    else:
        assert values(decode(log)) == [b"v"]


def test_time_when_its_delta_has_ten_bytes_then_it_is_read_and_with_eleven_it_is_not() -> None:
    """Deltas are int64; their sum with the first time wraps round as Kafka's does."""
    for base, delta in ((0, 2**40 + 7), (-(2**55), 2**55 + 7), (7 - 2**62, 2**62)):
        (row,) = decode(
            forge(record(0, b"v", timestamp_delta=delta), 1, base_timestamp_ms=base)
        ).rows
        assert row.timestamp_ms == base + delta
    wrapped = forge(record(0, b"v", timestamp_delta=-(2**63)), 1, base_timestamp_ms=7 - 2**63)
    assert decode(wrapped).rows[0].timestamp_ms == 7
    body = b"\x00" + b"\x80" * 10 + b"\x00" + b"\x00" + field(None) + field(b"v") + b"\x00"
    assert fault_of(forge(varint(len(body)) + body, 1)).kind is DecodingFaultKind.BAD_RECORD


def test_time_when_its_column_cannot_hold_it_then_other_columns_are_read() -> None:
    """A value that its column cannot hold is a fault only if the caller reads that column."""
    log = forge(record(0, b"v", timestamp_delta=2**60), 1)
    assert values(decode(log, wanted(columns=("value",)))) == [b"v"]
    assert decode(log).fault is not None


def test_header_when_its_key_is_no_utf8_then_it_is_shown_as_clients_show_it() -> None:
    """The reader replaces malformed bytes in a key as Kafka's clients do."""
    headers = varint(2) + field(b"a\xffb") + field(b"1") + field("é".encode()) + field(None)
    (row,) = decode(forge(record(0, b"v", headers=headers), 1)).rows
    assert row.headers == (("a\N{REPLACEMENT CHARACTER}b", b"1"), ("é", None))


def test_base_offset_when_it_is_changed_then_the_end_is_not_believed() -> None:
    """A changed base offset, which no CRC covers, shows by the next batch or the log's end."""
    changed = bytearray(TWO)
    changed[3] = 1
    fault = fault_of(ONE + bytes(changed) + FOUR, next_offset=3)
    assert fault.kind is DecodingFaultKind.BATCH_OUT_OF_ORDER
    assert (
        fault_of(ONE + bytes(changed), log_offsets=(0, 9)).kind is DecodingFaultKind.BATCH_OUTSIDE
    )


@pytest.mark.parametrize("codec", CODECS)
def test_section_when_it_is_rotten_then_the_batches_before_it_are_given(codec: Compression) -> None:
    """The batches before a rotten section are given, also those inflated together with it."""
    good = build_batch(records_of([b"a", b"b"], 0), 0, compression=codec)
    rotten = forge(b"\x82SNAPPY\x00 rotten", 3, base_offset=2, attributes=codec)
    found = decode(good + rotten + good)
    assert values(found) == [b"a", b"b"]
    assert fault_of(good + rotten).kind is DecodingFaultKind.BAD_COMPRESSION
    assert fault_of(good + rotten).position == len(good)
    assert fault_of(good + rotten).offset == 2
