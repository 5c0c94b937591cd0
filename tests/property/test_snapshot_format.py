"""Snapshots of any shard, files of any bytes, and a reader written from the page of the format."""

from __future__ import annotations

import ast
import hashlib
import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import google_crc32c
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlmm.errors import ImageCorrupt, SnapshotError
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.metadata.ids import INT32_MAX, INT64_MAX
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.snapshot.format import FIELDS, MAGIC, START, SnapshotHeader
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)
from tests.support.builders import segment_id as named
from tests.support.engine import plain_snapshot_reader
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.plain_snapshot_reader import read_snapshot
from tests.support.engine.snapshots import (
    HISTORY,
    IDENTITY,
    file_of,
    full_shard,
    header_of,
    images_of,
    read_back,
    segments,
    shard_of,
)
from tests.support.manual_clock import START_MS
from tests.support.records import strategies
from tests.support.repository import tree

if TYPE_CHECKING:
    from random import Random

    from rlmm.metadata.events import Event
    from rlmm.metadata.segment import SegmentMetadata
    from tests.support.engine.plain_snapshot_reader import Segment, UserPartition

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
    shard = ChosenShard(header.partition, header.position)
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
    again = ChosenShard(found.partition, found.position)
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


PAGE = tree.ROOT / "docs/snapshot-format.md"
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
BUSY, ODD, GONE, AGAIN = tp("busy", 1), tp("\u00fc\u4e2d", 2), tp("gone", 3), tp("again", 4)

EVERYTHING: list[Event] = [
    # copies of all states, with custom metadata that is absent, empty, and long
    started(named("plain", BUSY), 0, 99, broker_id=7, size_bytes=11, max_timestamp_ms=5),
    finished(named("plain", BUSY), broker_id=8, event_timestamp_ms=9),
    started(named("empty", BUSY), 100, 199, custom_metadata=b"\x01"),
    finished(named("empty", BUSY), custom_metadata=b""),
    started(named("long", BUSY), 200, 299, txn_index_empty=True),
    finished(named("long", BUSY), custom_metadata=bytes(range(256)) * 2),
    started(named("open", BUSY), 300, 399, custom_metadata=b"open"),
    started(named("leaving", BUSY), 400, 499),
    finished(named("leaving", BUSY)),
    delete_started(named("leaving", BUSY), custom_metadata=b"bye"),
    started(named("given up", BUSY), 500, 599),
    delete_started(named("given up", BUSY)),
    started(named("left", BUSY), 600, 699, {5: 600}),
    finished(named("left", BUSY)),
    delete_started(named("left", BUSY)),
    delete_finished(named("left", BUSY)),
    # two that finished over each other, and a wide one below both
    started(named("wide", BUSY), 1_000, 1_999, {1: 1_000}),
    finished(named("wide", BUSY)),
    started(named("first", BUSY), 1_200, 1_299, {1: 1_200}),
    finished(named("first", BUSY)),
    started(named("second", BUSY), 1_200, 1_399, {1: 1_200}),
    finished(named("second", BUSY)),
    # many epochs, a stray, numbers at their ends
    started(named("many", ODD), 0, 9_999, {epoch: epoch * 10 for epoch in range(200)}),
    finished(named("many", ODD)),
    started(named("stray", ODD), 20_000, 20_999, {300: 20_000}),
    started(named("stray", ODD), 20_000, 20_999, {301: 20_000, 302: 20_500}),
    started(
        named("ends", ODD), 0, INT64_MAX, {-(2**31): INT64_MIN, 2**31 - 1: INT64_MAX},
        broker_id=-(2**31), size_bytes=2**31 - 1, max_timestamp_ms=INT64_MIN,
        event_timestamp_ms=INT64_MAX,
    ),
    finished(named("ends", ODD), broker_id=2**31 - 1, event_timestamp_ms=INT64_MIN),
    # deletions of whole partitions, in each of their states
    started(named(1, GONE)),
    partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, GONE, event_timestamp_ms=-1),
    partition_delete(PartitionDeleteState.DELETE_PARTITION_STARTED, GONE),
    partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED, GONE, broker_id=4),
    partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, BUSY, broker_id=-1),
    partition_delete(PartitionDeleteState.DELETE_PARTITION_STARTED, AGAIN),
    started(named(2, AGAIN)),
]  # fmt: skip


def as_read(segment: SegmentMetadata | None) -> dict[str, Any] | None:
    if segment is None:
        return None
    return {
        "id": segment.id.uuid,
        "state": segment.state.name,
        "txn_index_empty": segment.txn_index_empty,
        "broker_id": segment.broker_id,
        "event_timestamp_ms": segment.event_timestamp_ms,
        "start": segment.start_offset,
        "end": segment.last_offset,
        "max_timestamp_ms": segment.max_timestamp_ms,
        "epochs": list(segment.epochs),
        "size": segment.size_bytes,
        "custom_metadata": segment.custom_metadata,
    }


def as_told(segment: Segment | None) -> dict[str, Any] | None:
    if segment is None:
        return None
    other = {"finish_offset", "state"}
    fields = {name: value for name, value in segment.fields.items() if name not in other}
    return fields | {
        "id": segment.id,
        "state": segment.state,
        "epochs": segment.epochs,
        "size": segment.size,
        "custom_metadata": segment.custom_metadata,
    }


