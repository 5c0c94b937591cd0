"""The batches of a log file, in pieces of any size."""

from __future__ import annotations

import pytest

from rlmm.records.compression import Compression, deflate
from rlmm.records.control import ControlType
from rlmm.records.writer import Producer, build_batch, records_of
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.log_walk import LOG_BYTES_MAX, LogBatch, LogWalk, TransactionMarker
from spark_tiering.segments.partition_files import FileStream
from tests.support.partitions.segments import T_MS, MemoryFiles, data_batch, marker_batch
from tests.support.records.batches import forge, record

TXN = Producer(7, 3, 5, is_transactional=True)
LOG = data_batch(0, T_MS) + data_batch(10, T_MS + 1, size=300, producer=TXN)
LOG += marker_batch(20, T_MS + 2, TXN)


def walk(
    content: bytes, *, told: int | None = None, piece_bytes: int = 4096
) -> tuple[LogWalk, list[LogBatch]]:
    files = MemoryFiles({"f.log": content})
    size = len(content) if told is None else told
    found = LogWalk(FileStream(files, "f.log", size, SegmentPart.LOG, piece_bytes=piece_bytes))
    return found, list(found)


@pytest.mark.parametrize("piece_bytes", [61, 64, 299, 300, 1171, 1172, 1500, 4096])
def test_batches_when_walked_then_are_the_same_in_pieces_of_any_size(piece_bytes: int) -> None:
    """The batches of a walk are the same in pieces of any size."""
    found, batches = walk(LOG * 3, piece_bytes=piece_bytes)
    assert found.finding is None
    assert found.stop == 3 * len(LOG)
    assert len(batches) == 9
    first, second, third = batches[:3]
    assert first == (0, 1171, 0, 9, 4, T_MS, -1, -1, -1, False, False, None)
    assert second == (1171, 300, 10, 19, 4, T_MS + 1, 7, 3, 5, True, False, None)
    assert (third.position, third.size, third.is_control) == (1471, 78, True)
    if piece_bytes >= 78:
        assert third.marker == TransactionMarker(ControlType.ABORT, 7, T_MS + 2)


def changed(at: int, value: int, content: bytes = LOG) -> bytes:
    return content[:at] + bytes([value]) + content[at + 1 :]


@pytest.mark.parametrize("piece_bytes", [128, 4096])
@pytest.mark.parametrize(
    ("content", "kind", "stop", "text"),
    [
        pytest.param(LOG[:-1], Kind.TORN, 1471, "no whole batch", id="last byte gone"),
        pytest.param(LOG[:1200], Kind.TORN, 1171, "byte 1171 of 1200", id="in a header"),
        pytest.param(LOG[:1300], Kind.TORN, 1171, "byte 1171", id="in a large batch"),
        pytest.param(LOG + b"\0" * 5, Kind.TORN, 1549, "5 bytes", id="few zeros"),
        pytest.param(LOG + b"\0" * 9_000, Kind.UNTRIMMED, 1549, "9000 bytes", id="zeros"),
        pytest.param(
            LOG + b"\0" * 9_000 + b"\1", Kind.DAMAGED, 1549, "zeros", id="zeros, then not"
        ),
        pytest.param(changed(1000, 0), Kind.DAMAGED, 0, "crc", id="a bit of a record"),
        pytest.param(changed(1180, 255), Kind.TORN, 1171, "", id="length of 16 MB"),
        pytest.param(changed(1179, 127), Kind.DAMAGED, 1171, "length", id="length of 2 GB"),
        pytest.param(changed(1179, 255), Kind.DAMAGED, 1171, "length", id="length below 0"),
        pytest.param(changed(16, 3), Kind.DAMAGED, 0, "magic 3", id="magic"),
        pytest.param(changed(16, 1), Kind.OLD_FORMAT, 0, "magic 1", id="old"),
        pytest.param(changed(0, 255), Kind.DAMAGED, 0, "offset", id="negative offset"),
        pytest.param(b"not a log at all, but text" * 9, Kind.DAMAGED, 0, "", id="text"),
    ],
)
def test_log_when_it_is_not_sound_then_says_what_and_where(
    content: bytes, kind: Kind, stop: int, text: str, piece_bytes: int
) -> None:
    """A walk gives the batches before a fault, then one finding with its position."""
    found, batches = walk(content, piece_bytes=piece_bytes)
    assert found.finding is not None
    assert found.finding.kind is kind
    assert text in found.finding.detail
    assert found.stop == stop == sum(batch.size for batch in batches)
    assert f"byte {stop} of {len(content)}" in found.finding.detail


