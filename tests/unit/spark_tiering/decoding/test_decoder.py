"""The decoder's promises to its caller, and aborted transactions."""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.records.batch import TimestampType
from rlmm.records.compression import Compression
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, records_of
from spark_tiering.decoding import (
    AbortedSearch,
    AbortedTransaction,
    BatchDecoder,
    DecodingFault,
    DecodingFaultKind,
    decompression,
    read_txn_index,
    schema_of,
)
from spark_tiering.decoding.aborted import AbortedRanges
from tests.support.datasource.decoded_rows import Row, decode, in_small, wanted
from tests.support.records.batches import forge

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


ONE = build_batch(records_of([b"one"], 0, 1_000), 0)
TWO = build_batch(records_of([b"two", b"three"], 1, 2_000), 1)
FOUR = build_batch(records_of([b"four"], 3, 3_000), 3)
LOG = ONE + TWO + FOUR


def batches_of(found: Iterable[pa.RecordBatch | DecodingFault]) -> list[pa.RecordBatch]:
    rows = list(found)
    assert not any(isinstance(each, DecodingFault) for each in rows)
    return rows


def test_schema_when_nothing_is_left_out_then_is_that_of_sparks_kafka_source() -> None:
    """The schema has the names, order and exact types of Spark's Kafka source."""
    assert str(schema_of()).splitlines() == [
        "key: binary",
        "value: binary",
        "topic: string",
        "partition: int32",
        "offset: int64",
        "timestamp: timestamp[us, tz=UTC]",
        "timestampType: int32",
        "headers: list<item: struct<key: string, value: binary>>",
        "  child 0, item: struct<key: string, value: binary>",
        "      child 0, key: string",
        "      child 1, value: binary",
    ]


def test_rows_when_a_record_has_everything_then_each_column_has_its_own() -> None:
    """A row has every field of its record, and distinguishes null from empty."""
    headers = (("a", b"1"), ("", None), ("\N{LATIN SMALL LETTER E WITH ACUTE}", b""))
    records = [
        Record(7, 1_700_000_000_123, b"key", b"value", headers),
        Record(9, -1, None, b""),
        Record(10, 0, b"", None, (("b", b"2"),)),
    ]
    for codec in Compression:
        assert decode(build_batch(records, 7, compression=codec)).rows == [
            Row(b"key", b"value", "orders", 3, 7, 1_700_000_000_123, 0, headers),
            Row(None, b"", "orders", 3, 9, -1, 0, None),
            Row(b"", None, "orders", 3, 10, 0, 0, (("b", b"2"),)),
        ]


def test_rows_when_the_broker_stamped_them_then_all_have_its_time() -> None:
    """The rows of a batch with log append time all have the batch's time."""
    stamped = build_batch(
        records_of([b"a", b"b"], 4, 5), 4,
        timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=9_000,
    )  # fmt: skip
    found = [(row.timestamp_ms, row.timestamp_type) for row in decode(LOG + stamped).rows]
    assert found == [(1_000, 0), (2_000, 0), (2_000, 0), (3_000, 0), (9_000, 1), (9_000, 1)]


def test_columns_when_they_are_given_then_rows_have_them_in_that_order() -> None:
    """Rows hold exactly the wanted columns, in the wanted order, also in another process."""
    asked = wanted(columns=("offset", "value"), aborted=(AbortedTransaction(1, 2, 3, 4),))
    assert pickle.loads(pickle.dumps(asked)) == asked
    decoder = BatchDecoder(asked)
    (rows,) = batches_of(decoder.feed(LOG))
    assert rows.schema == decoder.schema == schema_of(("offset", "value"))
    values = [b"one", b"two", b"three", b"four"]
    assert rows.to_pydict() == {"offset": [0, 1, 2, 3], "value": values}


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": ()},
        {"columns": ("key", "key")},
        {"columns": ("keys",)},
        {"first_offset": -1},
        {"first_offset": 2, "next_offset": 1},
        {"next_offset": 2**63},
        {"partition": 2**31},
    ],
    ids=str,
)
def test_wanted_when_it_cannot_be_meant_then_is_refused(asked: dict[str, Any]) -> None:
    """Impossible columns or ranges are refused before a byte is read."""
    with pytest.raises(InvalidArgument):
        wanted(**asked)


