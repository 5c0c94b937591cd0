"""Broken engines with one fault each, which the simulator must catch."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rlmm.engine.engine import Engine
from rlmm.gate.admission import Gate, GatedShard
from rlmm.gate.state import GateState, ShardGate
from rlmm.log.replay_progress import CaughtUp, PartitionReassigned
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.metadata.shard_answers import ShardAnswers
from rlmm.metadata.verdicts import APPLIED
from rlmm.pump import pump
from rlmm.pump import verdicts as listening
from rlmm.pump import writer as publish
from rlmm.pump.follower import Follower
from rlmm.pump.replay import Replay
from rlmm.pump.writer import EventWriter
from rlmm.snapshot import store_io as shelf
from rlmm.snapshot.atomic import TEMPORARY, SnapshotDisk
from tests.simulation.loop import swapped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from rlmm.log.replay_progress import Fact, ReplayProgress
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.verdicts import Verdict
    from rlmm.pump.state_images import Image

_WRITE = 0o1 | 0o100 | 0o1000
"""Write only, create, truncate."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A fault, the invariants it must violate, and the functions it replaces."""

    name: str
    violates: frozenset[str]
    """One of these, the first time that it is caught."""
    changes: tuple[tuple[object, str, object], ...]

    @contextmanager
    def applied(self) -> Iterator[None]:
        with swapped(*self.changes):
            yield


# --------------------------------------------------------------------------- gate and assignment


def _never_closes(gate: ShardGate, fact: Fact) -> bool:
    if gate.state is GateState.OPEN and not isinstance(fact, (CaughtUp, PartitionReassigned)):
        return False
    return _MEET(gate, fact)


def _opens_at_once(gate: ShardGate, fact: Fact) -> bool:
    del fact
    return _MEET(gate, CaughtUp())


def _begins_as_it_was(gate: Gate, partition: int, progress: ReplayProgress) -> None:
    """Leave a partition ready that is assigned again."""
    if partition not in gate._shards:
        gate._shards[partition] = GatedShard(progress)


def _does_not_end(gate: Gate, partition: int) -> None:
    del gate, partition


def _only_adds(gate: Gate, assignment: Assignment) -> None:
    """Answer for removed partitions as long as their state is there."""
    before = gate._assignment
    metadata = None
    if before.metadata is not None and assignment.metadata is not None:
        metadata = before.metadata | assignment.metadata
    _ASSIGN(gate, Assignment(metadata, before.user | assignment.user))


async def _does_not_wait(engine: Engine, at_least: object, *, timeout_s: object = None) -> None:
    del engine, at_least, timeout_s


async def _does_not_ask(engine: Engine, *partitions: object, timeout_s: object = None) -> None:
    del engine, partitions, timeout_s


def _believes_bounds(replay: Replay, *arguments: Any) -> None:
    """Date the bounds by the time of the loaded state instead of the request."""
    shard, history, bounds, _, *others = arguments
    _INIT(replay, shard, history, bounds, asyncio.get_running_loop().time(), *others)


async def _unguarded(of: pump.Pump, part: Callable[[], Awaitable[None]]) -> None:
    del of
    await part()


_ASSIGN = Gate.assign
_INIT = Replay.__init__
_MEET = ShardGate.meet

# ---------------------------------------------------------------------------------------- writes


async def _acknowledges_early(
    writer: EventWriter, heard: asyncio.Future[Verdict], place: int, offset: int, deadline_s: float
) -> Verdict:
    del writer, place, offset, deadline_s
    heard.cancel()
    return APPLIED


async def _waits_for_ever(
    writer: EventWriter, heard: asyncio.Future[Verdict], place: int, offset: int, deadline_s: float
) -> Verdict:
    del writer, place, offset, deadline_s
    return await heard


def _verdict_of_another(offset: int, entries: Iterable[Any]) -> Verdict:
    del offset
    return next((entry.verdict for entry in entries), APPLIED)


def _admits_all(shard: PythonShard, event: Event) -> None:
    del shard, event


def _as_it_is(event: Event, shard: object) -> Event:
    del shard
    return event


def _encodes_more(event: Event) -> bytes:
    """Append a field that only newer versions know."""
    return encode(event) + b"\0"


# ----------------------------------------------------------------------------------------- state


def _forgets_watermarks(replay: Replay) -> None:
    replay._inherited = None


def _holes_do_not_count(shard: PythonShard, next_offset: int, turn: Any) -> None:
    """Skip gaps without counting them."""
    del turn
    shard.position = max(shard.position, next_offset)


def _hides_what_is_deleted(
    shard: ShardAnswers, partition: TopicIdPartition
) -> list[SegmentMetadata]:
    return [
        segment
        for segment in _SEGMENTS(shard, partition)
        if segment.state is not SegmentState.DELETE_SEGMENT_STARTED
    ]


_SEGMENTS = ShardAnswers.segments

# ------------------------------------------------------------------------------------- snapshots


