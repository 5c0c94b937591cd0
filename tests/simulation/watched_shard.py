"""A shard that the judge watches, and snapshots that keep what their state was read from."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rlmm.engine.snapshot_wiring import EngineSnapshots
from rlmm.snapshot.store import SnapshotStore
from tests.simulation.branches import Lineage
from tests.simulation.disk import SimulatedDisk
from tests.simulation.fetches import FetchedRecords
from tests.simulation.loop import swapped
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.log.shard_images import ShardImages
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.report import Report
    from rlmm.records.header import BatchMark
    from rlmm.records.record_set import RecordSet
    from rlmm.snapshot.store import RestoredSnapshot, SavedSnapshot
    from tests.simulation.branches import History
    from tests.simulation.invariants import Judge
    from tests.simulation.machine import Machine

SnapshotKey = tuple[int, int, int, int, "BatchMark | None"]


class WatchedShard(ChosenShard):
    """A shard that shows the judge every report, its state before the first, and its lineage."""

    slices_by_time = False
    """On either engine: the machine's own clock must not tell where a slice ends."""

    def __init__(self, partition: int, position: int, machine: Machine, judge: Judge) -> None:
        super().__init__(partition, position)
        self.born_at = position
        self.machine = machine
        self.lineage: Lineage | None = None
        """`None` until a record is read, or a snapshot tells it."""
        self._judge = judge
        self._is_new = True

    def apply(self, record_set: RecordSet, max_events: int | None = None, **limits: Any) -> Report:
        if self._is_new:
            self._is_new = False
            self._judge.look(self.machine)  # what was restored, before more is made of it
        if isinstance(record_set, FetchedRecords) and record_set.history is not None:
            self._trace(record_set.history, record_set.branch)
        next_offset = record_set.next_offset
        if not record_set.data and next_offset is not None and next_offset > self.position:
            self._skip(next_offset)
        limits.pop("is_over", None)  # it asks a clock that stands still meanwhile
        report = super().apply(record_set, max_events, **limits)
        self._see(report)
        return report

    def pass_trimmed(self, log_start: int) -> Report:
        if self._is_new:
            self._is_new = False
            self._judge.look(self.machine)
        self._skip(log_start)
        report = super().pass_trimmed(log_start)
        self._see(report)
        return report

    def _see(self, report: Report) -> None:
        self._judge.see_report(self.machine.name, report)
        lineage, topic_id = self.lineage, self.machine.topic_id()
        if lineage is None or topic_id is None:
            return
        self._judge.note_position(self, topic_id, lineage.branch)
        if lineage.is_lost(self.position):
            self._judge.drop_watermarks(self.machine, topic_id, self.partition)

    def _trace(self, history: History, branch: int) -> None:
        """Follow the records into another branch, which must hold all that was read before."""
        lineage = self.lineage
        if lineage is None:
            self.lineage = Lineage(history, branch, ())
            return
        if lineage.history is history and lineage.branch == branch:
            return
        if lineage.history is not history or not history.shares(
            lineage.branch, self.position, branch
        ):
            self._judge.violated(
                "I1",
                f"{self.machine.name}, metadata partition {self.partition}: records of another "
                f"history are applied to the state at position {self.position}",
            )
        self.lineage = Lineage(history, branch, lineage.gaps)

    def _skip(self, next_offset: int) -> None:
        lineage = self.lineage or self.machine.newest_lineage(self.partition)
        if lineage is not None:
            gaps = (*lineage.gaps, (self.position, next_offset))
            self.lineage = Lineage(lineage.history, lineage.branch, gaps)

    def freezing(
        self, partition: TopicIdPartition | None = None
    ) -> Iterator[Callable[[], bytes] | None]:
        """Freeze, and remember the lineage of the state for a restore of its snapshot."""
        for place, replay in self.machine.replays():
            if place == self.partition and self.lineage is not None:
                key = snapshot_key(place, self.position, replay.history)
                self.machine.lineages[key] = self.lineage
        return super().freezing(partition)


@contextmanager
def watched_snapshots() -> Iterator[None]:
    """Tell restored states their lineage, and the judge what was saved."""

    async def restore(snapshots: EngineSnapshots, *where: int) -> RestoredSnapshot | None:
        found = await _RESTORE(snapshots, *where)
        if found is not None and isinstance(found.shard, WatchedShard):
            shard = found.shard
            key = snapshot_key(shard.partition, shard.position, found.history)
            shard.lineage = shard.machine.lineages.get(key)
        return found

    async def write(store: SnapshotStore, frozen: ShardImages) -> SavedSnapshot:
        saved = await _WRITE(store, frozen)
        disk = store._folder._disk
        assert isinstance(disk, SimulatedDisk)
        disk.platter.saved(frozen, str(saved.path))
        return saved

    with swapped((EngineSnapshots, "restore", restore), (SnapshotStore, "write", write)):
        yield


_RESTORE = EngineSnapshots.restore
_WRITE = SnapshotStore.write


def snapshot_key(place: int, position: int, history: ReplayHistory) -> SnapshotKey:
    """Return what tells the content of a snapshot from that of all others of its machine."""
    return place, position, history.first_offset, history.trimmed_before, history.last_batch
