"""The newest snapshot that is sound and fits, and the refused ones."""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.log.shard_images import ShardImages
from rlmm.metadata.ids import Uuid
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.refusal_counts import RefusalKind
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.store import SnapshotStore
from tests.support.builders import tp
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.snapshots import (
    IDENTITY,
    PARTITION,
    FaultySnapshotDisk,
    damage,
    file_of,
    files_below,
    flip,
    frozen_of,
    full_shard,
    saved_at,
    segments,
    shard_of,
    store_in,
)
from tests.support.manual_clock import START_MS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition

END = 1_000_000


async def test_f5_f13_state_when_saved_and_restored_then_is_the_same(tmp_path: Path) -> None:
    """States, slots, high watermarks, deletions with their brokers, and history are restored."""
    for state in PartitionDeleteState:
        shard = full_shard(state)
        history = ReplayHistory(40, 100, 3, 2, 1, 30)
        root = tmp_path / state.name
        saved = await store_in(root).write(frozen_of(shard, history))
        store = store_in(root)
        restored = await store.restore(PARTITION, 0, END)
        assert restored is not None
        assert restored.shard.image() == shard.image()
        delete = restored.shard.partition_delete(tp("gone", 2))
        assert delete is not None
        assert (delete.state, delete.broker_id, delete.event_timestamp_ms) == (state, 5, 77)
        assert restored.history == history
        assert restored.path == saved.path
        assert store.saved(PARTITION) == saved
        assert saved.written_ms == START_MS


async def test_f11_restore_when_there_is_none_then_is_a_normal_first_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A restore without a snapshot is a normal first start, without a log line or a count."""
    store = store_in(tmp_path / "nothing")
    assert await store.restore(PARTITION, 0, END) is None
    assert not (tmp_path / "nothing").exists()
    assert sum(store.statistics().refused.values()) == 0
    assert not caplog.records


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], RefusalKind]] = {
    "one bit": (flip, RefusalKind.CORRUPT),
    "empty": (lambda _: b"", RefusalKind.CORRUPT),
    "last three bytes cut": (lambda content: content[:-3], RefusalKind.CORRUPT),
    "garbage": (lambda content: b"x" * len(content), RefusalKind.CORRUPT),
    "trailing bytes": (lambda content: content + b"x", RefusalKind.CORRUPT),
    "future version": (
        lambda content: content[:8] + b"\x00\x04" + content[10:],
        RefusalKind.UNSUPPORTED,
    ),
    "other images": (
        lambda content: content[:10] + b"\x00\x02" + content[12:],
        RefusalKind.UNSUPPORTED,
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
async def test_f8_f11_f12_snapshot_when_damaged_then_the_next_older_one_is_used(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The damaged snapshot is refused, logged and counted, and the older one restored."""
    how, kind = DAMAGES[name]
    _, newest = await saved_at(tmp_path, 5, 6)
    damage(newest, how)
    store = store_in(tmp_path)
    with caplog.at_level(logging.WARNING):
        restored = await store.restore(PARTITION, 0, END)
    assert restored is not None
    assert restored.shard.image() == shard_of(segments(5)).image()
    assert store.statistics().refused[kind] == 1
    assert sum(store.statistics().refused.values()) == 1
    (refusal,) = store.statistics().refusals
    assert (refusal.path, refusal.partition, refusal.position) == (newest, PARTITION, 12)
    assert f"metadata partition {PARTITION}, position 12: snapshot {newest}" in caplog.text


async def test_f8_f9_snapshot_when_damaged_at_its_end_then_is_not_imported(tmp_path: Path) -> None:
    """The store checks the whole file before it reads the first image."""
    (path,) = await saved_at(tmp_path, 5)
    damage(path, lambda content: content[:-1] + bytes([content[-1] ^ 1]))
    made: list[int] = []

    def make(partition: int, position: int) -> ChosenShard:
        made.append(position)
        return ChosenShard(partition, position)

    store = SnapshotStore(tmp_path, IDENTITY, make, SnapshotSettings())
    assert await store.restore(PARTITION, 0, END) is None
    assert made == []


