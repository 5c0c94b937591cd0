"""A topic that a broker tiers, in memory, while a job adopts it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, LogUnavailable
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.adopt.end_plan import blocking, ending_plan
from spark_tiering.adopt.journal import AdoptionJournal, AdoptionStep
from spark_tiering.adopt.outcomes import TopicStatus
from spark_tiering.adopt.protocols import AdoptionRound, OpenCopiesResult, RoundPreview
from spark_tiering.adopt.safety import AdoptedPartition
from spark_tiering.adopt.settings import CHANGED, COPY_DISABLE, RETENTION_BYTES, RETENTION_MS
from spark_tiering.adopt.steps import WindowOptions
from spark_tiering.adopt.window import AdoptionWindow
from spark_tiering.copy_job.report import hindrances
from spark_tiering.copy_plan.inputs import OpenCopyWriter, StoredObjects
from spark_tiering.copy_plan.lineage import CopiedTier
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.segment_sources.cluster import TopicSettingInForce
from tests.support.builders import tp
from tests.support.tier.copy_plans import BROKER_ID, copied, cut, image, rules, source
from tests.support.tier.simulated_jobs import OPEN, Killed, World

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.adopt.outcomes import AdoptionRefusal, TopicOutcome
    from spark_tiering.adopt.settings import SettingsChange
    from spark_tiering.copy_plan.inputs import SourcePartition

ONE, TWO = tp("orders", 0), tp("orders", 1)
BEFORE = {RETENTION_MS: "86400000", "local.retention.bytes": "1000", "segment.bytes": "1048576"}


def world(**changed: object) -> AdoptedWorld:
    sources = [
        source(cut(*range(0, 50, 10), is_active=True), partition=ONE, is_tiered=True, log_start=0),
        source(cut(5, 100, 200, is_active=True), partition=TWO, is_tiered=True, log_start=5),
    ]
    return AdoptedWorld(sources, explicit=dict(BEFORE), **changed)  # type: ignore[arg-type]


def standing_and_reason(outcome: TopicOutcome) -> tuple[TopicStatus, AdoptionRefusal | None]:
    return outcome.standing, None if outcome.why is None else outcome.why.reason


def troubled() -> AdoptedWorld:
    found = world()
    found.outcomes[20] = UnitOutcome.CONFLICT
    return found


def died(dies_at: int, *, is_troubled: bool) -> AdoptedWorld:
    found = troubled() if is_troubled else world()
    found.dies_at = dies_at
    with pytest.raises(Killed):
        found.adopt()
    found.dies_at = None
    found.outcomes.clear()
    return found


BROKERS_ID = 9
DEFAULTS = {
    "remote.storage.enable": "true",
    "cleanup.policy": "delete",
    "remote.log.delete.on.disable": "false",
    COPY_DISABLE: "false",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    RETENTION_MS: "604800000",
    RETENTION_BYTES: "-1",
}
JOB = "20261119T014512Z-host-4f09a{}"
CAREFUL = WindowOptions(
    quiet_ms=10, quiet_max_ms=1_000, taken_up_ms=100, settings_ms=100, pause_ms=5
)
QUICK = replace(CAREFUL, is_shrinking_allowed=True)
CS, CF, DS, DF = SegmentState


@dataclass
class AdoptedWorld(World):
    """One topic that a broker tiers; *lost* maps destroyed records to their cause."""

    explicit: dict[str, str] = field(default_factory=dict)
    journals: list[AdoptionJournal] = field(default_factory=list)
    now: int = 1_000_000
    lost: list[str] = field(default_factory=list)
    told_tiered: dict[TopicIdPartition, int] = field(default_factory=dict)
    log_starts: dict[TopicIdPartition, int] = field(default_factory=dict)
    is_deaf: bool = False
    """The brokers do not go on behind what was copied."""
    refuses_change: str = ""
    lost_changes: int = 0
    """How many changes take effect without anybody's hearing of it."""
    is_gone: bool = False
    too_old: str = ""
    busy_events: int = 0
    jobs: int = 0
    without_source: set[TopicIdPartition] = field(default_factory=set)
    stop: str = ""
    vanishing: int = 0
    """How often the first segment to copy is gone by the time it is read: the broker was first."""
    expired: dict[TopicIdPartition, int] = field(default_factory=dict)
    """Where partitions begin from the second look on: retention was at work."""
    _seen_events: int = 0

    def __post_init__(self) -> None:
        self.mode = CopyMode.ADOPT
        for one in self.sources:
            self.log_starts.setdefault(one.partition, one.log_start or 0)

    def setting(self, name: str) -> str:
        return self.explicit.get(name, DEFAULTS[name])

    @property
    def is_copying(self) -> bool:
        return self.setting(COPY_DISABLE) != "true"

    def step(self) -> None:
        for segment_id, state in self.events[self._seen_events :]:
            is_ours = segment_id.uuid not in self.brokers
            is_safe = not self.is_copying and self.setting(RETENTION_MS) == "-1"
            if (
                is_ours
                and state in (CS, CF)
                and not (is_safe and self.setting(RETENTION_BYTES) == "-1")
            ):
                self.lost.append(f"{state.name} of {segment_id} outside of a window")
        self._seen_events = len(self.events)
        super().step()

    @property
    def brokers(self) -> set[Uuid]:
        return {one.id.uuid for one in self.segments.values() if one.broker_id == BROKERS_ID}

    def finished_by_brokers(self) -> list[SegmentMetadata]:
        return [
            one for one in self.segments.values() if one.broker_id == BROKERS_ID and one.state is CF
        ]

    def apply(self, change: SettingsChange) -> None:
        was_copying = self.is_copying
        self.explicit.update(change.given)
        for name in change.unset:
            self.explicit.pop(name, None)
        if self.is_copying and not was_copying:
            for one in self.sources:
                self._copy_task(one.partition)

    def _copy_task(self, partition: TopicIdPartition) -> None:
        """Act like the first run of a leader's copy task on the present metadata."""
        (source,) = (one for one in self.sources if one.partition == partition)
        segments = [one for one in self.segments.values() if one.id.partition == partition]
        starts = [one.start_offset for one in segments]
        log_start = self.log_starts[partition]
        if starts and min(starts) > log_start:
            self.lost.append(f"{partition}: below {min(starts)}, by a lone copy")
            self.log_starts[partition] = log_start = min(starts)
        tier = CopiedTier(image(*segments, partition=partition), source.history or ())
        reached = tier.next_offset(log_start)
        finished = [one for one in segments if one.state is CF]
        for offset in range(log_start, reached):
            holders = [one for one in finished if one.start_offset <= offset <= one.last_offset]
            if not any(self.objects.get(one.id.uuid) is StoredObjects.WHOLE for one in holders):
                self.lost.append(f"{partition}: {offset}, by a hole")
        if self.is_deaf:
            return
        for segment in source.segments:
            base, behind = segment.listed
            if behind is not None and base >= reached:
                mine = self.broker_copy(partition, base, behind)
                reached = mine.last_offset + 1
        self.told_tiered[partition] = reached - 1

    def broker_copy(
        self, partition: TopicIdPartition, base: int, behind: int, state: SegmentState = CF
    ) -> SegmentMetadata:
        self.drawn += 1
        segment = copied(
            SegmentId(partition, Uuid.of(9, self.drawn)), base, behind, state, broker_id=BROKERS_ID
        )
        self.segments[segment.id] = segment
        self.objects[segment.id.uuid] = StoredObjects.WHOLE
        return segment

    def writer_of(self, segment: SegmentMetadata) -> OpenCopyWriter:
        is_foreign = segment.broker_id == BROKERS_ID
        return OpenCopyWriter.FOREIGN if is_foreign else OpenCopyWriter.ENDED

    def known_sources(self) -> list[SourcePartition]:
        return [one for one in self.sources if one.partition not in self.without_source]

    def window(self, options: WindowOptions = QUICK) -> AdoptionWindow:
        self.jobs += 1
        return AdoptionWindow("orders", AdoptHands(self, JOB.format(self.jobs % 10)), options)

    def adopt(self, options: WindowOptions = QUICK) -> TopicOutcome:
        return self.window(options).adopt()

    def open_of_jobs(self) -> list[SegmentMetadata]:
        return [
            one
            for one in self.segments.values()
            if one.state in OPEN and one.broker_id == BROKER_ID
        ]

    def check_closed(self, before: Mapping[str, str]) -> None:
        """Check that no window is open, settings are restored and no record was destroyed."""
        assert self.explicit == dict(before)
        assert self.lost == []
        assert self.open_of_jobs() == []
        assert not self.journals or self.journals[-1].step is AdoptionStep.CLOSED
        for one in self.segments.values():
            if one.state is CF:
                assert self.objects[one.id.uuid] is StoredObjects.WHOLE, one
        known = {segment_id.uuid for segment_id in self.segments}
        assert set(self.objects) <= known, "objects that no metadata knows"


