"""Broken engines with one fault each, which the simulator must catch."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rlmm.engine.engine import Engine
from rlmm.engine.snapshot_wiring import EngineSnapshots
from rlmm.gate.admission import Gate, GatedShard
from rlmm.gate.state import GateState, ShardGate
from rlmm.kafka_client.fetch.partition_reads import AnsweredOffsets
from rlmm.log.replay_progress import CaughtUp, PartitionReassigned
from rlmm.log.shard_images import ShardImages
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode
from rlmm.metadata.epoch_state import EpochState
from rlmm.metadata.image import partition_image
from rlmm.metadata.image_reading import read_partition_image
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import APPLIED
from rlmm.pump import known_state, placement, pump, verdict_waits
from rlmm.pump import writer as writer_module
from rlmm.pump.follower import Follower
from rlmm.pump.replay import Replay, ReplayStart
from rlmm.pump.writer import EventWriter
from rlmm.snapshot import snapshot_folder
from rlmm.snapshot.atomic import TEMPORARY, SnapshotDisk
from tests.simulation import steps
from tests.simulation.loop import swapped
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rlmm.log.protocol import LogBounds
    from rlmm.log.replay_progress import Fact, ReplayProgress
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.report import Entry
    from rlmm.metadata.verdicts import Verdict

_FAVOUR = 15
_WRITE = 0o1 | 0o100 | 0o1000


@dataclass(frozen=True, slots=True)
class Broken:
    """A fault, the invariants it must violate, and the functions it replaces."""

    name: str
    violates: frozenset[str]
    changes: tuple[tuple[object, str, object], ...]
    favours: frozenset[str] = frozenset()
    """The steps that must meet for it to be seen: they come much more often."""

    @contextmanager
    def applied(self, *, is_sound: bool = False) -> Iterator[None]:
        """Plant the fault, or keep the engine sound, which violates nothing at the same steps."""
        weights = {
            step: weight * (_FAVOUR if step.__name__ in self.favours else 1)
            for step, weight in steps.STEPS.items()
        }
        changes = () if is_sound else self.changes
        with swapped(*changes, (steps, "STEPS", weights)):
            yield


# --------------------------------------------------------------------------- gate and assignment


def _never_closes(gate: ShardGate, fact: Fact) -> bool:
    if gate.state is GateState.OPEN and not isinstance(fact, (CaughtUp, PartitionReassigned)):
        return False
    return _MEET(gate, fact)


def _begins_as_it_was(
    gate: Gate, partition: int, progress: ReplayProgress, is_current: Callable[[], bool]
) -> None:
    """Leave a partition ready that is assigned again."""
    if partition not in gate._shards:
        gate._shards[partition] = GatedShard(progress, is_current)


def _only_adds(gate: Gate, assignment: Assignment) -> None:
    """Answer for removed partitions as long as their state is there."""
    before = gate._assignment
    metadata = None
    if before.metadata is not None and assignment.metadata is not None:
        metadata = before.metadata | assignment.metadata
    _ASSIGN(gate, Assignment(metadata, before.user | assignment.user))


def _believes_bounds(replay: Replay, *arguments: Any) -> None:
    """Date the bounds by the time of the loaded state instead of the request."""
    shard, history, bounds, _, *others = arguments
    _INIT(replay, shard, history, bounds, asyncio.get_running_loop().time(), *others)


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


# ----------------------------------------------------------------------------------------- state


def _drops_trimmed_states(position: int, bounds: LogBounds) -> ReplayStart:
    if bounds.log_start_offset <= position <= bounds.high_watermark:
        return ReplayStart.RESUME
    return ReplayStart.BEYOND


def _holes_do_not_count(shard: ChosenShard, next_offset: int, turn: Any) -> None:
    """Skip gaps without counting them."""
    del turn
    shard.position = max(shard.position, next_offset)


def _hides_what_is_deleted(
    shard: ChosenShard, partition: TopicIdPartition
) -> list[SegmentMetadata]:
    return [
        segment
        for segment in _SEGMENTS(shard, partition)
        if segment.state is not SegmentState.DELETE_SEGMENT_STARTED
    ]


_SEGMENTS = ChosenShard.segments

# ------------------------------------------------------------------------------------- snapshots


async def _freezes_late(
    follower: Follower, of: TopicIdPartition | None = None
) -> ShardImages | None:
    """Make the images when they are written instead of now."""
    assert of is None, of
    replay = follower._replay
    if replay is None:
        return None
    shard = replay.shard
    parts: list[Any] = [
        partial(shard.partition_image, partition)
        for partition in sorted(shard.partitions(), key=attrgetter("key"))
    ]
    return ShardImages(shard.partition, shard.position, replay.history.copy(), parts, lambda: True)


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


async def _nothing(*_: object, **__: object) -> None:
    """Do not wait for the offset, and do not ask the log for its end."""


def _judges_by_offset(
    waiter: asyncio.Future[Verdict],
    offset: int,
    checksum: int,
    passed: Mapping[int, int],
    entries: Sequence[Entry],
) -> None:
    del checksum, passed
    waiter.set_result(verdict_waits._verdict_on(offset, entries))


async def _inherits(follower: Follower) -> None:
    """Let the state after a cut have the watermarks of the one before it."""
    before = follower._replay
    marks = [] if before is None else list(before.shard.watermarks())
    await _BEGIN(follower)
    after = follower._replay
    if before is None or after is None or after.shard is before.shard:
        return
    for partition, epoch, highest in marks:
        image = after.shard.partition_image(partition)
        heir = PartitionState(partition.key) if image is None else read_partition_image(image)
        own = heir.epochs.setdefault(epoch, EpochState(epoch))
        if (own.highest or -1) < highest:
            own.highest = highest
        after.shard.import_partition(partition_image(heir))


_BEGIN = Follower._begin


def _broken(name: str, violates: str, *changes: object) -> Broken:
    """*changes* are owner, attribute and replacement, each in turn."""
    triples = zip(changes[::3], map(str, changes[1::3]), changes[2::3], strict=True)
    return Broken(
        name, frozenset(violates.split()), tuple(triples), _FAVOURED.get(name, frozenset())
    )


def _first_verdict(_: int, entries: Iterable[Any]) -> Verdict:
    return next((entry.verdict for entry in entries), APPLIED)


async def _holds(*_: object, **__: object) -> bool:
    return True


_FAVOURED = {
    "endless stop": frozenset({"reassign", "recreate", "start", "stop", "trouble_disk"}),
    "epoch of whole answers": frozenset({"lose_records", "trouble_wire"}),
    "answers of a grown topic": frozenset({"write_holes"}),
    "falling watermark": frozenset({"trim", "trouble_partition", "write_foreign"}),
    "old bounds": frozenset({"reassign", "trouble_disk"}),
    "slow end": frozenset({"reassign", "recreate", "trouble_disk"}),
    "snapshot of a disowned state": frozenset({"lose_records", "trouble_disk"}),
    "snapshot of a former reader": frozenset({"lose_records_unassigned", "trouble_disk"}),
}

BROKEN = (
    _broken(
        *("stale read", "I2", ShardGate, "meet", _never_closes),
        *(Follower, "is_current", lambda _: True),
    ),
    _broken(
        *("empty answer", "I2 I3", ShardGate, "meet", lambda gate, _: _MEET(gate, CaughtUp())),
        *(Follower, "is_current", lambda _: True),
    ),
    _broken(
        *("latch over a new assignment", "I2 I3", Gate, "begin_partition", _begins_as_it_was),
        *(Gate, "end_partition", lambda *_: None, Follower, "is_current", lambda _: True),
    ),
    _broken("answers for others", "I2", Gate, "assign", _only_adds),
    _broken("no waiting", "I3", Engine, "wait_reached", _nothing),
    _broken("no asking", "I3", Engine, "wait_current", _nothing),
    _broken("old bounds", "I2", Replay, "__init__", _believes_bounds),
    _broken("slow end", "I2 I9 errors", pump.Pump, "_guarded", lambda _, part: part()),
    _broken("early acknowledgement", "I3", EventWriter, "_wait_verdict", _acknowledges_early),
    _broken("endless wait", "I9", EventWriter, "_wait_verdict", _waits_for_ever),
    _broken("another's verdict", "I3", verdict_waits, "_verdict_on", _first_verdict),
    _broken("unchecked writer", "I8", ChosenShard, "admit", lambda *_: None),
    _broken("erased metadata", "I8", writer_module, "_with_custom", lambda event, _: event),
    _broken("strange record", "I8", writer_module, "encode", lambda event: encode(event) + b"\0"),
    _broken("falling watermark", "I7", known_state, "beginning", _drops_trimmed_states),
    _broken("lost count", "I4", ChosenShard, "_skip_to", _holes_do_not_count),
    _broken("hidden segment", "I6", ChosenShard, "segments", _hides_what_is_deleted),
    _broken("late copy", "I1 I3 errors", Follower, "freeze", _freezes_late),
    _broken("torn snapshot", "I5", snapshot_folder, "write_atomically", _writes_in_place),
    _broken(
        "snapshot in a cache", "I5", snapshot_folder, "write_atomically", _writes_without_force
    ),
    _broken(
        *("folder in a cache", "I5", snapshot_folder, "make_durable_folder"),
        lambda disk, path, _: disk.make_folder(path),
    ),
    _broken(
        *("snapshot of another topic", "I1 I2 I9"),
        *(snapshot_folder, "identity_folder", lambda root, _: root),
        *(snapshot_folder, "require_identity", lambda *_: None, known_state, "holds_batch", _holds),
    ),
    _broken("endless stop", "I9", pump, "_stay_cancelled", lambda: None),
    _broken("snapshot of a disowned state", "I1", pump.Pump, "_vouches", lambda *_: True),
    _broken(
        *("snapshot of a former reader", "I1", pump.Pump, "_vouches"),
        lambda _pump, _follower, is_valid: is_valid(),
    ),
    _broken("answer after a pause", "I2", Follower, "is_current", lambda _: True),
    _broken("believed snapshot", "I1 I2 I9", known_state, "holds_batch", _holds),
    _broken("inherited watermark", "I1", Follower, "_begin", _inherits),
    _broken("another partition count", "I2", EngineSnapshots, "confirm", _nothing),
    _broken(
        *("epoch of whole answers", "I1 I2 I9", AnsweredOffsets, "epoch_before"),
        lambda answered, at: answered.leader_epoch if at == answered.next_offset else -1,
    ),
    _broken("verdict by offset", "I3", verdict_waits, "_settle", _judges_by_offset),
    _broken("answers of a grown topic", "I9", placement.Placement, "fault", lambda _: None),
    _broken("closed by two strays", "I9", placement, "_MISPLACED_MIN", 2),
)
