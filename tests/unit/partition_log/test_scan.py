"""Walking a log file, by heads and with every CRC."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from rlmm.partition_log.scan import BadBatchHead, BatchHead, ScanResult, heads, scan_file
from rlmm.records.records import Record
from rlmm.records.writer import build_batch, records_of
from tests.support.logs.partition_logs import FIRST_MS
from tests.support.logs.scans import contents_of


def file_of(count: int, *, size: int = 10, epoch_every: int = 1000) -> bytes:
    return b"".join(
        build_batch(
            records_of([b"x" * size] * 2, 2 * n, FIRST_MS + n), 2 * n, leader_epoch=n // epoch_every
        )
        for n in range(count)
    )


IN_CORE = (False, True) if find_spec("rlmm_native") else (False,)


def scan(content: bytes, base_offset: int = 0) -> ScanResult:
    def read(size: int, position: int) -> bytes:
        return content[position : position + size]

    ways = [scan_file(read, len(content), base_offset, 100, in_core=in_core) for in_core in IN_CORE]
    assert contents_of(ways[0]) == contents_of(ways[-1])
    return ways[-1]


def walk_heads(content: bytes, position: int = 0) -> list[BatchHead | BadBatchHead]:
    return list(heads(lambda size, at: content[at : at + size], position, len(content)))


@pytest.mark.parametrize("size", [10, 9_000, 600_000], ids=["small", "window", "chunk"])
def test_heads_when_walked_then_name_every_batch(size: int) -> None:
    """The walk finds each batch, whatever its size and the size of a read."""
    content = file_of(5, size=size)
    found = walk_heads(content)
    assert all(isinstance(head, BatchHead) for head in found)
    assert [(head[2], head[3]) for head in found] == [(2 * n, 2 * n + 1) for n in range(5)]  # type: ignore[misc]  # all are heads
    assert found[-1][1] == len(content)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(file_of(2) + b"\0" * 200, id="zeros"),
        pytest.param(file_of(2) + b"\0" * 5, id="short-rest"),
        pytest.param(file_of(3)[:-1], id="cut-off"),
        pytest.param(file_of(2) + b"\xff" * 100, id="garbage"),
    ],
)
def test_heads_when_no_batch_begins_then_say_where(content: bytes) -> None:
    """The walk ends where no batch is, and never runs past the end."""
    found = walk_heads(content)
    assert len(found) == 3
    assert found[-1][0] == len(file_of(2))
    assert isinstance(found[-1], BadBatchHead)


@pytest.mark.parametrize("size", [10, 300_000, 900_000], ids=["small", "chunk", "larger"])
def test_scan_when_everything_is_sound_then_reaches_the_end(size: int) -> None:
    """The scan checks every batch, also one larger than a read."""
    content = file_of(6, size=size, epoch_every=2)
    found = scan(content)
    assert found.damage is None
    assert (found.stop, found.next_offset, found.born_ms) == (len(content), 12, FIRST_MS)
    assert found.epochs == [(0, 0), (1, 4), (2, 8)]
    assert found.index.max_timestamp_ms == FIRST_MS + 5


@pytest.mark.parametrize("size", [10, 900_000], ids=["small", "larger"])
def test_scan_when_a_bit_is_wrong_then_stops_before_that_batch(size: int) -> None:
    """The scan ends before the first damaged batch."""
    one = len(file_of(1, size=size))
    content = bytearray(file_of(5, size=size))
    content[2 * one + 70] ^= 1
    found = scan(bytes(content))
    assert "crc-mismatch" in (found.damage or "")
    assert (found.stop, found.next_offset) == (2 * one, 4)


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"\0" * 3_000_000, id="zeros"),
        pytest.param(file_of(1)[:-1], id="cut-off"),
        pytest.param(b"\0\0\0", id="three-bytes"),
        pytest.param(build_batch(records_of([b"x" * 2_000_000], 4), 4)[:1_500_000], id="large"),
        pytest.param(bytes(8) + b"\x7f\xff\xff\xff" + bytes(100), id="absurd-length"),
        pytest.param(file_of(1), id="offset-again"),
    ],
)
def test_scan_when_the_tail_is_no_batch_then_stops_before_it(tail: bytes) -> None:
    """The scan returns the place behind the last whole batch."""
    content = file_of(2)
    found = scan(content + tail)
    assert found.damage
    assert (found.stop, found.next_offset) == (len(content), 4)


def test_scan_when_offsets_are_missing_then_tells_where() -> None:
    """Holes that compaction left are no damage, and are not overlooked."""
    content = file_of(1) + build_batch([Record(7, FIRST_MS, None, b"")], 7)
    found = scan(content)
    assert (found.damage, found.next_offset) == (None, 8)
    assert [tuple(hole) for hole in found.holes] == [(len(file_of(1)), 2, 7)]


def test_scan_when_a_base_offset_has_jumped_then_stops_before_the_jump() -> None:
    """The scan ends before a base offset that later batches contradict."""
    content = bytearray(file_of(5))
    one = len(content) // 5
    content[2 * one + 5] ^= 1
    found = scan(bytes(content))
    assert found.damage == "base offset 65540, expected 4"
    assert (found.stop, found.next_offset, found.holes) == (2 * one, 4, [])
