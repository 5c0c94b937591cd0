"""A disk that hangs, and threads that do not start: neither holds up another partition."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.refusal_counts import RefusalKind
from rlmm.snapshot.snapshot_writer import SnapshotWriter
from tests.support.blocking import no_thread_starts
from tests.support.engine.snapshots import (
    FREE,
    FakeSource,
    files_below,
    in_virtual_time,
    segments,
    shard_of,
    store_in,
)
from tests.support.engines import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

END = 1_000_000
SOME = (0, 1, 2, 3, 4)
TEST_S = 60.0


class HangingDisk(SnapshotDisk):
    """A disk whose calls for the files of some metadata partitions hang until they may go on."""

    def __init__(self, *partitions: int) -> None:
        self.hanging = {str(partition) for partition in partitions}
        self.may_go_on = threading.Event()
        self._bad: set[int] = set()

    def open(self, path: Path, flags: int) -> int:
        descriptor = super().open(path, flags)
        (self._bad.add if path.parent.name in self.hanging else self._bad.discard)(descriptor)
        return descriptor

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        self._meet(descriptor)
        return super().read(descriptor, size, position)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
        self._meet(descriptor)
        return super().write(descriptor, buffers, position)

    def _meet(self, descriptor: int) -> None:
        if descriptor in self._bad:
            self.may_go_on.wait(TEST_S)


@contextmanager
def hanging(*partitions: int) -> Iterator[HangingDisk]:
    """Give a disk that hangs for *partitions*, and end its threads with the block."""
    before = set(threading.enumerate())
    disk = HangingDisk(*partitions)
    try:
        yield disk
    finally:
        disk.may_go_on.set()
        for thread in set(threading.enumerate()) - before:
            thread.join(TEST_S)


async def ended(*names: str) -> None:
    """Wait until no thread called one of *names* is left."""
    await until(lambda: not any(thread.name in names for thread in threading.enumerate()))


def source_of(*partitions: int) -> FakeSource:
    return FakeSource({number: shard_of(segments(3), number) for number in partitions})


@in_virtual_time
async def test_restore_when_the_disk_hangs_on_one_then_others_pass_it(tmp_path: Path) -> None:
    """The other partitions are restored meanwhile, and the one counts as unreadable in the end."""
    await SnapshotWriter(source_of(*SOME), store_in(tmp_path)).flush()
    with hanging(0) as disk:
        store = store_in(tmp_path, disk=disk)
        waiting = asyncio.create_task(store.restore(0, 0, END))
        for partition in SOME[1:]:
            assert await store.restore(partition, 0, END) is not None
        assert not waiting.done()
        assert await waiting is None
        refused = store.statistics().refused
        assert (refused[RefusalKind.UNREADABLE], sum(refused.values())) == (1, 1)
        assert "snapshot-read hangs" in store.statistics().refusals[0].detail
        assert await store.restore(0, 0, END) is None, "its thread hangs still"
        disk.may_go_on.set()
        await ended("snapshot-read")
        assert await store.restore(0, 0, END) is not None


@in_virtual_time
async def test_restore_when_the_disk_hangs_on_all_then_few_threads_hang(tmp_path: Path) -> None:
    """Every wait ends, and the threads that hang stay few."""
    many = range(20)
    await SnapshotWriter(source_of(*many), store_in(tmp_path)).flush()
    with hanging(*many) as disk:
        store = store_in(tmp_path, disk=disk)
        found = await asyncio.gather(*(store.restore(number, 0, END) for number in many))
        assert found == [None] * len(many)
        names = [thread.name for thread in threading.enumerate()]
        assert 0 < names.count("snapshot-read") <= 4


@in_virtual_time
async def test_restore_when_the_disk_is_slow_then_is_waited_for(tmp_path: Path) -> None:
    """A disk that returns bytes every 25 s loses no turn, however long the whole file takes."""
    await SnapshotWriter(source_of(0), store_in(tmp_path)).flush()
    loop = asyncio.get_running_loop()

    class SlowDisk(SnapshotDisk):
        def read(self, descriptor: int, size: int, position: int) -> bytes:
            asyncio.run_coroutine_threadsafe(asyncio.sleep(25), loop).result(TEST_S)
            return super().read(descriptor, size, position)

    begun_s = loop.time()
    assert await store_in(tmp_path, disk=SlowDisk()).restore(0, 0, END) is not None
    assert loop.time() - begun_s >= 50


@in_virtual_time
async def test_write_when_the_disk_hangs_on_one_then_others_are_written(tmp_path: Path) -> None:
    """A hung write costs its own snapshot, and the next one once the disk has answered is there."""
    source = source_of(*SOME)
    with hanging(0) as disk:
        writer = SnapshotWriter(source, store_in(tmp_path, disk=disk))
        flushed = await writer.flush()
        assert flushed.written == SOME[1:]
        assert "snapshot-write hangs" in str(flushed.failed[0])
        assert writer.statistics().failures == 1
        assert "still hangs" in str((await writer.flush()).failed[0])
        disk.may_go_on.set()
        await ended("snapshot-write")
        assert files_below(tmp_path) == [f"{number}/{6:020d}.snapshot" for number in SOME[1:]]
        assert (await writer.flush()).written == (0,)


@in_virtual_time
async def test_writer_when_the_disk_hangs_on_one_then_goes_on_with_others(tmp_path: Path) -> None:
    """The task writes all other partitions, each within an interval and the time of one stall."""
    source = source_of(*SOME)
    with hanging(*SOME[:2]) as disk:
        writer = SnapshotWriter(source, store_in(tmp_path, disk=disk, settings=FREE))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(writer.run())
            await asyncio.sleep(FREE.interval_ms / 1_000 + 2 * 120 + 1)
            running.cancel()
        assert set(writer.statistics().saved) == set(SOME[2:])


async def test_threads_when_none_starts_then_cost_only_what_they_were_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read, a write and a look at the room fail by name, and work when threads start again."""
    store = store_in(tmp_path)
    writer = SnapshotWriter(source_of(0), store)
    with no_thread_starts(monkeypatch):
        await store.look_at_room()
        failed = (await writer.flush()).failed
        assert await store.restore(0, 0, END) is None
    assert "can't start new thread" in str(failed[0])
    assert store.statistics().refused[RefusalKind.UNREADABLE] == 1
    assert store.free_bytes is None
    assert (await writer.flush()).written == (0,)
    assert await store.restore(0, 0, END) is not None


@pytest.mark.parametrize("where", ["image", "freeze"])
async def test_snapshot_when_memory_is_short_then_it_alone_fails(
    tmp_path: Path, where: str
) -> None:
    """A MemoryError while a state is copied or an image is made is the failure of that snapshot."""
    source = source_of(0, 1)
    freeze = source.freeze

    def no_image() -> bytes:
        raise MemoryError

    async def short(partition: int):  # type: ignore[no-untyped-def]
        frozen = await freeze(partition)
        if partition:
            return frozen
        if where == "freeze":
            raise MemoryError
        assert frozen is not None
        return type(frozen)(frozen.partition, frozen.position, frozen.history, [no_image])

    source.freeze = short  # type: ignore[method-assign]
    writer = SnapshotWriter(source, store_in(tmp_path))
    flushed = await writer.flush()
    assert (flushed.written, list(flushed.failed)) == ((1,), [0])
    assert "metadata partition 0" in (writer.statistics().last_failure or "")