class AdoptHands:
    """The hands of one job in the world; every call is a step, changes are two."""

    def __init__(self, world: AdoptedWorld, job_id: str) -> None:
        self.job_id = job_id
        self._world = world
        self._has_vanished = False

    def now_ms(self) -> int:
        return self._world.now

    def elapsed_ms(self) -> int:
        return self._world.now

    def wait(self, seconds: float) -> None:
        self._world.now += round(seconds * 1_000)

    def why_stop(self) -> str:
        return self._world.stop

    def why_not_ours(self) -> str:
        world = self._world
        world.step()
        return "lost" if world.lost_at is not None and world.steps >= world.lost_at else ""

    def journal(self) -> AdoptionJournal | None:
        self._world.step()
        return self._world.journals[-1] if self._world.journals else None

    def first_journal(
        self, settings: Mapping[str, str], log_starts: Mapping[int, int]
    ) -> AdoptionJournal:
        at = self._world.now
        topic = JobTopic("orders", tp("orders", 0).topic_id)
        number = len(self._world.journals) + 1
        return AdoptionJournal(
            *topic, "cluster-1", number, AdoptionStep.OPENING, self.job_id, at, at,
            dict(settings), dict(log_starts), "",
        )  # fmt: skip

    def write(self, journal: AdoptionJournal) -> None:
        world = self._world
        world.step()
        assert journal.generation == len(world.journals) + 1
        world.journals.append(journal)
        world.step()

    def settings(self) -> Mapping[str, TopicSettingInForce] | None:
        world = self._world
        world.step()
        if world.is_gone:
            return None
        return {
            name: TopicSettingInForce(world.setting(name), name in world.explicit)
            for name in DEFAULTS
        }

    def change(self, change: SettingsChange, *, is_only_checked: bool = False) -> None:
        world = self._world
        world.step()
        assert {*change.given, *change.unset} <= set(CHANGED)
        if world.refuses_change and (
            not is_only_checked or world.refuses_change != "when it is made"
        ):
            raise ConfigError(world.refuses_change)
        if is_only_checked:
            return
        assert world.journals[-1].job_id == self.job_id, "nothing is changed without a journal"
        world.apply(change)
        world.step()
        if world.lost_changes:
            world.lost_changes -= 1
            raise LogUnavailable("no answer")

    def why_too_old(self) -> str:
        self._world.step()
        return self._world.too_old

    def latest_tiered(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, int]:
        self._world.step()
        return {one: self._world.told_tiered.get(one, -1) for one in partitions}

    def look(self) -> tuple[AdoptedPartition, ...]:
        world = self._world
        world.step()
        if world.busy_events:
            world.busy_events -= 1
            world.broker_copy(world.sources[0].partition, 0, 5, CS)
        images = {one.partition: one for one in world.metadata_image().partitions}
        seen = tuple(
            AdoptedPartition(
                one.partition,
                images[one.partition],
                world.log_starts[one.partition],
                None if one.partition in world.without_source else one.history,
            )
            for one in world.sources
        )
        world.log_starts.update(world.expired)
        return seen

    def preview(self) -> RoundPreview:
        self._world.step()
        self._has_vanished = self._world.vanishing > 0
        self._world.vanishing -= self._has_vanished
        plan = self._world.plan()
        return RoundPreview(
            0 if self._has_vanished else sum(len(one.copies) for one in plan.partitions)
        )

    def hindrances(self) -> tuple[str, ...]:
        return ("not-inspected",) if self._has_vanished else hindrances(self._world.plan())

    def copy_round(self, rest_bytes: int) -> AdoptionRound | None:
        plan = self._world.plan()
        if plan.is_empty:
            return None
        carried = self._world.carry_out(plan=plan)
        return AdoptionRound(tuple(carried.receipts()), tuple(carried.ends), carried.stopped)

    def end_open(self) -> OpenCopiesResult:
        world = self._world
        world.step()
        plan = ending_plan(
            rules(world.mode),
            world.metadata_image(),
            {one.partition: one for one in world.sources},
            world.evidence(),
        )
        if plan.is_empty:
            return OpenCopiesResult((), tuple(blocking(plan)))
        carried = world.carry_out(plan=plan)
        return OpenCopiesResult(tuple(carried.ends), tuple(blocking(plan)))


CLOSED = (TopicStatus.ADOPTED, TopicStatus.ABORTED)
