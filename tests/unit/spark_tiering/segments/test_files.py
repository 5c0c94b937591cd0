"""Files as streams whose announced lengths are checked, and the listing of segments."""

from __future__ import annotations

import pytest

from spark_tiering.segments.companions import StoredFiles
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.partition_files import PIECE_BYTES, FileStream, read_whole
from spark_tiering.segments.segment_listing import ListedSegment, list_segments, snapshot_offsets
from spark_tiering.segments.segment_parts import RebuiltPart, StoredPart
from tests.support.partitions.segments import (
    MemoryFiles,
    content_of,
    example_partition,
    inspect_all,
)

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


def test_parts_of_a_report_when_read_then_are_what_a_copy_stores() -> None:
    """A report gives the parts that a copy stores, both existing files and rebuilt ones."""
    files = example_partition()
    bare = files.without(".index", ".timeindex", ".txnindex", ".snapshot", "point")
    for stored, made in zip(inspect_all(files), inspect_all(bare), strict=True):
        for part in set(stored.parts) - {SegmentPart.LOG}:
            content = content_of(files, part, stored.parts[part])
            assert isinstance(content, bytes)
            assert content == content_of(bare, part, made.parts[part])


def test_part_when_its_file_changed_since_then_is_a_finding() -> None:
    """A companion file with another size than in the report, or missing, is a finding."""
    files = MemoryFiles({"f": bytes(24)})
    part = SegmentPart.OFFSET_INDEX
    assert content_of(files, part, StoredPart("f", 24)) == bytes(24)
    for told in (StoredPart("f", 16), StoredPart("f", 32), StoredPart("g", 8)):
        found = content_of(files, part, told)
        assert isinstance(found, SegmentFinding)
        assert found.kind is Kind.CHANGED
    assert content_of(files, part, RebuiltPart(b"x")) == b"x"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        pytest.param({}, Kind.MISSING, id="none"),
        pytest.param({"00000000000000000120.snapshot": b"x"}, Kind.DAMAGED, id="damaged"),
    ],
)
def test_unusable_snapshot_is_named(files: dict[str, bytes], kind: Kind) -> None:
    """An unusable producer snapshot is a finding that names the file."""
    found = StoredFiles(MemoryFiles(files)).snapshot(120)
    assert isinstance(found, SegmentFinding)
    assert found.kind is kind
    assert "00000000000000000120.snapshot" in found.detail


BASE = "00000000000000000120"


def test_segments_when_listed_then_each_ends_where_the_next_begins() -> None:
    """Listed segments are in order, each ends where the next begins, and the last one is active."""
    names = [f"{n:020d}.log" for n in (251, 0, 120)]
    found = list_segments(names)
    assert found == [(0, 120), (120, 251), (251, None)]
    assert [segment.is_rolled for segment in found] == [True, True, False]
    assert found[1].file(".index") == f"{BASE}.index"
    assert list_segments([]) == []


def test_files_in_other_forms_when_listed_then_are_no_segments() -> None:
    """Files being deleted, cleaned or swapped, or without an offset, are not listed."""
    names = [
        f"{BASE}.log.deleted",
        f"{BASE}.log.cleaned",
        f"{BASE}.log.swap",
        f"{BASE}.index",
        "120.log",
        "99999999999999999999.log",
        "leader-epoch-checkpoint",
    ]
    assert list_segments(names) == []
    assert list_segments([*names, f"{BASE}.log"]) == [ListedSegment(120, None)]


def test_snapshots_when_listed_then_their_offsets_rise() -> None:
    """Snapshots are listed by rising offset, whether or not a segment begins there."""
    names = [f"{n:020d}.snapshot" for n in (139, 62)] + [f"{BASE}.log", f"{BASE}.snapshot.deleted"]
    assert snapshot_offsets(names) == [62, 139]
