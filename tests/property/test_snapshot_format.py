"""Snapshots of any shard, and files of any bytes."""

from __future__ import annotations

import hashlib
import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import ImageCorrupt, SnapshotError
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.metadata.ids import INT32_MAX, INT64_MAX
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.snapshot.format import FIELDS, MAGIC, START, SnapshotHeader
from tests.support.engine.snapshots import (
    file_of,
    full_shard,
    header_of,
    images_of,
    read_back,
    segments,
    shard_of,
)
from tests.support.records import strategies

if TYPE_CHECKING:
    from random import Random

    from rlmm.metadata.events import Event

COUNTS = st.integers(0, INT64_MAX)
HISTORIES = st.builds(ReplayHistory, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
IDENTITIES = st.builds(
    LogIdentity,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    strategies.UUIDS,
    st.integers(4, INT32_MAX),
)
BLOCKS = st.integers(1, 400)
SMALL = file_of(shard_of(segments(2)), block_bytes=100)
LARGE_NUMBERS = st.sampled_from(
    [2**60, 2**63 - 1, 2**64 - 1, 2**31 - 1, 2**32 - 1, 2**30, 2**20, 2**15]
)


def opened(content: bytes) -> None:
    header, images = read_back(content)
    shard = PythonShard(header.partition, header.position)
    for image in images:
        shard.import_partition(image)


@given(strategies.histories(max_size=60), HISTORIES, IDENTITIES, COUNTS, BLOCKS, st.data())
def test_f3_f4_snapshot_when_written_then_is_read_back_whole(
    events: list[Event],
    counts: ReplayHistory,
    identity: LogIdentity,
    written_ms: int,
    block_bytes: int,
    data: st.DataObject,
) -> None:
    """Header and images come back from any position, and the rest gives what a replay gives."""
    at = data.draw(st.integers(0, len(events)), label="taken at")
    shard = shard_of(events[:at])
    fields = {"identity": identity, "history": counts, "written_ms": written_ms}
    header: SnapshotHeader = header_of(shard, **fields)
    content = file_of(shard, block_bytes=block_bytes, **fields)
    found, images = read_back(content)
    assert (found, images) == (header, images_of(shard))
    again = PythonShard(found.partition, found.position)
    for image in images:
        again.import_partition(image)
    assert again.image() == shard.image()
    for event in events[at:]:
        again.apply_event(event)
    assert again.image() == shard_of(events).image()


@pytest.mark.parametrize("block_bytes", [60, 250_000], ids=["many blocks", "one block"])
def test_f8_snapshot_when_any_bit_of_it_differs_then_is_refused(block_bytes: int) -> None:
    """A snapshot with any changed bit, position and digest included, is refused."""
    shard = full_shard(PartitionDeleteState.DELETE_PARTITION_MARKED)
    content = file_of(shard, block_bytes=block_bytes)
    for bit in range(len(content) * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotError):
            read_back(bytes(flipped))


@given(strategies.RANDOM)
def test_f8_snapshot_when_damaged_then_is_refused(random: Random) -> None:
    """A snapshot with bytes replaced, added, removed, moved or cut off is refused."""
    for _ in range(20):
        damaged = strategies.damaged(random, SMALL)
        if damaged != SMALL:
            with pytest.raises(SnapshotError):
                read_back(damaged)


def resealed(content: bytes) -> bytes:
    body = bytearray(content[:-32])
    at = START.size + FIELDS.size
    if len(body) > at:
        at += int.from_bytes(body[at - 2 : at])
    if len(body) >= at + 4:
        body[at : at + 4] = struct.pack(">I", google_crc32c.value(bytes(body[:at])))
    return bytes(body) + hashlib.sha256(body).digest()


@given(strategies.RANDOM)
def test_f10_snapshot_when_forged_then_is_refused_or_is_what_it_says(random: Random) -> None:
    """With checksums that fit, damage is our error or a sound state; nothing else happens."""
    for _ in range(20):
        with suppress(SnapshotError, ImageCorrupt):
            opened(resealed(strategies.damaged(random, SMALL[:-32]) + bytes(32)))


@given(st.binary(max_size=400), st.integers(0, 2))
def test_f10_snapshot_when_it_is_arbitrary_bytes_then_is_refused(rest: bytes, kind: int) -> None:
    """The reader raises our error for arbitrary bytes, with and without a valid beginning."""
    start = (b"", MAGIC, START.pack(MAGIC, 1, 1))[kind]
    for content in (start + rest, resealed(start + rest)):
        with pytest.raises(SnapshotError):
            opened(content)


@given(LARGE_NUMBERS, st.integers(0, len(SMALL)), st.sampled_from([2, 4, 8]))
def test_f10_snapshot_of_huge_numbers_allocates_nothing(number: int, at: int, width: int) -> None:
    """A huge number in a snapshot makes the reader allocate no more than the file could fill."""
    size = number.to_bytes(8)[-width:]
    forged = resealed(SMALL[:at] + size + SMALL[at + width :])
    tracemalloc.start()
    try:
        with suppress(SnapshotError, ImageCorrupt):
            opened(forged)
        assert tracemalloc.get_traced_memory()[1] < 3 * 2**20
    finally:
        tracemalloc.stop()


def test_snapshot_of_equal_state_is_equal_but_for_the_time() -> None:
    """Snapshots of equal state differ in their time alone."""
    first, second = shard_of(segments(50)), shard_of(segments(50))
    assert file_of(first) == file_of(second)
    header = header_of(first)
    assert read_back(file_of(second, written_ms=1))[0] == replace(header, written_ms=1)