async def test_f8_snapshots_when_all_are_damaged_then_none_is_restored(tmp_path: Path) -> None:
    """With only damaged snapshots none is restored, and the log is replayed."""
    paths = await saved_at(tmp_path, 5, 6)
    store = store_in(tmp_path)
    assert await store.restore(PARTITION, 0, END) is not None
    for path in paths:
        damage(path, flip)
    assert await store.restore(PARTITION, 0, END) is None
    assert store.statistics().refused[RefusalKind.CORRUPT] == 2
    assert store.saved(PARTITION) is None


@pytest.mark.parametrize(
    ("identity", "detail"),
    [
        pytest.param(LogIdentity("another", IDENTITY.topic_id, 50), "another", id="cluster"),
        pytest.param(LogIdentity(IDENTITY.cluster_id, Uuid.of(0, 9), 50), "topic", id="topic"),
        pytest.param(
            LogIdentity(IDENTITY.cluster_id, IDENTITY.topic_id, 100),
            "100 metadata partitions, expected are 50",
            id="f7 count",
        ),
    ],
)
async def test_f6_f7_snapshot_when_it_is_of_another_log_then_is_refused(
    tmp_path: Path, identity: LogIdentity, detail: str
) -> None:
    """A snapshot of another cluster, topic or partition count is set aside."""
    (path,) = await saved_at(tmp_path, 5)
    shard = shard_of(segments(5))
    path.write_bytes(file_of(shard, identity=identity))
    store = store_in(tmp_path)
    assert await store.restore(PARTITION, 0, END) is None
    assert store.statistics().refused[RefusalKind.FOREIGN] == 1
    assert detail in store.statistics().refusals[0].detail
    assert path.exists()


async def test_f6_snapshot_of_another_topic_id_is_not_even_looked_at(tmp_path: Path) -> None:
    """A topic that was created anew has a folder of its own, and the old state is not in it."""
    await saved_at(tmp_path, 5)
    anew = LogIdentity(IDENTITY.cluster_id, Uuid.of(0, 9), 50)
    store = store_in(tmp_path, identity=anew)
    assert await store.restore(PARTITION, 0, END) is None
    assert store.statistics().refusals == ()


async def test_snapshot_when_it_is_not_what_its_path_says_then_is_refused(tmp_path: Path) -> None:
    """A file that was renamed, or put into another partition's folder, is not believed."""
    (path,) = await saved_at(tmp_path, 5)
    renamed = path.with_name(f"{11:020d}.snapshot")
    path.rename(renamed)
    other = path.parent.parent / "4" / path.name
    other.parent.mkdir()
    other.write_bytes(renamed.read_bytes())
    store = store_in(tmp_path)
    assert await store.restore(PARTITION, 0, END) is None
    assert await store.restore(4, 0, END) is None
    assert store.statistics().refused[RefusalKind.FOREIGN] == 2


async def test_f6_snapshot_beyond_the_log_end_then_is_void_for_good(tmp_path: Path) -> None:
    """A snapshot beyond the log end is never used, even if the log grows past it."""
    await saved_at(tmp_path, 2, 5)
    store = store_in(tmp_path)
    restored = await store.restore(PARTITION, 0, 9)
    assert restored is not None
    assert restored.shard.position == 4
    assert store.statistics().refused[RefusalKind.BEYOND_LOG] == 1
    again = await store_in(tmp_path).restore(PARTITION, 0, END)
    assert again is not None
    assert again.shard.position == 4
    assert f"{PARTITION}/{10:020d}.snapshot.void" in files_below(tmp_path)


async def test_f66_snapshot_before_the_log_start_then_does_not_fit(tmp_path: Path) -> None:
    """A snapshot before the log start does not fit, and stays for a caller that accepts the gap."""
    await saved_at(tmp_path, 5)
    store = store_in(tmp_path)
    assert await store.restore(PARTITION, 11, END) is None
    assert store.statistics().refused[RefusalKind.BEFORE_LOG] == 1
    restored = await store.restore(PARTITION, 10, END)
    assert restored is not None


@pytest.mark.parametrize("bounds", [(10, 10), (0, 10), (10, END)], ids=str)
async def test_snapshot_at_a_bound_of_the_log_fits(tmp_path: Path, bounds: tuple[int, int]) -> None:
    """Start and end of the log are positions that a state may have."""
    await saved_at(tmp_path, 5)
    restored = await store_in(tmp_path).restore(PARTITION, *bounds)
    assert restored is not None
    assert restored.shard.position == 10