def by_id(segments: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
    return sorted((one for one in segments if one is not None), key=lambda one: one["id"])


def offsets_of(read: UserPartition, epoch: int) -> set[int]:
    found = {0, 17}
    for segment in read.segments:
        bounds = segment.covers(epoch) or (segment.fields["start"], segment.fields["end"])
        found.update(bound + step for bound in bounds for step in (-1, 0, 1))
    return {offset for offset in found if 0 <= offset <= INT64_MAX}


def require_same(shard: ChosenShard, *, block_bytes: int) -> None:
    header, found = read_snapshot(file_of(shard, block_bytes=block_bytes))
    assert (header["partition"], header["position"]) == (shard.partition, shard.position)
    held = {(one.topic, bytes(one.topic_id), one.partition): one for one in shard.partitions()}
    assert {(one.topic, one.topic_id, one.partition) for one in found} == held.keys()
    for read in found:
        partition = held[read.topic, read.topic_id, read.partition]
        engine = [as_read(one) for one in shard.segments(partition)]
        assert by_id([as_told(one) for one in read.segments]) == by_id(engine)
        assert sum(one.size for one in read.segments) == shard.size(partition)
        delete = shard.partition_delete(partition)
        told = delete and (delete.state.name, delete.broker_id, delete.event_timestamp_ms)
        assert read.delete == told
        for epoch in {*read.epochs, 0, 1, 77}:
            require_same_epoch(shard, partition, read, epoch)


def require_same_epoch(shard: ChosenShard, partition: Any, read: UserPartition, epoch: int) -> None:
    listed = [as_read(one) for one in shard.segments_of_epoch(partition, epoch)]
    assert by_id([as_told(one) for one in read.belonging(epoch)]) == by_id(listed)
    entry = read.epochs.get(epoch)
    assert (entry and entry.watermark) == shard.highest_offset(partition, epoch)
    size = sum(one.size for one in read.belonging(epoch))
    assert size == shard.size_of_epoch(partition, epoch)
    for offset in offsets_of(read, epoch):
        answer = shard.segment_for(partition, epoch, offset)
        assert as_told(read.segment_for(epoch, offset)) == as_read(answer), (epoch, offset)


@pytest.mark.parametrize("block_bytes", [1, 60, 1 << 20])
def test_file_when_it_holds_one_of_everything_then_the_reader_agrees(block_bytes: int) -> None:
    """The reader agrees on a file with all states, strays, displaced copies and deletions."""
    shard = shard_of(EVERYTHING)
    read = {one.topic: one for one in read_snapshot(file_of(shard))[1]}
    assert {one.state for one in read["busy"].segments} == set(plain_snapshot_reader.STATES)
    assert {one.custom_metadata for one in read["busy"].segments} > {None, b"", b"open", b"bye"}
    assert read["busy"].epochs[5] == plain_snapshot_reader.Epoch(699, [], [])
    assert read[ODD.topic].epochs[300].strays != []
    assert len(read[ODD.topic].epochs) > 200
    assert read["gone"].delete == ("DELETE_PARTITION_FINISHED", 4, 0)
    assert read["gone"].segments == []
    require_same(shard, block_bytes=block_bytes)


@example([])
@given(strategies.histories())
def test_file_when_any_history_led_to_it_then_the_reader_agrees(history: list[Event]) -> None:
    """The reader agrees for every generated history."""
    require_same(shard_of(history), block_bytes=60)


def test_header_when_read_by_hand_then_every_field_is_at_its_place() -> None:
    """The header names the log, the position and the history of the state."""
    header, _ = read_snapshot(file_of(shard_of(EVERYTHING)))
    assert header["cluster_id"] == IDENTITY.cluster_id
    assert header["topic_id"] == bytes(IDENTITY.topic_id)
    assert (header["partition_count"], header["written_ms"]) == (IDENTITY.partition_count, START_MS)
    for name in ("first_offset", "records", "undecodable", "counted_apart", "without_base"):
        assert header[name] == getattr(HISTORY, name)


@pytest.mark.parametrize("at", [0, 9, 30, 120, -100, -40, -1])
def test_file_when_a_byte_differs_then_the_reader_refuses_it(at: int) -> None:
    """The reader refuses a file with any changed byte, since the digest covers the whole file."""
    content = bytearray(file_of(shard_of(EVERYTHING)))
    content[at] ^= 1
    with pytest.raises(ValueError, match="digest"):
        read_snapshot(bytes(content))


def test_reader_then_takes_nothing_from_rlmm_and_is_short() -> None:
    """The reader imports nothing from rlmm and is short, so that it proves the page."""
    path = tree.ROOT / "tests/support/engine/plain_snapshot_reader.py"
    source = path.read_text(encoding="utf-8")
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert imported == {"__future__", "cramjam", "dataclasses", "hashlib", "struct", "typing"}
    assert len(source.splitlines()) < 200
    assert "tests/support/engine/plain_snapshot_reader.py" in PAGE.read_text(encoding="utf-8")
