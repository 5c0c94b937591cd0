"""A run carried out: deletion started, objects away, deletion finished; and died in between."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import LogUnavailable
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import TRANSITIONS, PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.retention.retention import RetentionSettings
from spark_tiering.maintenance.expire.actions import RemovalResult, TierExpireActions
from spark_tiering.maintenance.expire.decision import ExpireOptions, PartitionExpirePlan, decide
from spark_tiering.maintenance.expire.execution import ExpireExecution, ExpireFate, ExpireReceipt
from spark_tiering.maintenance.expire.topic_ownership import TopicOwner
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.builders import partition_delete, started, tp
from tests.support.tier.job_parts import HeldMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from spark_tiering.maintenance.expire.actions import RemovalTarget

CS, CF, DS, _ = SegmentState
NOW_MS = 10_000
MARKED, STARTED, FINISHED = PartitionDeleteState
STATES = (CF, CS, DS, CF, CF)
"""Of the segments of `world`; the last one stays."""


SHORT = dict(zip(SegmentState, ("CS", "CF", "DS", "DF"), strict=True))


class Died(BaseException):
    pass


@dataclass
class HeldHands:
    """Stands in for `ExpireActions`, notes effects in *done*, and dies after the *dies_at*-th."""

    segments: dict[SegmentId, SegmentMetadata]
    objects: set[SegmentId]
    wave: int = 2
    deletes: dict[TopicIdPartition, PartitionDeleteState] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    dies_at: int | None = None
    failing: dict[str, str] = field(default_factory=dict)
    """By what is written into *done*: why it does not take effect."""
    not_ours: dict[TopicIdPartition, str] = field(default_factory=dict)
    changes: dict[SegmentId, list[SegmentMetadata | str | None]] = field(default_factory=dict)
    """The states that the next reads of a segment find instead."""
    looks: list[SegmentId] = field(default_factory=list)

    def _took_effect(self, what: str) -> None:
        self.done.append(what)
        if self.dies_at is not None and len(self.done) >= self.dies_at:
            raise Died(what)

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        return self.not_ours.get(partition, "")

    def look(self, segment_id: SegmentId) -> SegmentMetadata | str | None:
        self.looks.append(segment_id)
        if self.changes.get(segment_id):
            return self.changes[segment_id].pop(0)
        return self.segments.get(segment_id)

    def move(self, segments: Sequence[SegmentMetadata], state: SegmentState) -> list[str]:
        told = []
        for one in segments:
            what = f"{SHORT[state]} {one.start_offset}"
            if why := self.failing.get(what):
                told.append(why)
                continue
            now = self.segments[one.id]
            assert state in TRANSITIONS[now.state], f"{what}: it is {now.state.name}"
            if state is SegmentState.DELETE_SEGMENT_FINISHED:
                assert one.id not in self.objects, f"{what}: its objects are there"
                del self.segments[one.id]
            else:
                self.segments[one.id] = replace(now, state=state)
            told.append("")
            self._took_effect(what)
        return told

    def remove(self, targets: Sequence[RemovalTarget]) -> list[RemovalResult]:
        removals = []
        for one in targets:
            what = f"objects {one.start_offset}"
            if why := self.failing.get(what):
                removals.append(RemovalResult(one.segment_id, False, False, why))
                continue
            state = self.segments[one.segment_id].state
            assert state is SegmentState.DELETE_SEGMENT_STARTED, f"{what}: it is {state.name}"
            was_there = one.segment_id in self.objects
            self.objects.discard(one.segment_id)
            removals.append(RemovalResult(one.segment_id, True, was_there))
            self._took_effect(what)
        return removals

    def move_partition(self, partition: TopicIdPartition, state: PartitionDeleteState) -> str:
        what = f"{state.name.rpartition('_')[2]} {partition.partition}"
        if why := self.failing.get(what):
            return why
        assert self.deletes[partition] is not PartitionDeleteState.DELETE_PARTITION_FINISHED
        if state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            assert self.is_empty(partition), f"{what}: segments are left"
        self.deletes[partition] = state
        self._took_effect(what)
        return ""

    def is_empty(self, partition: TopicIdPartition) -> bool | str:
        if why := self.failing.get("is-empty"):
            return why
        return not any(one.partition == partition for one in self.segments)


def world(delete: PartitionDeleteState | None = None, **said: Any) -> HeldHands:
    segments = [
        started(at, at * 100, at * 100 + 99, size_bytes=10, state=state,
                max_timestamp_ms=NOW_MS if at == 4 else at)
        for at, state in enumerate(STATES)
    ]  # fmt: skip
    by_id = {one.id: one for one in segments}
    objects = {one.id for one in segments if one.state is not CS}
    deletes = {} if delete is None else {tp(): delete}
    return HeldHands(by_id, objects, deletes=deletes, **said)


def plan_of(
    actions: HeldHands,
    standing: TopicOwner = TopicOwner.OURS,
    found: list[SegmentMetadata] | None = None,
) -> PartitionExpirePlan:
    state = actions.deletes.get(tp())
    return decide(
        tp(),
        found or [*actions.segments.values()],
        standing=standing,
        rules=RetentionSettings(retention_ms=100),
        options=ExpireOptions(),
        now_ms=NOW_MS,
        delete=None if state is None else partition_delete(state),
    )


def carried(
    actions: HeldHands, plan: PartitionExpirePlan | None = None, **said: Any
) -> ExpireExecution:
    carrying = ExpireExecution([plan or plan_of(actions)], actions, **said)
    carrying.run()
    return carrying


def fates(receipts: list[ExpireReceipt]) -> dict[int, str]:
    return {one.segment.start_offset: one.fate.value for one in receipts}


def test_run_when_nothing_happens_then_metadata_goes_before_objects_and_after_them() -> None:
    """The run marks each deletion before it removes objects, and finishes it after (F115)."""
    actions = world()
    carrying = carried(actions)
    assert actions.done == [
        "DS 0", "DS 100", "objects 0", "objects 100", "DF 0", "DF 100",
        "DS 300", "objects 200", "objects 300", "DF 200", "DF 300",
    ]  # fmt: skip
    assert set(fates(carrying.receipts).values()) == {"deleted"}
    assert [one.start_offset for one in actions.segments.values()] == [400]
    assert actions.objects == set(actions.segments)
    assert [one.was_there for one in carrying.receipts] == [True, False, True, True]
    # Each was looked at before its deletion was started, and again before its objects went.
    assert len(actions.looks) == 8


@pytest.mark.parametrize("wave", [1, 2, 16])
@pytest.mark.parametrize("dies_at", range(1, 12))
def test_f114_f115_run_when_it_dies_then_the_next_one_ends_clean(wave: int, dies_at: int) -> None:
    """After a kill at any step the next run finishes every deletion and touches nothing else."""
    actions = world(wave=wave, dies_at=dies_at)
    with pytest.raises(Died):
        carried(actions)
    actions.dies_at = None
    carried(actions)
    assert [one.start_offset for one in actions.segments.values()] == [400]
    assert actions.objects == set(actions.segments)
    # One wave at most is done again, and nothing of it more than once more.
    again = len(actions.done) - len(set(actions.done))
    assert again <= 3 * wave


@pytest.mark.parametrize("state", [MARKED, STARTED])
@pytest.mark.parametrize("dies_at", range(1, 17))
def test_f116_killed_partition_deletion_continues(
    state: PartitionDeleteState, dies_at: int
) -> None:
    """A killed partition deletion continues, and its end is published once, after all objects."""
    actions = world(state, dies_at=dies_at)
    try:
        carried(actions)
    except Died:
        actions.dies_at = None
        if actions.deletes[tp()] is not FINISHED:
            carried(actions)
    assert (actions.segments, actions.objects) == ({}, set())
    assert actions.deletes == {tp(): FINISHED}
    assert actions.done.count("FINISHED 7") == 1
    assert actions.done[-1] == "FINISHED 7"
    assert actions.done.count("STARTED 7") == (state is MARKED)


def test_f116_deletion_of_a_partition_when_something_is_left_then_is_not_finished() -> None:
    """A partition deletion is not finished while one of its segments is left."""
    actions = world(STARTED)
    for failing, detail in (
        ({"objects 300": "store-unavailable: away"}, "segments of it are left"),
        ({"is-empty": "not-ready: behind"}, "not-ready: behind"),
        ({"FINISHED 7": "log-unavailable: away"}, "log-unavailable: away"),
        ({}, ""),
    ):
        actions.failing = failing
        (end,) = carried(actions).ends
        assert (end.is_finished, end.detail) == (not detail, detail)
        assert actions.deletes == {tp(): STARTED if detail else FINISHED}


NOT_OURS = {tp(): "topic orders is not this run's any more"}


@pytest.mark.parametrize(
    "actions",
    [world(MARKED, failing={"STARTED 7": "log-unavailable: away"}), world(not_ours=NOT_OURS)],
    ids=["mark that cannot start", "topic lost to another job"],
)
def test_partition_when_it_cannot_be_begun_then_nothing_of_it_goes(actions: HeldHands) -> None:
    """A deletion that cannot start, or of a topic lost to another job, removes nothing."""
    carrying = carried(actions)
    assert (actions.done, set(fates(carrying.receipts).values())) == ([], {"not-begun"})
    assert [one.detail for one in carrying.ends] == list(actions.failing.values())


@pytest.mark.parametrize(
    ("step", "fate", "left"),
    [("DS 0", ExpireFate.NOT_BEGUN, CF), ("objects 0", ExpireFate.LEFT, DS),
     ("DF 0", ExpireFate.LEFT, DS)],
)  # fmt: skip
def test_f108_failed_step_leaves_others(step: str, fate: ExpireFate, left: SegmentState) -> None:
    """A failed step is reported, other steps go on, and the next run continues there."""
    actions = world(failing={step: "store-unavailable: away"})
    carrying = carried(actions)
    told = fates(carrying.receipts)
    assert told == {0: fate.value, 100: "deleted", 200: "deleted", 300: "deleted"}
    (receipt,) = [one for one in carrying.receipts if one.segment.start_offset == 0]
    assert receipt.detail == "store-unavailable: away"
    assert {one.start_offset: one.state for one in actions.segments.values()} == {0: left, 400: CF}
    actions.failing = {}
    carried(actions)
    assert [one.start_offset for one in actions.segments.values()] == [400]


def test_f120_segment_when_it_changes_before_or_after_it_is_said_then_it_is_left_as_it_is() -> None:
    """A segment that changes before or after its deletion event is left as it is."""
    actions = world(wave=16)
    one, two, three, four, _ = list(actions.segments)
    finished = started(1, 100, 199, size_bytes=10, state=CF, max_timestamp_ms=1)
    actions.changes = {
        one: [None],
        two: [finished],
        three: ["not-ready: behind"],
        four: [actions.segments[four], started(3, 300, 399, state=CF)],
    }
    carrying = carried(actions)
    assert fates(carrying.receipts) == {
        0: "changed", 100: "changed", 200: "not-begun", 300: "changed",
    }  # fmt: skip
    assert actions.done == ["DS 300"]
    details = {one.segment.start_offset: one.detail for one in carrying.receipts}
    assert details[0] == "another process has deleted it meanwhile"
    assert details[100] == details[300] == "it is COPY_SEGMENT_FINISHED meanwhile"


def test_event_when_its_verdict_was_not_heard_then_what_is_seen_decides() -> None:
    """After an event of unknown verdict the state decides."""
    actions = world(failing={"DS 0": "append-uncertain: lost", "DF 0": "append-uncertain: lost"})
    first = actions.segments[next(iter(actions.segments))]
    being_deleted = started(0, 0, 99, size_bytes=10, state=DS, max_timestamp_ms=0)
    actions.changes = {first.id: [first, being_deleted, being_deleted, None]}
    actions.segments[first.id] = being_deleted
    carrying = carried(actions, plan_of(actions, found=[first]))
    assert fates(carrying.receipts) == {0: "deleted"}
    assert first.id not in actions.objects


def test_run_when_it_is_told_to_stop_then_ends_between_waves() -> None:
    """A stopped run finishes the current wave and reports the rest."""
    actions = world()
    heard: list[str] = []

    def why_stop() -> str:
        heard.append("asked")
        return "SIGTERM" if len(heard) > 1 else ""

    carrying = carried(actions, why_stop=why_stop)
    assert fates(carrying.receipts) == {
        0: "deleted", 100: "deleted", 200: "not-begun", 300: "not-begun",
    }  # fmt: skip
    assert carrying.stopped == "SIGTERM"


@pytest.mark.parametrize("most", [1, 3, 4, 50])
def test_run_when_it_may_delete_so_many_then_deletes_the_first_of_them(most: int) -> None:
    """A limited run deletes the first segments and leaves and reports the rest."""
    carrying = carried(world(), max_delete=most)
    told = fates(carrying.receipts)
    assert [told[start] == "deleted" for start in (0, 100, 200, 300)] == [
        number < most for number in range(4)
    ]
    assert not carrying.stopped


def test_deletion_of_a_partition_when_its_topic_is_refused_by_now_then_is_left_alone() -> None:
    """A partition deletion is left alone when brokers tier its topic by now."""
    actions = world(MARKED)
    carrying = carried(actions, plan_of(actions, TopicOwner.LIVE))
    assert (actions.done, carrying.receipts, carrying.ends) == ([], [], [])


def test_f104_events_when_they_are_published_then_repeat_the_custom_metadata() -> None:
    """Events repeat the custom metadata: without it the plugin loses its objects."""
    metadata = HeldMetadata()
    tier: Any = SimpleNamespace(
        writer=lambda: metadata, now_ms=lambda: NOW_MS, request=SimpleNamespace(prefix="")
    )
    claims: Any = None
    actions = TierExpireActions(tier, LocalSettings(Path("nowhere")), ExpireOptions(), claims)
    one = started("a", state=CF, custom_metadata=b"\1\2")
    assert actions.move([one], DS) == [""]
    assert metadata.published == [SegmentUpdate(one.id, -1, NOW_MS, b"\1\2", DS)]
    metadata.error = LogUnavailable("away")
    assert actions.move([one], DS) == ["log-unavailable: away"]
    assert actions.look(one.id) == "log-unavailable: away"
    assert actions.move_partition(tp(), STARTED) == "log-unavailable: away"
    assert actions.move([], DS) == []
    assert actions.remove([]) == []
