"""Golden files from `write_golden`, kept for ever: each new format version adds one."""

from __future__ import annotations

import json
import shutil
import struct
from typing import TYPE_CHECKING, Any

import cramjam
import pytest

from rlmm.log.replay_progress import ReplayHistory
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.records.header import BatchMark
from rlmm.snapshot.format import SnapshotHeader, encode_header
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.released_snapshots import released_shard, said_of
from tests.support.engine.snapshots import (
    HISTORY,
    IDENTITY,
    PARTITION,
    file_of,
    full_shard,
    images_of,
    read_back,
    store_in,
)
from tests.support.manual_clock import START_MS
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path


GOLDEN = tree.ROOT / "tests/data/snapshot-version-2.bin"
GOLDEN_1 = tree.ROOT / "tests/data/snapshot-version-1.bin"
BLOCK_BYTES = 60
GOLDEN_HISTORY = ReplayHistory(
    1, 2, 3, 4, 5, 6, last_batch=BatchMark(10, 11, 7, 0xC0FFEE), accepted=12
)
HEADER_BYTES = (
    "524c4d4d534e4150" "0002" "0001"  # magic, version, image version
    "00000003" "00000032" "000000000000000c" "0000018bcfe56800"  # place, position, written
    "0000000000000001" "0000000000000002" "0000000000000003"  # history
    "0000000000000004" "0000000000000005" "0000000000000006"
    "000000000000000a" "000000000000000b" "00000007" "00c0ffee"  # mark of the last batch
    "000000000000000c"  # accepted
    "00000003" "000102030405060708090a0b0c0d0e0f"  # user partitions, topic id
    "0016" "4d6b5533" "4f455642" "4e546377" "4e544a45" "4e444d32" "5167"  # cluster id
)  # fmt: skip


def golden_shard() -> ChosenShard:
    return full_shard(PartitionDeleteState.DELETE_PARTITION_STARTED)


def write_golden(path: Path) -> None:
    path.write_bytes(file_of(golden_shard(), history=GOLDEN_HISTORY, block_bytes=BLOCK_BYTES))


def blocks_of(content: bytes) -> list[tuple[int, bytes]]:
    """Return kind and inflated content of each block, by the tables of the format's page alone."""
    at = 138 + int.from_bytes(content[136:138]) + 4
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


@pytest.mark.parametrize(
    ("path", "history"),
    [
        pytest.param(GOLDEN_1, ReplayHistory(1, 2, 3, 4, 5, 6), id="version-1"),
        pytest.param(GOLDEN, GOLDEN_HISTORY, id="version-2"),
    ],
)
def test_f12_golden_file_when_read_then_is_what_it_was_when_it_was_written(
    path: Path, history: ReplayHistory
) -> None:
    """A file of any version reads as the state that it was written from."""
    header, images = read_back(path.read_bytes())
    shard = golden_shard()
    assert header == SnapshotHeader(IDENTITY, 3, 12, history, 3, START_MS)
    assert shard.position == 12
    assert images == images_of(shard)


def test_f12_writer_when_given_the_same_state_then_writes_the_golden_file() -> None:
    """The writer makes the same bytes, except for those of the compression's version."""
    written = file_of(golden_shard(), history=GOLDEN_HISTORY, block_bytes=BLOCK_BYTES)
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


COMPAT = tree.ROOT / "tests/compat"
VERSIONS = sorted(path.stem for path in COMPAT.glob("snapshots-*.json"))


def said(version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((COMPAT / f"{version}.json").read_text())
    return found


@pytest.mark.parametrize("version", VERSIONS)
async def test_released_snapshot_when_it_is_restored_then_answers_as_when_it_was_written(
    version: str, tmp_path: Path
) -> None:
    """A restored snapshot of a release answers every question as that release did."""
    shutil.copytree(COMPAT / version, tmp_path / "snapshots")
    expected = said(version)
    restored = await store_in(tmp_path / "snapshots").restore(PARTITION, 0, expected["position"])
    assert restored is not None
    assert isinstance(restored.shard, ChosenShard)
    assert restored.history == HISTORY
    assert said_of(restored.shard) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_released_snapshot_then_holds_every_state_there_is(version: str) -> None:
    """The released snapshot has every possible state."""
    partitions = said(version)["user_partitions"]
    states = {one["state"] for partition in partitions for one in partition["segments"]}
    assert states == {state.name for state in list(SegmentState)[:3]}
    deletes = [one["partition_delete"] for one in partitions if one["partition_delete"]]
    assert len({state for _, _, state in deletes}) == 3
    custom = {one["custom_metadata"] for each in partitions for one in each["segments"]}
    assert {None, ""} < custom


def test_newest_released_snapshot_then_is_what_today_s_code_makes_of_the_same_events() -> None:
    """Today's code makes the newest released snapshot from the same events."""
    assert said_of(released_shard()) == said(VERSIONS[-1])