@pytest.mark.parametrize("piece_bytes", [1, 13, 61, len(ONE), len(ONE) + 5, 1_000])
def test_pieces_when_they_are_cut_anywhere_then_rows_are_the_same(piece_bytes: int) -> None:
    """Rows do not depend on the cuts between pieces, and a batch is decoded with its last byte."""
    assert decode(LOG, piece_bytes=piece_bytes)[:2] == decode(LOG)[:2]
    decoder = BatchDecoder(wanted())
    assert not batches_of(decoder.feed(ONE[:-1]))
    assert batches_of(decoder.feed(ONE[-1:]))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_pieces_when_they_change_afterwards_then_rows_do_not(kind: type) -> None:
    """Rows keep their values when the caller overwrites the buffer."""
    for cut in (20, len(ONE) - 3, len(LOG)):
        buffer = bytearray(LOG)
        decoder = BatchDecoder(wanted(columns=("value",)))
        rows = batches_of(decoder.feed(kind(memoryview(buffer)[:cut])))
        buffer[:cut] = bytes(cut)
        rows += batches_of(decoder.feed(LOG[cut:]))
        values = [value for each in rows for value in each.column("value").to_pylist()]
        assert values == [b"one", b"two", b"three", b"four"]


@pytest.mark.parametrize("codec", Compression)
def test_rows_when_more_is_read_then_those_before_stay_what_they_are(codec: Compression) -> None:
    """Rows stay unchanged when the decoder reuses its buffer."""
    decoder = BatchDecoder(wanted())
    kept = []
    for number in range(4):
        headers = (("h", b"%d" % number),)
        record = Record(number, 0, b"k%d" % number, b"v%d" % number, headers)
        kept += batches_of(decoder.feed(build_batch([record], number, compression=codec)))
    values = [each.to_pydict() for each in kept]
    assert [each["value"] for each in values] == [[b"v%d" % number] for number in range(4)]
    assert [each["headers"][0][0]["value"] for each in values] == [b"%d" % at for at in range(4)]


def test_rows_when_they_are_many_then_they_come_some_at_a_time() -> None:
    """Rows come in portions limited by bytes, records and headers."""
    pair = (("a", b"1"), ("b", b"2"))
    log = b"".join(build_batch([Record(at, 0, None, 90 * b"v", pair)], at) for at in range(12))
    for limits, rows_max in (
        ({"portion_bytes": 400}, 2),
        ({"portion_bytes": 1 << 20, "rows_max": 3, "headers_max": 100}, 3),
        ({"portion_bytes": 1 << 20, "rows_max": 100, "headers_max": 8}, 4),
    ):
        with in_small(**{"lanes": 1, "rows_max": 100, "headers_max": 100, **limits}):
            found = [len(each) for each in batches_of(BatchDecoder(wanted()).feed(log))]
        assert sum(found) == 12
        assert max(found) == rows_max


@pytest.mark.parametrize("codec", Compression)
def test_batch_when_its_last_record_is_gone_then_it_is_stepped_over(codec: Compression) -> None:
    """An empty batch that compaction left is passed over and counts for the end offset."""
    empty = forge(b"", 0, base_offset=4, attributes=codec)
    found = decode(LOG + empty + build_batch(records_of([b"five"], 5), 5))
    assert found.fault is None
    assert [row.offset for row in found.rows] == [0, 1, 2, 3, 5]
    decoder = BatchDecoder(wanted())
    assert decoder.next_offset == 0
    assert batches_of(decoder.feed(LOG + empty))
    assert decoder.next_offset == 5


def test_decoder_when_the_end_was_reached_then_it_is_done_and_takes_no_more() -> None:
    """The decoder stops at its end offset and ignores damage behind it."""
    decoder = BatchDecoder(wanted(first_offset=1, next_offset=2))
    rows = batches_of(decoder.feed(LOG + b"\xff" * 100))
    assert [each.column("offset").to_pylist() for each in rows] == [[1]]
    assert decoder.is_done
    assert decoder.finish() is None
    assert not list(decoder.feed(b"anything"))
    assert (decoder.counts.rows, decoder.counts.outside) == (1, 3)


def test_decoder_when_it_found_a_fault_then_it_is_told_once_and_kept() -> None:
    """The decoder yields a fault once, returns no rows after it, and returns it at the end."""
    decoder = BatchDecoder(wanted(), position=1_000)
    found = list(decoder.feed(ONE + b"\xff" * 100))
    assert isinstance(found[-1], DecodingFault)
    assert found[-1].position == 1_000 + len(ONE)
    assert decoder.is_done
    assert not list(decoder.feed(TWO))
    assert decoder.finish() is found[-1] is decoder.fault


def test_decoder_when_rows_were_not_taken_then_the_next_piece_is_refused() -> None:
    """The decoder refuses the next piece while rows of the last one are not consumed."""
    decoder = BatchDecoder(wanted())
    next(decoder.feed(LOG))
    with pytest.raises(AssertionError, match="not taken"):
        next(decoder.feed(FOUR))


def test_batches_when_they_are_too_old_then_they_are_not_inflated() -> None:
    """A batch whose header's newest time is too old is not decompressed."""
    rotten = bytearray(build_batch(records_of([b"a"], 4, 500), 4, compression=Compression.ZSTD))
    rotten[-4:] = b"\xff" * 4
    found = decode(LOG + bytes(rotten), wanted(first_time_ms=2_000, checks_crc=False))
    assert found.fault is None
    assert [row.offset for row in found.rows] == [1, 2, 3]
    assert found.counts.untimely == 2