@pytest.mark.parametrize("call", ["open", "read", "sizes"])
async def test_snapshot_that_cannot_be_read_is_counted_and_kept(tmp_path: Path, call: str) -> None:
    """A snapshot that the disk fails to read stays and is tried again."""
    await saved_at(tmp_path, 5)
    disk = FaultySnapshotDisk()
    disk.failing[call] = errno.EIO
    store = store_in(tmp_path, disk=disk)
    assert await store.restore(PARTITION, 0, END) is None
    assert store.statistics().refused[RefusalKind.UNREADABLE] == 1
    disk.failing.clear()
    assert await store.restore(PARTITION, 0, END) is not None


async def test_f16_restore_when_a_crash_left_something_then_removes_it(tmp_path: Path) -> None:
    """Unfinished files of a metadata partition are gone after the first look at it."""
    (path,) = await saved_at(tmp_path, 5)
    left = path.with_name(f"{7:020d}.snapshot.tmp")
    left.write_bytes(b"half a snapsh")
    await store_in(tmp_path).restore(PARTITION, 0, END)
    assert not left.exists()


async def test_f15_restore_never_holds_a_second_copy(tmp_path: Path) -> None:
    """While a large snapshot is read there is room for one image and one block, not for all."""
    image_bytes, count = 64 * 1024, 256
    content = random.Random(15).randbytes(image_bytes)
    parts = [
        partial(bytes.__add__, b"\x02" + number.to_bytes(2, "big"), content)
        for number in range(count)
    ]
    await store_in(tmp_path).write(ShardImages(PARTITION, 1_000, ReplayHistory(), parts))
    taken: list[int] = []

    class Counting(ChosenShard):
        def import_partition(self, image: bytes) -> TopicIdPartition:
            taken.append(len(image))
            return tp()

    store = SnapshotStore(tmp_path, IDENTITY, Counting, SnapshotSettings())
    tracemalloc.start()
    try:
        assert await store.restore(PARTITION, 0, END) is not None
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken == [image_bytes + 3] * count
    assert peak_bytes < 4 * 1024 * 1024 < sum(taken) / 3


async def test_restore_when_cancelled_then_ends_within_a_partition(tmp_path: Path) -> None:
    """A stop does not wait until a large snapshot is read."""
    shard = shard_of([event for user in range(40) for event in segments(2, user_partition=user)])
    await store_in(tmp_path).write(frozen_of(shard))
    imported: list[int] = []
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[object]] = []

    class Cancelling(PythonShard):
        def import_partition(self, image: bytes) -> TopicIdPartition:
            imported.append(1)
            done = asyncio.run_coroutine_threadsafe(cancel(), loop)
            done.result(10)
            return super().import_partition(image)

    async def cancel() -> None:
        tasks[0].cancel()
        await asyncio.sleep(0)

    store = SnapshotStore(tmp_path, IDENTITY, Cancelling, SnapshotSettings())
    tasks.append(asyncio.create_task(store.restore(PARTITION, 0, END)))
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert len(imported) == 1


async def test_snapshot_when_set_aside_by_a_restore_that_is_cancelled_then_is_not_relied_on(
    tmp_path: Path,
) -> None:
    """The store names no snapshot that a cancelled restore has set aside."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[object]] = []

    class Cancelling(SnapshotDisk):
        def rename(self, source: Path, target: Path) -> None:
            super().rename(source, target)
            if tasks:
                asyncio.run_coroutine_threadsafe(cancel(), loop).result(10)

    async def cancel() -> None:
        tasks[0].cancel()
        await asyncio.sleep(0)

    store = store_in(tmp_path, disk=Cancelling())
    saved = await store.write(frozen_of(shard_of(segments(2))))
    assert store.saved(PARTITION) == saved
    tasks.append(asyncio.create_task(store.restore(PARTITION, 0, 1)))
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert not saved.path.exists()
    assert store.saved(PARTITION) is None
    assert store.statistics().saved == {}


@pytest.mark.parametrize(
    "identity",
    [LogIdentity("", IDENTITY.topic_id, 50), LogIdentity("c", Uuid(bytes(16)), 50)],
    ids=["cluster", "topic"],
)
def test_store_of_a_log_without_identity_is_refused(tmp_path: Path, identity: LogIdentity) -> None:
    """The store refuses a log without an identity."""
    with pytest.raises(ConfigError, match="a log without an identity"):
        store_in(tmp_path, identity=identity)
