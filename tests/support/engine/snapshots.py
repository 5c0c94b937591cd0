"""Snapshots under test: shards to save, a source that has them, disks that crash on command."""

from __future__ import annotations

import asyncio
import functools
import io
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rlmm.base.threads import BackgroundWork
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.log.shard_images import ShardImages
from rlmm.metadata.ids import Uuid
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.decoding import SnapshotReader, verify
from rlmm.snapshot.encoding import BLOCK_BYTES, encode
from rlmm.snapshot.format import SnapshotHeader
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.store import SnapshotStore
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engine.chosen import ChosenShard
from tests.support.logs.failing_disks import NamedCallsDisk
from tests.support.manual_clock import START_MS, ManualClock
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from pathlib import Path

    from rlmm.base.clock import Clock
    from rlmm.metadata.events import Event
    from rlmm.metadata.segment import PartitionDeleteState
    from rlmm.metadata.shard import Shard

IDENTITY = LogIdentity("MkU3OEVBNTcwNTJENDM2Qg", Uuid(bytes(range(16))), 50)
HISTORY = ReplayHistory(0, 12, 1, 2, 3, 0)
PARTITION = 3
FREE = SnapshotSettings(free_bytes_min=0)


def shard_of(events: Iterable[Event], partition: int = PARTITION) -> ChosenShard:
    shard = ChosenShard(partition)
    for event in events:
        shard.apply_event(event)
    return shard


def segments(count: int, *, user_partition: int = 7) -> list[Event]:
    user = tp(partition=user_partition)
    events: list[Event] = []
    for number in range(count):
        segment = segment_id(number + 1, user)
        events += [started(segment, number * 100, number * 100 + 99), finished(segment)]
    return events


def full_shard(state: PartitionDeleteState, partition: int = PARTITION) -> ChosenShard:
    other = tp("payments", 1)
    return shard_of(
        [
            *segments(3),
            started(segment_id(9), 100, 199),
            finished(segment_id(9), custom_metadata=b"custom"),
            started(segment_id(10), 300, 399),
            delete_started(segment_id(3)),
            started(segment_id(1, other), 0, 9, {0: 0, 2: 5}),
            partition_delete(state, tp("gone", 2), broker_id=5, event_timestamp_ms=77),
        ],
        partition,
    )


def frozen_of(shard: Shard, history: ReplayHistory = HISTORY) -> ShardImages:
    return ShardImages(shard.partition, shard.position, history, list(shard.image_parts()))


def header_of(shard: Shard, **changed: Any) -> SnapshotHeader:
    count = len(list(shard.image_parts()))
    header = SnapshotHeader(IDENTITY, shard.partition, shard.position, HISTORY, count, START_MS)
    return replace(header, **changed)


def file_of(shard: Shard, *, block_bytes: int = BLOCK_BYTES, **changed: Any) -> bytes:
    return b"".join(encode(header_of(shard, **changed), shard.image_parts(), block_bytes))


def read_back(content: bytes) -> tuple[SnapshotHeader, list[bytes]]:
    header = verify(io.BytesIO(content).read, len(content))
    reader = SnapshotReader(io.BytesIO(content).read, len(content))
    assert reader.header == header
    return header, list(reader.images())


def images_of(shard: Shard) -> list[bytes]:
    return [part() for part in shard.image_parts()]


def store_in(
    root: Path,
    *,
    identity: LogIdentity = IDENTITY,
    settings: SnapshotSettings = FREE,
    clock: Clock | None = None,
    disk: SnapshotDisk | None = None,
) -> SnapshotStore:
    return SnapshotStore(
        root,
        identity,
        ChosenShard,
        settings,
        ManualClock() if clock is None else clock,
        SnapshotDisk() if disk is None else disk,
    )


async def saved_at(root: Path, *copies: int) -> list[Path]:
    """Save snapshots after each number of copies (position: twice that); return their paths."""
    store = store_in(root)
    return [(await store.write(frozen_of(shard_of(segments(count))))).path for count in copies]


def damage(path: Path, how: Callable[[bytes], bytes]) -> None:
    path.write_bytes(how(path.read_bytes()))


def flip(content: bytes) -> bytes:
    changed = bytearray(content)
    changed[len(changed) // 2] ^= 1
    return bytes(changed)


def files_below(root: Path) -> list[str]:
    return sorted(
        "/".join(path.relative_to(root).parts[-2:]) for path in root.rglob("*") if path.is_file()
    )


@dataclass
class FakeSource:
    """Shards to save; those in `unsavable` cannot be saved now."""

    shards: dict[int, ChosenShard]
    histories: dict[int, ReplayHistory] = field(default_factory=dict)
    unsavable: set[int] = field(default_factory=set)
    frozen: list[int] = field(default_factory=list)

    def positions(self) -> Mapping[int, int]:
        return {
            partition: shard.position
            for partition, shard in self.shards.items()
            if partition not in self.unsavable
        }

    async def freeze(self, partition: int) -> ShardImages | None:
        self.frozen.append(partition)
        shard = self.shards.get(partition)
        if shard is None:
            return None
        return frozen_of(shard, self.histories.get(partition, HISTORY))


class Crash(BaseException):
    pass


class CrashingDisk(NamedCallsDisk):
    """A disk at whose *step*-th change the process dies, clean-up included."""

    CHANGES = frozenset({"create", "write", "sync", "rename", "sync_folder", "remove"})

    def __init__(self, step: int | None = None, end: Callable[[], None] | None = None) -> None:
        self.steps: list[str] = []
        self._step = step
        self._end = end
        self._is_dead = False

    def _meet(self, call: str) -> None:
        if call not in self.CHANGES:
            return
        if self._is_dead:
            raise Crash
        self.steps.append(call)
        if self._step is not None and len(self.steps) > self._step:
            self._is_dead = True
            if self._end is not None:
                self._end()
            raise Crash


class FaultySnapshotDisk(NamedCallsDisk):
    def __init__(self) -> None:
        self.failing: dict[str, int] = {}
        self.free: int | None = None

    def _meet(self, call: str) -> None:
        if call in self.failing:
            raise OSError(self.failing[call], os.strerror(self.failing[call]))

    def sizes(self, folder: Path) -> dict[str, int]:
        self._meet("sizes")
        return super().sizes(folder)

    def free_bytes(self, folder: Path) -> int:
        self._meet("free_bytes")
        return super().free_bytes(folder) if self.free is None else self.free


async def at_once(
    work: Callable[[BackgroundWork], Any],
    name: str,
    niceness: int = 0,
    stall_s: float | None = None,
) -> Any:
    """Stand in for a background thread on virtual time: done within one turn of the loop."""
    del name, niceness, stall_s
    await asyncio.sleep(0)
    return work(BackgroundWork())


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