@pytest.mark.parametrize("told", [1, 1170, 1171, 1500, 5000])
def test_log_when_its_size_was_told_wrong_then_says_so(told: int) -> None:
    """A log longer or shorter than announced is a finding."""
    found, _ = walk(LOG, told=told)
    assert found.finding is not None
    assert found.finding.kind in {Kind.CHANGED, Kind.TORN}


def test_log_when_it_is_larger_than_any_segment_then_is_not_read() -> None:
    """A walk does not read a log announced larger than any segment."""
    found, batches = walk(LOG, told=LOG_BYTES_MAX + 1)
    assert batches == []
    assert found.finding is not None
    assert found.finding.kind is Kind.TOO_LARGE


def test_log_when_it_is_empty_then_has_no_batches() -> None:
    """An empty log has no batches and no fault."""
    found, batches = walk(b"")
    assert (found.finding, batches, found.stop) == (None, [], 0)


def test_large_batch_when_walked_then_is_never_held_whole() -> None:
    """A walk checks a large batch piece by piece and never holds it whole."""
    content = data_batch(0, T_MS, size=1_000_000) + data_batch(10, T_MS)
    files = MemoryFiles({"f.log": content})
    stream = FileStream(files, "f.log", len(content), SegmentPart.LOG, piece_bytes=1000)
    found = LogWalk(stream)
    assert [batch.size for batch in found] == [1_000_000, 1171]
    assert found.finding is None
    assert files.largest_read == 1000
    damaged, batches = walk(changed(999_999, 0, content), piece_bytes=1000)
    assert batches == []
    assert damaged.finding is not None
    assert "crc-mismatch" in damaged.finding.detail


@pytest.mark.parametrize(
    ("section", "count", "expected"),
    [
        pytest.param(b"", 0, None, id="emptied by compaction"),
        pytest.param(record(0, b"\0\0\0\0\0\7", key=b"\0\0\0\1"), 1, "commit", id="commit"),
        pytest.param(record(0, b"\0\0\0\0\0\7", key=b"\0\0\0\0"), 1, "abort", id="abort"),
        pytest.param(record(0, b"\0\0\0\0\0\7", key=b"\0\0\0\2"), 1, "other", id="other kind"),
        pytest.param(record(0, b"\0\0\0\0\0\7", key=b"\0"), 1, "other", id="short key"),
        pytest.param(record(0, b"\0\0\0\0\0\7"), 1, "other", id="no key"),
        pytest.param(record(0, b"\0\0", key=b"\0\0\0\0"), 1, "other", id="short value"),
        pytest.param(record(0, None, key=b"\0\0\0\0"), 1, "other", id="no value"),
        pytest.param(record(0, b"\xff\0\0\0\0\7", key=b"\0\0\0\0"), 1, "other", id="version"),
        pytest.param(b"\x7f\x7f", 1, "other", id="no record"),
    ],
)
def test_unreadable_marker_is_of_other(section: bytes, count: int, expected: str | None) -> None:
    """A control batch without a whole marker is of another kind and ends no transaction."""
    batch = forge(section, count, attributes=0x30, producer_id=7, producer_epoch=0)
    found, batches = walk(batch)
    assert found.finding is None
    assert batches[0].is_control
    marker = batches[0].marker
    assert (None if marker is None else marker.kind) == expected


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_marker_when_its_batch_holds_more_is_not_opened(compression: Compression) -> None:
    """A control batch that is large or compressed is not inflated beyond the size of a marker."""
    swollen = record(0, b"\0\0\0\0\0\7" + bytes(100_000), key=b"\0\0\0\0")
    section = deflate(compression, swollen)
    batch = forge(section, 1, attributes=0x30 | compression, producer_id=7)
    found, batches = walk(batch, piece_bytes=2**20)
    assert found.finding is None
    assert batches[0].marker is not None
    assert batches[0].marker.kind is ControlType.OTHER


def test_data_when_walked_then_is_not_opened() -> None:
    """A walk never decompresses data, so that an unknown codec is no damage."""
    plain = build_batch(records_of([b"x"], 0), 0)
    odd = forge(plain[61:], 1, attributes=0x07)
    found, batches = walk(odd)
    assert (found.finding, len(batches)) == (None, 1)
