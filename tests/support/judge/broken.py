"""
The faults that are planted in `rlmm serve`, one in each run.

Each fault gives false answers or acknowledgements, and the judge must find it.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlmm.engine.snapshot_wiring import EngineSnapshots
from rlmm.errors import AppendRefused, EventRejected
from rlmm.gate import reads
from rlmm.gate.admission import Gate
from rlmm.gate.reads import PartitionQueries
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.metadata import partition_state
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.row import start_of, updated_row
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.shard_answers import ShardAnswers
from rlmm.metadata.verdicts import APPLIED, DUPLICATE
from rlmm.process.wiring import LOG_FOLDER
from rlmm.pump import verdict_waits
from rlmm.pump.placement import Placement
from rlmm.pump.writer import EventWriter, WrittenEvent
from rlmm.records.batch import Batch, walk
from rlmm.snapshot.snapshot_folder import SnapshotFolder
from tests.simulation.broken import BROKEN
from tests.support.judge.partition import SPAN
from tests.support.server.serve_process import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.paging import Page

Change = tuple[object, str, object]
EVERY: Final = 7
"""A fault that changes some answers changes one of so many."""

# ------------------------------------------------------------------------------------- the log


async def _stores_nothing(log: FilesLog, partition: int, value: bytes, **_: object) -> int:
    """Acknowledge an event that the log does not get."""
    del log, partition, value
    return 0


async def _verdict_at_once(*_: object) -> Any:
    return APPLIED


def _loses_the_tail() -> tuple[Change, ...]:
    """Cut the last record batch off each partition, as a start after a lost cache."""
    if "observer" in sys.argv:
        return ()
    for path in (Path(FOLDER) / LOG_FOLDER).glob("*/*.log"):
        batches = [batch for batch in walk(path.read_bytes()) if isinstance(batch, Batch)]
        if batches:
            os.truncate(path, batches[-1].start)
    return ()


# ---------------------------------------------------------------------------- writes and verdicts


class _Some:
    """Calls the real method, and changes the result of one call of `EVERY`."""

    def __init__(self, changed: Callable[[WrittenEvent], WrittenEvent]) -> None:
        self.changed = changed
        self.count = 0
        self.write = EventWriter.write

    def method(self) -> Any:
        async def write(writer: EventWriter, event: Any, **how: Any) -> WrittenEvent:
            written = await self.write(writer, event, **how)
            self.count += 1
            return written if self.count % EVERY else self.changed(written)

        return write


def _refused(written: WrittenEvent) -> WrittenEvent:
    raise AppendRefused(f"not sent: {written.offset}")


def _rejected(written: WrittenEvent) -> WrittenEvent:
    raise EventRejected(f"another event came first: {written.offset}")


def _doubled(written: WrittenEvent) -> WrittenEvent:
    return replace(written, verdict=DUPLICATE)


def _always_applied(*_: object) -> Any:
    return APPLIED


_WRITE = EventWriter.write


async def _acknowledges_refusals(writer: EventWriter, event: Any, **how: Any) -> Any:
    try:
        return await _WRITE(writer, event, **how)
    except EventRejected:
        return WrittenEvent(0, 0, APPLIED)


# ------------------------------------------------------------------------------------- answers


class _Remembered:
    """Answers each question `EVERY` times as it did first: an answer from before."""

    def __init__(self, name: str) -> None:
        self.ask = getattr(PartitionQueries, name)
        self.kept: dict[object, list[Any]] = {}

    def method(self) -> Any:
        def answer(queries: PartitionQueries, *args: Any, **how: Any) -> Any:
            kept = self.kept.get(args)
            if not kept:
                kept = self.kept[args] = [self.ask(queries, *args, **how)] * EVERY
            return kept.pop()

        return answer


_PAGE, _SEGMENT_FOR, _SIZE = ShardAnswers.page, ShardAnswers.row_for, ShardAnswers.size


def _short_page(shard: ShardAnswers, *args: Any, **how: Any) -> Page:
    page = _PAGE(shard, *args, **how)
    return replace(page, segments=page.segments[:-1])


def _without_deleted(shard: ShardAnswers, *args: Any, **how: Any) -> Page:
    page = _PAGE(shard, *args, **how)
    gone = SegmentState.DELETE_SEGMENT_STARTED
    return replace(page, segments=tuple(one for one in page.segments if one.state is not gone))


def _next_segment(shard: ShardAnswers, partition: Any, epoch: int, offset: int) -> Any:
    return _SEGMENT_FOR(shard, partition, epoch, offset + SPAN // 2)


def _any_state(shard: ShardAnswers, partition: Any, epoch: int, offset: int) -> Any:
    """Find copies that are open or being deleted, too."""
    del epoch
    rows = shard._state(partition).rows
    covering = (id_ for id_, row in rows.items() if 0 <= offset - start_of(row) < SPAN)
    return next(((id_, rows[id_]) for id_ in covering), None)


def _highest_present(shard: ShardAnswers, partition: TopicIdPartition, epoch: int) -> int | None:
    """Return the watermark of the segments that are there, so that it falls."""
    segments = shard.segments_of_epoch(partition, epoch)
    finished = SegmentState.COPY_SEGMENT_FINISHED
    return max((one.last_offset for one in segments if one.state is finished), default=None)


def _size_with_a_rest(shard: ShardAnswers, partition: TopicIdPartition) -> int:
    size = max(_SIZE(shard, partition), _SIZES.get(partition, 0))
    _SIZES[partition] = size
    return size


_SIZES: dict[TopicIdPartition, int] = {}


def _forgets_custom(current: bytes, target: int, writer: bytes, _: bytes, rest: bytes) -> bytes:
    return updated_row(current, target, writer, b"\0", rest)


def _knows_late(shard: ShardAnswers, partition: TopicIdPartition) -> bool:
    state = shard._states.get(partition.key)
    return state is not None and any(entry.highest is not None for entry in state.epochs.values())


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _remembered(name: str) -> tuple[Change, ...]:
    return ((PartitionQueries, name, _Remembered(name).method()),)


def _some(changed: Callable[[WrittenEvent], WrittenEvent]) -> tuple[Change, ...]:
    return ((EventWriter, "write", _Some(changed).method()),)


# ------------------------------------------------------------- cuts, observers, partition counts

_SAVE = SnapshotFolder.write


def _keeps_disowned(folder: SnapshotFolder, given: Any, header: Any, frozen: Any, size: int) -> Any:
    """Write slowly, and save a state that was disowned meanwhile, as one without a proof."""
    time.sleep(1)
    if not frozen.is_valid():
        header.history.last_batch = None
    return _SAVE(folder, given, header, replace(frozen, is_valid=lambda: True), size)


async def _restores_once(keeper: EngineSnapshots, place: int, *bounds: int) -> Any:
    """Restore at a start alone: later that would wait until the slow write has ended."""
    if place in _RESTORED:
        return None
    _RESTORED.add(place)
    return await _RESTORE(keeper, place, *bounds)


_RESTORE = EngineSnapshots.restore
_RESTORED: set[int] = set()


def _as_first_touched(log: FilesLog, partition: int) -> Any:
    return log._registry.partition(TOPIC, partition)


def _simulated(name: str) -> tuple[Change, ...]:
    return next(broken.changes for broken in BROKEN if broken.name == name)


FAULTS: Final[dict[str, Callable[[], tuple[Change, ...]]]] = {
    "event not stored": lambda: (
        (FilesLog, "append", _stores_nothing),
        (EventWriter, "_wait_verdict", _verdict_at_once),
        (verdict_waits.VerdictWaits, "listen", _nothing),
    ),
    "tail lost at a start": _loses_the_tail,
    "refused, though stored": lambda: _some(_refused),
    "rejected, though applied": lambda: _some(_rejected),
    "duplicate, though applied": lambda: _some(_doubled),
    "refusal acknowledged": lambda: ((EventWriter, "write", _acknowledges_refusals),),
    "verdict always applied": lambda: (
        (verdict_waits, "_verdict_on", _always_applied),
        (PythonShard, "admit", _nothing),
    ),
    "look-up from before": lambda: _remembered("row_for"),
    "listing from before": lambda: _remembered("page"),
    "highest offset from before": lambda: _remembered("highest_offset"),
    "listing without its last": lambda: ((ShardAnswers, "page", _short_page),),
    "hidden segment": lambda: ((ShardAnswers, "page", _without_deleted),),
    "look-up of the next segment": lambda: ((ShardAnswers, "row_for", _next_segment),),
    "falling watermark": lambda: ((ShardAnswers, "highest_offset", _highest_present),),
    "size of deleted segments": lambda: ((ShardAnswers, "size", _size_with_a_rest),),
    "custom metadata forgotten": lambda: ((partition_state, "updated_row", _forgets_custom),),
    "unfinished copy found": lambda: ((ShardAnswers, "row_for", _any_state),),
    "deletion without effect": lambda: ((PartitionState, "_finish_delete", _nothing),),
    "deletion of the partition forgotten": lambda: ((ShardAnswers, "partition_delete", _nothing),),
    "unknown partition answered": lambda: (
        (reads, "require_known", _nothing),
        (PartitionQueries._admit, "__defaults__", (_nothing,)),
    ),
    "known partition unknown": lambda: ((ShardAnswers, "knows", _knows_late),),
    "early acknowledgement": lambda: _simulated("early acknowledgement"),
    "another's verdict": lambda: _simulated("another's verdict"),
    "snapshot of a disowned state": lambda: (
        (SnapshotFolder, "write", _keeps_disowned),
        (EngineSnapshots, "restore", _restores_once),
    ),
    "answer after a pause": lambda: _simulated("answer after a pause"),
    "believed snapshot": lambda: _simulated("believed snapshot"),
    "inherited watermark": lambda: _simulated("inherited watermark"),
    "another partition count": lambda: (
        *_simulated("another partition count"),
        (Placement, "fault", _nothing),
        (Gate, "_require_placed", _nothing),
    ),
    "observer that does not follow": lambda: ((FilesLog, "_observed", _as_first_touched),),
}
