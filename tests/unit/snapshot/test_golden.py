"""A golden file of format version 1, from `write_golden`, kept for ever: a new version adds one."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import cramjam

from rlmm.log.replay_progress import ReplayHistory
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.snapshot.format import SnapshotHeader, encode_header
from tests.support.engine.snapshots import IDENTITY, file_of, full_shard, images_of, read_back
from tests.support.manual_clock import START_MS
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.python_shard import PythonShard

GOLDEN = tree.ROOT / "tests/data/snapshot-version-1.bin"
BLOCK_BYTES = 60
HISTORY = ReplayHistory(1, 2, 3, 4, 5, 6)
HEADER_BYTES = (
    "524c4d4d534e4150" "0001" "0001"  # magic, version, image version
    "00000003" "00000032" "000000000000000c" "0000018bcfe56800"  # place, position, written
    "0000000000000001" "0000000000000002" "0000000000000003"  # history
    "0000000000000004" "0000000000000005" "0000000000000006"
    "00000003" "000102030405060708090a0b0c0d0e0f"  # user partitions, topic id
    "0016" "4d6b5533" "4f455642" "4e546377" "4e544a45" "4e444d32" "5167"  # cluster id
)  # fmt: skip


def golden_shard() -> PythonShard:
    return full_shard(PartitionDeleteState.DELETE_PARTITION_STARTED)


def write_golden(path: Path) -> None:
    path.write_bytes(file_of(golden_shard(), history=HISTORY, block_bytes=BLOCK_BYTES))


def blocks_of(content: bytes) -> list[tuple[int, bytes]]:
    """Return kind and inflated content of each block, by the tables of the format's page alone."""
    at = 106 + int.from_bytes(content[104:106]) + 4
    blocks = []
    while content[at] != 0:
        kind, inflated, size = struct.unpack_from(">BII", content, at)
        data = content[at + 9 : at + 9 + size]
        at += 9 + size
        found = data if kind == 1 else bytes(cramjam.zstd.decompress(data))
        assert len(found) == inflated
        blocks.append((kind, found))
    assert len(content) == at + 13 + 32
    return blocks


def test_f12_golden_file_when_read_then_is_what_it_was_when_it_was_written() -> None:
    """A file of version 1 reads as the state that it was written from."""
    header, images = read_back(GOLDEN.read_bytes())
    shard = golden_shard()
    assert header == SnapshotHeader(IDENTITY, 3, 12, HISTORY, 3, START_MS)
    assert shard.position == 12
    assert images == images_of(shard)


def test_f12_writer_when_given_the_same_state_then_writes_the_golden_file() -> None:
    """The writer makes the same bytes, except for those of the compression's version."""
    written = file_of(golden_shard(), history=HISTORY, block_bytes=BLOCK_BYTES)
    golden = GOLDEN.read_bytes()
    assert blocks_of(written) == blocks_of(golden)
    size = len(encode_header(read_back(golden)[0]))
    assert written[:size] == golden[:size]
    assert written[-45:-32] == golden[-45:-32]  # the trailer


def test_golden_file_begins_with_the_bytes_of_the_tables() -> None:
    """The header is spelled out once, so that the tables of the format's page are shown to hold."""
    expected = bytes.fromhex(HEADER_BYTES.replace(" ", ""))
    assert GOLDEN.read_bytes()[: len(expected)] == expected
    kinds = [kind for kind, _ in blocks_of(GOLDEN.read_bytes())]
    assert set(kinds) == {1, 2}