async def _freezes_late(follower: Follower, of: TopicIdPartition | None = None) -> Image | None:
    """Make the images when they are written instead of now."""
    assert of is None, of
    replay = follower._replay
    if replay is None or not replay.is_settled:
        return None
    shard = replay.shard
    parts: list[Any] = [
        partial(shard.partition_image, partition)
        for partition in sorted(shard.partitions(), key=attrgetter("key"))
    ]
    return shard.position, replay.history.copy(), parts


def _writes_in_place(
    disk: SnapshotDisk, path: Path, chunks: Iterable[bytes], _go_on: Callable[[], None]
) -> int:
    descriptor = disk.open(path, _WRITE)
    position = 0
    try:
        for chunk in chunks:
            position += disk.write(descriptor, [chunk], position)
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)
    disk.sync_folder(path.parent)
    return position


def _writes_without_force(
    disk: SnapshotDisk, path: Path, chunks: Iterable[bytes], _go_on: Callable[[], None]
) -> int:
    """Rename a file that was not forced to the medium."""
    temporary = path.with_name(path.name + TEMPORARY)
    descriptor = disk.open(temporary, _WRITE)
    position = 0
    try:
        for chunk in chunks:
            position += disk.write(descriptor, [chunk], position)
    finally:
        disk.close(descriptor)
    disk.rename(temporary, path)
    return position


def _makes_folder(disk: SnapshotDisk, path: Path, root: Path) -> None:
    del root
    disk.make_folder(path)


def _forces_new_folders(disk: SnapshotDisk, path: Path, root: Path) -> None:
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    disk.make_folder(path)
    for folder in missing:
        disk.sync_folder(folder.parent)
        if folder == root:
            break


def _any_folder(root: Path, identity: object) -> Path:
    del identity
    return root


def _any_identity(header: object, identity: object) -> None:
    """Accept a snapshot of any topic."""
    del header, identity


BROKEN = (
    Broken("stale read", frozenset({"I2"}), ((ShardGate, "meet", _never_closes),)),
    Broken("empty answer", frozenset({"I2", "I3"}), ((ShardGate, "meet", _opens_at_once),)),
    Broken(
        "latch over a new assignment",
        frozenset({"I2", "I3"}),
        ((Gate, "begin_partition", _begins_as_it_was), (Gate, "end_partition", _does_not_end)),
    ),
    Broken("answers for others", frozenset({"I2"}), ((Gate, "assign", _only_adds),)),
    Broken("no waiting", frozenset({"I3"}), ((Engine, "wait_reached", _does_not_wait),)),
    Broken("no asking", frozenset({"I3"}), ((Engine, "wait_current", _does_not_ask),)),
    Broken("old bounds", frozenset({"I2"}), ((Replay, "__init__", _believes_bounds),)),
    Broken("slow end", frozenset({"I2", "I9"}), ((pump.Pump, "_guarded", _unguarded),)),
    Broken(
        "early acknowledgement",
        frozenset({"I3"}),
        ((EventWriter, "_wait_verdict", _acknowledges_early),),
    ),
    Broken("endless wait", frozenset({"I9"}), ((EventWriter, "_wait_verdict", _waits_for_ever),)),
    Broken(
        "another's verdict", frozenset({"I3"}), ((listening, "_verdict_on", _verdict_of_another),)
    ),
    Broken("unchecked writer", frozenset({"I8"}), ((PythonShard, "admit", _admits_all),)),
    Broken("erased metadata", frozenset({"I8"}), ((publish, "_with_custom", _as_it_is),)),
    Broken("strange record", frozenset({"I8"}), ((publish, "encode", _encodes_more),)),
    Broken("falling watermark", frozenset({"I7"}), ((Replay, "inherit", _forgets_watermarks),)),
    Broken("lost count", frozenset({"I4"}), ((PythonShard, "_skip_to", _holes_do_not_count),)),
    Broken(
        "hidden segment", frozenset({"I6"}), ((ShardAnswers, "segments", _hides_what_is_deleted),)
    ),
    Broken("late copy", frozenset({"I1", "I3", "errors"}), ((Follower, "freeze", _freezes_late),)),
    Broken("torn snapshot", frozenset({"I5"}), ((shelf, "write_atomically", _writes_in_place),)),
    Broken(
        "snapshot in a cache",
        frozenset({"I5"}),
        ((shelf, "write_atomically", _writes_without_force),),
    ),
    Broken(
        "folder in a cache", frozenset({"I5"}), ((shelf, "make_durable_folder", _makes_folder),)
    ),
    Broken(
        "folder forced once",
        frozenset({"I5"}),
        ((shelf, "make_durable_folder", _forces_new_folders),),
    ),
    Broken(
        "snapshot of another topic",
        frozenset({"I1", "I2"}),
        ((shelf, "identity_folder", _any_folder), (shelf, "require_identity", _any_identity)),
    ),
    Broken("endless stop", frozenset({"I9"}), ((pump, "_stay_cancelled", lambda: None),)),
)