def test_transaction_when_it_was_aborted_then_other_batches_of_its_producer_stay() -> None:
    """Of a producer's batches only those within its aborted transaction are left out."""
    theirs = Producer(5, 0, 0, is_transactional=True)
    others = Producer(6, 0, 0, is_transactional=True)
    alone = Producer(5, 0, 0)
    log = b"".join(
        build_batch(records_of([b"%d" % at], at), at, producer=producer)
        for at, producer in enumerate([theirs, theirs, others, alone, theirs, theirs])
    )
    aborted = (AbortedTransaction(5, 1, 4, 5),)
    found = decode(log, wanted(aborted=aborted))
    assert [row.offset for row in found.rows] == [0, 2, 3, 5]
    assert found.counts.aborted == 2
    assert len(decode(log).rows) == 6


def test_zstd_when_its_library_is_absent_gives_equal_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the zstandard library, which only adds speed, rows are the same."""
    log = build_batch(records_of([b"a", None], 0), 0, compression=Compression.ZSTD)
    with_it = decode(log)
    monkeypatch.setattr(decompression, "ZstdFrameReader", None)
    assert decode(log) == with_it


def test_faults_when_they_are_shown_then_they_say_where_and_what() -> None:
    """A fault is one line with its place."""
    fault = DecodingFault(DecodingFaultKind.TORN, 61, 7, "the last 3 bytes are no whole batch")
    assert str(fault) == "torn: byte 61, offset 7: the last 3 bytes are no whole batch"
    assert str(DecodingFault(DecodingFaultKind.ZEROS, 0, -1, "x")) == "zeros: byte 0: x"


# Producer 4001, offsets 240 to 250, last stable offset 245.
LITERAL = bytes.fromhex("00000000000000000fa100000000000000f000000000000000fa00000000000000f5")
ENTRY = AbortedTransaction(4001, 240, 250, 245)


def packed(*entry: int) -> bytes:
    return struct.pack(">hqqqq", *entry)


def test_index_when_a_broker_wrote_it_then_entries_are_what_it_says() -> None:
    """An index gives its literal bytes' entries, and an empty one means no aborts."""
    assert read_txn_index(LITERAL) == (ENTRY,)
    assert read_txn_index(memoryview(LITERAL + packed(0, 7, 251, 252, 253))) == (
        ENTRY,
        AbortedTransaction(7, 251, 252, 253),
    )
    assert read_txn_index(b"") == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LITERAL[:-1], "33 bytes are no whole entries"),
        (LITERAL + b"\x00", "35 bytes"),
        (packed(1, 7, 1, 2, 3), "version 1"),
        (packed(0, 7, -1, 2, 3), "offsets -1 to 2"),
        (packed(0, 7, 3, 2, 3), "offsets 3 to 2"),
        (LITERAL + LITERAL, "last offset 250 behind 250"),
        (LITERAL + bytes(34), "last offset 0 behind 250"),
    ],
)
def test_index_when_it_is_none_then_is_a_fault_that_says_why(content: bytes, said: str) -> None:
    """A broken index is refused with its reason; half of it would let aborted records through."""
    found = read_txn_index(content)
    assert isinstance(found, DecodingFault)
    assert said in found.detail


def test_search_when_an_entry_says_that_all_is_decided_then_no_index_is_needed_any_more() -> None:
    """An entry that decides the whole range ends the search, wherever its transaction lies."""
    search = AbortedSearch(100, 200)
    search.take([AbortedTransaction(1, 10, 99, 50), AbortedTransaction(2, 90, 100, 90)])
    assert not search.is_complete
    search.take([AbortedTransaction(3, 199, 300, 199), AbortedTransaction(4, 200, 310, 200)])
    assert search.is_complete
    search.take([AbortedTransaction(5, 150, 320, 321)])
    assert [entry.producer_id for entry in search.found] == [2, 3]
    assert AbortedSearch(5, 5).is_complete
    assert not AbortedSearch(5, 6).is_complete


def test_ranges_when_a_producer_aborted_often_then_each_batch_meets_its_own() -> None:
    """An aborted range reaches from its first offset to its marker, both inclusive."""
    ranges = AbortedRanges(
        [AbortedTransaction(1, 10 * at, 10 * at + 3, 0) for at in (4, 0, 8, 7, 3, 5, 1, 6, 2)]
    )
    for offset in range(-1, 95):
        assert ranges.cover(1, offset) == (0 <= offset < 90 and offset % 10 <= 3)
    assert not ranges.cover(2, 10)
    assert ranges
    assert not AbortedRanges([])
