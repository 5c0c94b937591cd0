"""Files as streams whose announced lengths are checked."""

from __future__ import annotations

import pytest

from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.partition_files import PIECE_BYTES, FileStream, read_whole
from tests.support.partitions.segments import MemoryFiles

CONTENT = bytes(range(200))


class Far(MemoryFiles):
    piece_bytes = 2 * PIECE_BYTES


def read_all(stream: FileStream) -> bytes:
    pieces = []
    while piece := stream.next_piece():
        pieces.append(piece)
    return b"".join(pieces)


def test_stream_when_read_then_gives_each_byte_once_and_in_order() -> None:
    """A stream gives each byte once and in order, to its reader and its listeners."""
    files, heard = MemoryFiles({"f": CONTENT}), bytearray()
    stream = FileStream(files, "f", 200, SegmentPart.LOG, piece_bytes=64, on_piece=heard.extend)
    assert read_all(stream) == CONTENT == heard
    assert stream.finding is None
    assert files.bytes_read == {"f": 200}
    assert files.largest_read == 64


def test_stream_when_the_source_says_its_pieces_then_reads_in_these() -> None:
    """A stream reads in pieces of the size that its source asks for."""
    near, far = MemoryFiles({"f": bytes(PIECE_BYTES * 3)}), Far({"f": bytes(PIECE_BYTES * 3)})
    for files, largest in ((near, PIECE_BYTES), (far, 2 * PIECE_BYTES)):
        assert len(read_all(FileStream(files, "f", PIECE_BYTES * 3, SegmentPart.LOG))) > 0
        assert files.largest_read == largest


@pytest.mark.parametrize(
    ("told", "text"),
    [
        pytest.param(201, "8 of 9 bytes at byte 192 of 201", id="a byte too many"),
        pytest.param(10_000, "8 of 64 bytes", id="far too many"),
        pytest.param(199, "more than the 199 bytes", id="a byte too few"),
        pytest.param(0, "more than the 0 bytes", id="nothing"),
    ],
)
def test_stream_when_the_size_was_told_wrong_then_says_so(told: int, text: str) -> None:
    """A stream whose source returns fewer bytes than announced raises."""
    stream = FileStream(MemoryFiles({"f": CONTENT}), "f", told, SegmentPart.LOG, piece_bytes=64)
    read_all(stream)
    assert stream.finding is not None
    assert stream.finding.kind is Kind.CHANGED
    assert text in stream.finding.detail
    assert stream.next_piece() == b""


def test_stream_when_the_file_has_gone_then_says_so() -> None:
    """A stream of a vanished file raises that it changed."""
    stream = FileStream(MemoryFiles({}), "f", 10, SegmentPart.LOG)
    assert stream.next_piece() == b""
    assert str(stream.finding) == "log: changed: f: 0 of 10 bytes at byte 0 of 10"


def test_stream_when_the_source_gives_too_much_then_takes_none_of_it() -> None:
    """A stream takes no byte of an answer longer than its request."""

    class Generous(MemoryFiles):
        def read(self, name: str, start: int, size: int) -> bytes:
            return super().read(name, start, size + 1)

    stream = FileStream(Generous({"f": CONTENT}), "f", 200, SegmentPart.LOG, piece_bytes=64)
    assert stream.next_piece() == b""
    assert stream.finding is not None


def test_small_file_when_read_whole_then_never_beyond_its_limit() -> None:
    """A small file over its limit is not read at all."""
    files = MemoryFiles({"f": CONTENT})
    assert read_whole(files, "f", 200, SegmentPart.LEADER_EPOCHS, 200) == CONTENT
    files.largest_read = 0
    found = read_whole(files, "f", 200, SegmentPart.LEADER_EPOCHS, 199)
    assert isinstance(found, SegmentFinding)
    assert found.kind is Kind.TOO_LARGE
    assert files.largest_read == 0
    told = read_whole(files, "f", 150, SegmentPart.LEADER_EPOCHS, 1000)
    assert isinstance(told, SegmentFinding)
    assert told.kind is Kind.CHANGED
    assert read_whole(MemoryFiles({"f": b""}), "f", 0, SegmentPart.LEADER_EPOCHS, 9) == b""
