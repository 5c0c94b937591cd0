"""The invariants I1 to I9, checked from outside against the history of the topic (`reference`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ImageCorrupt, SnapshotError
from rlmm.gate.state import GateState
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Undecodable
from rlmm.snapshot.catalog import SUFFIX, identity_folder, position_of
from tests.simulation.branches import Lineage
from tests.simulation.disk import file_of, restored
from tests.simulation.machine import LATENESS_S
from tests.simulation.reference import Reference
from tests.simulation.watched_shard import WatchedShard, snapshot_key
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.log.shard_images import ShardImages
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.report import Report
    from rlmm.pump.replay import Replay
    from tests.simulation.machine import Machine
    from tests.simulation.story import Story
    from tests.simulation.topic import SimulatedTopic

_FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED
_Marks = dict[tuple[bytes, int], int]


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


class Judge:
    def __init__(self, story: Story) -> None:
        self._story = story
        self.topic: SimulatedTopic
        self.violations: list[Violation] = []
        self._references: dict[tuple[Lineage, int], Reference] = {}
        self._compared: dict[tuple[str, int], tuple[WatchedShard, int, int]] = {}
        """The state that was compared last, its position and its branch."""
        self._marks: dict[tuple[str, Uuid, int], tuple[int, int, _Marks]] = {}
        self._read_to: dict[tuple[str, Uuid, int], tuple[int, int]] = {}
        """The watermarks that a machine has shown, at what position of what branch."""

    def tell(self, who: str, what: str) -> None:
        self._story.tell(who, what)

    def violated(self, invariant: str, detail: str) -> None:
        self.tell("JUDGE", f"{invariant} IS VIOLATED: {detail}")
        self.violations.append(Violation(invariant, detail))

    # ---------------------------------------------------------------------------- the yardstick

    def reference(self, lineage: Lineage, first_offset: int) -> Reference:
        """Return the replay of *lineage* from *first_offset* on."""
        key = lineage, first_offset
        found = self._references.get(key)
        if found is None:
            batches = lineage.history.branches[lineage.branch].batches
            place = lineage.history.place
            found = self._references[key] = Reference(
                place, first_offset, batches, self.topic.partition_count, lineage.gaps
            )
        found.advance()
        return found

    def lineage_of(self, topic_id: Uuid, replay: Replay) -> Lineage:
        shard = replay.shard
        assert isinstance(shard, WatchedShard)
        if shard.lineage is not None:
            return shard.lineage
        history = self.topic.lives[topic_id].histories[shard.partition]
        return Lineage(history, history.current, ())

    def expected(
        self, topic_id: Uuid, replay: Replay, partition: TopicIdPartition
    ) -> ChosenShard | None:
        """Return what a replay gives of *partition* at the position of *replay*, if anything."""
        reference = self.reference_of(topic_id, replay)
        image = reference.image(partition, replay.shard.position)
        return None if image is None else reference.shard_of(image)

    def reference_of(self, topic_id: Uuid, replay: Replay) -> Reference:
        return self.reference(self.lineage_of(topic_id, replay), replay.history.first_offset)

    # -------------------------------------------------------------------------- I1, I4, I7: states

    def look(self, machine: Machine) -> None:
        topic_id = machine.topic_id()
        if topic_id is None:
            return
        for place, replay in machine.replays():
            shard = replay.shard
            assert isinstance(shard, WatchedShard)
            before = self._compared.get((machine.name, place))
            now = shard, shard.position, self.lineage_of(topic_id, replay).branch
            if before == now:
                continue
            self._compared[machine.name, place] = now
            self._compare(machine, topic_id, replay, before)
            counted = shard._counters.tally.offsets
            if counted != shard.position - shard.born_at:
                self.violated(
                    "I4",
                    f"{machine.name}, metadata partition {place}: {counted} offsets are counted "
                    f"from {shard.born_at} to {shard.position}",
                )
        self._look_at_marks(machine, topic_id)

    def _compare(
        self,
        machine: Machine,
        topic_id: Uuid,
        replay: Replay,
        before: tuple[WatchedShard, int, int] | None,
    ) -> None:
        """I1: the state equals a replay of the log up to its position, whole after each cut."""
        shard = replay.shard
        reference = self.reference_of(topic_id, replay)
        partitions: Iterable[TopicIdPartition]
        branch = self.lineage_of(topic_id, replay).branch
        if before is not None and (before[0], before[2]) == (shard, branch):
            partitions = reference.changed(before[1], shard.position)
        else:
            self._story.count("states compared whole")
            if (
                shard.position > replay.history.first_offset
                and not shard.statistics().tally.offsets
            ):
                self._story.count("snapshots restored")
            if branch:
                self._story.count("states compared whole after a cut")
            partitions = {
                **dict.fromkeys(reference.partitions_at(shard.position)),
                **dict.fromkeys(shard.partitions()),
            }
        for partition in partitions:
            expected = self.expected(topic_id, replay, partition)
            image = None if expected is None else expected.partition_image(partition)
            if image != shard.partition_image(partition):
                self.violated(
                    "I1",
                    f"{machine.name}, metadata partition {shard.partition} at position "
                    f"{shard.position}, begun at {replay.history.first_offset}: the state of "
                    f"{partition} is not what the log gives",
                )

    def _look_at_marks(self, machine: Machine, topic_id: Uuid) -> None:
        """I7: no high watermark of an answer goes down."""
        engine = machine.engine
        assert engine is not None
        for place, gated in engine._gate.shards().items():
            shard = gated.shard
            if gated.gate.state is not GateState.OPEN or shard is None:
                continue
            assert isinstance(shard, ChosenShard)
            assert isinstance(shard, WatchedShard)
            lineage = shard.lineage or machine.newest_lineage(place)
            assert lineage is not None
            history, branch = lineage.history, lineage.branch
            of, since, before = self._marks.get((machine.name, topic_id, place), (0, 0, {}))
            if (of, since) == (branch, shard.position):
                continue
            marks = _marks_of(shard)
            read = self._read_to.get((machine.name, topic_id, place), (of, since))
            if not all(history.shares(*end, history.current) for end in ((of, since), read)):
                before = {}  # an election has lost records since
                self._read_to.pop((machine.name, topic_id, place), None)
            if of != history.current and self._log_start(topic_id, place) >= since:
                before = {}  # and retention has removed the proof that they were not among them
            for (key, epoch), highest in before.items():
                now = marks.get((key, epoch))
                if now is not None and now >= highest:
                    continue
                whole = self.reference(Lineage(history, branch, ()), 0)
                was_deleted = whole.was_deleted(key, since, shard.position)
                if not was_deleted and not _was_refused(machine):
                    self.violated(
                        "I7",
                        f"{machine.name}, metadata partition {place}: the watermark of epoch "
                        f"{epoch} was {highest} and is {now}",
                    )
            self._marks[machine.name, topic_id, place] = branch, shard.position, marks

    def forget_watermarks(self, machine: Machine, only: int | None = None) -> None:
        """Forget the high watermarks of dropped state; its newest snapshot brings back its own."""
        for name, topic_id, place in list(self._marks):
            if self.topic.lives[topic_id].ended_s is not None:
                del self._marks[name, topic_id, place]
            elif name == machine.name and only in (None, place):
                self._marks[name, topic_id, place] = self._newest(machine, topic_id, place)

    def _log_start(self, topic_id: Uuid, place: int) -> int:
        return self.topic.partitions[place].log_start if self.topic.topic_id == topic_id else 0

    def note_position(self, shard: WatchedShard, topic_id: Uuid, branch: int) -> None:
        """Remember how far a state was read: an election may lose its end before it is judged."""
        self._read_to[shard.machine.name, topic_id, shard.partition] = branch, shard.position

    def drop_watermarks(self, machine: Machine, topic_id: Uuid, place: int) -> None:
        """Expect no watermark of a state that an election has disowned."""
        self._marks.pop((machine.name, topic_id, place), None)

    def _newest(self, machine: Machine, topic_id: Uuid, place: int) -> tuple[int, int, _Marks]:
        life = self.topic.lives[topic_id]
        root = str(identity_folder(machine.folder, self.topic.identity_of(life)) / str(place))
        found = [
            (position, data)
            for path, data in machine.platter.files()
            if path.startswith(f"{root}/")
            and (position := position_of(path.rsplit("/", 1)[1])) is not None
        ]
        for position, data in sorted(found, reverse=True):
            try:
                header, shard = restored(data)
            except (SnapshotError, ImageCorrupt):
                continue
            lineage = machine.lineages.get(snapshot_key(place, position, header.history))
            return 0 if lineage is None else lineage.branch, position, _marks_of(shard)
        return 0, 0, {}

    def see_saved(self, machine: Machine, frozen: ShardImages) -> None:
        """I1: no snapshot is kept of a state that its follower has given up."""
        place, position = frozen.partition, frozen.position
        key = snapshot_key(place, position, frozen.history)
        replay, lineage = dict(machine.replays()).get(place), machine.lineages.get(key)
        shard = None if replay is None else replay.shard
        if lineage is None or not isinstance(shard, WatchedShard) or shard.lineage is None:
            return
        live = shard.lineage
        if (
            live.history is lineage.history
            and live.branch > lineage.branch
            and not live.history.shares(lineage.branch, position, live.branch)
        ):
            self.violated(
                "I1",
                f"{machine.name} keeps a snapshot of metadata partition {place} at position "
                f"{position}, a state that it has given up",
            )

    def see_report(self, who: str, report: Report) -> None:
        """I4: every offset that a report passes is counted once."""
        passed = report.next_offset - report.from_offset
        if report.tally.offsets != passed:
            self.violated(
                "I4",
                f"{who}, metadata partition {report.partition}: {passed} offsets were passed "
                f"from {report.from_offset} on, {report.tally} are counted",
            )

    # ------------------------------------------------------------------------------- I5: the disk

    def see_disk(self, machine: Machine, relied_on: list[str]) -> None:
        """I5: after a crash every snapshot is whole, and every acknowledged one is there."""
        self._story.count("disks looked at after a crash")
        there = dict(machine.platter.files())
        for path, data in there.items():
            if not path.endswith(SUFFIX) or data in machine.platter.damaged:
                continue
            try:
                file_of(data).verify()
            except SnapshotError as error:
                self.violated("I5", f"{path} is neither the old file nor the new one: {error}")
        for path in relied_on:
            if path not in there:
                self.violated("I5", f"{path} was said to be on the medium, and is not there")

    # -------------------------------------------------------------------------- I8: what is written

    def see_append(self, machine: Machine, place: int, value: bytes) -> None:
        """I8: an unmodified broker accepts each published event, at its place and time."""
        event = decode(value)
        problem = None
        match event:
            case Undecodable() | SegmentSnapshot():
                problem = f"not for a broker: {event}"
            case SegmentMetadata() if event.state is not SegmentState.COPY_SEGMENT_STARTED:
                problem = f"a first record in state {event.state.name}"
            case SegmentUpdate(state=SegmentState.COPY_SEGMENT_STARTED):
                problem = "an update to COPY_SEGMENT_STARTED"
            case _ if encode_any(event) != value:
                problem = "not the form that Kafka writes"
            case SegmentMetadata() | SegmentUpdate() | PartitionDelete():
                problem = self._misplaced(machine, place, event)
        if problem is not None:
            self.violated("I8", f"{machine.name} publishes {problem}")

    def _misplaced(
        self, machine: Machine, place: int, event: SegmentMetadata | SegmentUpdate | PartitionDelete
    ) -> str | None:
        """Whether the engine could know that the event comes late or removes custom metadata."""
        engine = machine.engine
        if engine is None:
            return None
        partition = event.partition if isinstance(event, PartitionDelete) else event.id.partition
        gated = engine._gate.shards().get(place)
        if gated is None or gated.shard is None or not engine.assignment.covers(partition, place):
            return None
        delete = gated.shard.partition_delete(partition)
        if delete is not None and delete.state is _FINISHED:
            return f"{event} after the end of its partition"
        if isinstance(event, SegmentUpdate) and event.state > SegmentState.COPY_SEGMENT_FINISHED:
            stored = gated.shard.segment(event.id)
            if stored is not None and stored.custom_metadata and not event.custom_metadata:
                return f"{event}, which erases the custom metadata of its segment"
        return None

    # ------------------------------------------------------------------------- I2: who may answer

    def see_answer(self, machine: Machine, partition: TopicIdPartition, now_s: float) -> None:
        """I2: *machine* may answer a question about *partition* now."""
        engine = machine.engine
        assert engine is not None
        place = engine.place_of(partition)
        where = f"{machine.name} answered for {partition}, metadata partition {place}"
        if machine.is_stopping:
            self.violated("I2", f"{where}, after it was told to stop")
        if not engine.assignment.covers(partition, place):
            self.violated("I2", f"{where}, which is not assigned to it")
        topic_id = machine.topic_id()
        gated = engine._gate.shards().get(place)
        if topic_id is None or gated is None or gated.shard is None:
            self.violated("I2", f"{where}, without a state")
            return
        position = gated.shard.position
        life = self.topic.lives[topic_id]
        target = machine.targets.get((topic_id, place), 0)
        if position < target:
            self.violated("I2", f"{where}, at position {position}; its target is at least {target}")
        known = machine.acknowledged.get((topic_id, place), -1)
        if position <= known:
            self.violated(
                "I3", f"{where}, at position {position}; it acknowledged a write at {known}"
            )
        assert isinstance(gated.shard, WatchedShard)
        history = life.histories[place]
        lineage = gated.shard.lineage or Lineage(history, history.current, ())
        lost_s = lineage.lost_s(position)
        since_s = history.stored_s(position) if lost_s is None else lost_s
        if life.ended_s is not None:
            since_s = min(life.ended_s, life.ended_s if since_s is None else since_s)
        if since_s is not None and now_s - since_s > LATENESS_S:
            what = "what follows is stored" if lost_s is None else "an election has lost it"
            self.violated(
                "I2",
                f"{where}, at position {position}; {what} for {now_s - since_s:.1f} s, "
                f"{LATENESS_S} s are allowed",
            )


def _marks_of(shard: ChosenShard) -> _Marks:
    return {(partition.key, epoch): highest for partition, epoch, highest in shard.watermarks()}


def _was_refused(machine: Machine) -> bool:
    """Whether a snapshot was unusable, so that state found only there is lost."""
    engine = machine.engine
    snapshots = None if engine is None else engine._snapshots
    found = None if snapshots is None else snapshots.statistics()
    return found is not None and any(found[0].refused.values())
