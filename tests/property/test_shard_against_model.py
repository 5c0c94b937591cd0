"""The engine against the literal model of Kafka's cache with every named rule on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from rlmm.errors import NotReady, UnknownPartition
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.outcomes import Level, outcome_of
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata
from rlmm.metadata.verdicts import APPLIED
from rlmm.metadata.view import PartitionViews
from rlmm_conformance.model import CacheModel, ModelFailure, StoreModel
from rlmm_conformance.rules import ConformanceRule
from rlmm_conformance.steps import SegmentFields, UpdateFields
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import apply, batch_of, new_shard, record_set
from tests.support.records.histories import (
    EPOCHS,
    EVENTS,
    OFFSETS,
    PARTITIONS,
    UUIDS,
    DenseHistory,
    odd_form,
)

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.verdicts import Verdict
    from rlmm.records.record_set import RecordSet

FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED
LABELS = {uuid: str(uuid) for uuid in UUIDS}
NOTHING = CacheModel()


def label_of(segment: SegmentMetadata | None) -> str | None:
    return None if segment is None else LABELS[segment.id.uuid]


class SideBySide:
    def __init__(self) -> None:
        self.shard = new_shard()
        self.views = PartitionViews(self.shard)
        self.model = StoreModel(frozenset(ConformanceRule))
        self.sets: list[RecordSet] = []
        self.touched: set[TopicIdPartition] = set()
        self.images: dict[TopicIdPartition, bytes | None] = {}
        self.watermarks: dict[tuple[TopicIdPartition, int], int] = {}

    # ------------------------------------------------------------------------------ events

    def into_model(self, event: Event) -> str:
        if isinstance(event, PartitionDelete):
            if event.state is FINISHED:
                for epoch in EPOCHS:
                    self.watermarks.pop((event.partition, epoch), None)
            self.touched.add(event.partition)
            return self.model.partition_delete(str(event.partition), event.state)
        assert isinstance(event, SegmentMetadata | SegmentUpdate)
        tp, label = str(event.id.partition), LABELS[event.id.uuid]
        self.touched.add(event.id.partition)
        if isinstance(event, SegmentMetadata):
            outcome = self.model.add(
                tp,
                SegmentFields(
                    label,
                    event.start_offset,
                    event.last_offset,
                    event.epochs,
                    event.state,
                    event.size_bytes,
                    event.broker_id,
                    event.event_timestamp_ms,
                    event.max_timestamp_ms,
                    event.custom_metadata,
                    event.txn_index_empty,
                ),
            )
        else:
            outcome = self.model.update(
                tp,
                UpdateFields(
                    label,
                    event.state,
                    event.broker_id,
                    event.event_timestamp_ms,
                    event.custom_metadata,
                ),
            )
        return outcome.kind if isinstance(outcome, ModelFailure) else outcome

    def agree(self, event: Event, verdict: Verdict) -> None:
        ours = outcome_of(verdict, Level.STORE, initialized=True)
        assert self.into_model(event) == ours, (event, verdict)

    def one_event(self, event: Event) -> None:
        self.agree(event, self.views.apply_event(event))

    def one_record(self, event: Event, skipped: int) -> None:
        given = record_set(batch_of([event], self.shard.position + skipped))
        self.take([event], given, None)

    def one_batch(self, events: list[tuple[Event, bool]], limit: int | None) -> None:
        values = [odd_form(event) if odd else event for event, odd in events]
        given = record_set(batch_of(values, self.shard.position))
        self.take([event for event, _ in events], given, limit)

    def take(self, events: list[Event], given: RecordSet, limit: int | None) -> None:
        first = given.data and int.from_bytes(given.data[:8])
        verdicts: dict[int, Verdict] = {}
        complete = False
        while not complete:
            before = self.shard.position
            report = self.views.apply(given, limit)
            assert report.tally.offsets == self.shard.position - before
            verdicts |= {entry.offset: entry.verdict for entry in report.entries}
            complete = report.complete
        for offset, event in enumerate(events, int(first)):
            self.agree(event, verdicts.get(offset, APPLIED))
        self.sets.append(given)

    def redelivery(self, number: int) -> None:
        if self.sets:
            image = self.shard.image()
            report = apply(self.shard, self.sets[number % len(self.sets)])
            assert (report.complete, report.entries) == (True, ())
            assert self.shard.image() == image

    def restore(self) -> None:
        ready = {partition: self.views.is_ready(partition) for partition in PARTITIONS}
        loaded = {partition for partition in PARTITIONS if self.views.is_loaded(partition)}
        self.shard = ChosenShard.from_image(self.shard.image())
        self.views = PartitionViews(self.shard)
        for partition in loaded:
            self.views.load(partition)
            if ready[partition]:
                self.views.mark_initialized(partition)

    # ------------------------------------------------------------------------------- views

    def view(self, partition: TopicIdPartition, call: str) -> None:
        tp = str(partition)
        if call == "load":
            self.views.load(partition)
            self.model.load(tp)
        elif call == "clear":
            self.views.clear(partition)
            self.model.clear(tp)
        else:
            failed = isinstance(self.model.mark_initialized(tp), ModelFailure)
            try:
                self.views.mark_initialized(partition)
            except UnknownPartition:
                assert failed
            else:
                assert not failed

    # --------------------------------------------------------------------------- agreement

    def gate_agrees(self) -> None:
        for partition in PARTITIONS:
            found = self.model.queried(str(partition))
            try:
                self.views.highest_offset(partition, 0)
            except UnknownPartition:
                assert isinstance(found, ModelFailure)
                assert found.kind == "not_found"
            except NotReady:
                assert isinstance(found, ModelFailure)
                assert found.kind == "not_ready"
            else:
                assert isinstance(found, CacheModel)

    def answers_agree(self) -> None:
        assert self.shard.validate() == []
        for partition in PARTITIONS:
            image = self.shard.partition_image(partition)
            if partition in self.touched:
                model = self.model.caches.get(str(partition), NOTHING)
                self.segments_agree(partition, model)
                for epoch in EPOCHS:
                    self.epoch_agrees(partition, model, epoch)
            else:
                assert image == self.images.get(partition)
            self.images[partition] = image
        self.touched.clear()

    def segments_agree(self, partition: TopicIdPartition, model: CacheModel) -> None:
        listed = self.shard.segments(partition)
        assert sorted(map(str, map(label_of, listed))) == sorted(model.list_all())
        order = [(segment.start_offset, segment.id.uuid) for segment in listed]
        assert order == sorted(order)
        for segment in listed:
            assert self.shard.segment(segment.id) == segment
            fields = model.segment(str(label_of(segment)))
            assert fields is not None
            for name in SegmentFields.__dataclass_fields__:
                if name != "id":
                    assert getattr(segment, name) == getattr(fields, name), name
        absent = {*UUIDS} - {segment.id.uuid for segment in listed}
        assert all(self.shard.segment(SegmentId(partition, uuid)) is None for uuid in absent)
        assert self.shard.size(partition) == sum(segment.size_bytes for segment in listed)
        delete = self.shard.partition_delete(partition)
        state = None if delete is None or delete.state is FINISHED else delete.state
        assert state == self.model.partition_state(str(partition))

    def epoch_agrees(self, partition: TopicIdPartition, model: CacheModel, epoch: int) -> None:
        groups = model.list_epoch(epoch)
        assert isinstance(groups, list)
        in_epoch = iter(map(label_of, self.shard.segments_of_epoch(partition, epoch)))
        for group in groups:
            assert {next(in_epoch) for _ in group} == set(group)
        assert next(in_epoch, None) is None
        assert self.shard.size_of_epoch(partition, epoch) == model.size(epoch)
        highest = self.shard.highest_offset(partition, epoch)
        assert highest == model.highest(epoch)
        before = self.watermarks.get((partition, epoch))
        assert before is None or (highest is not None and highest >= before)
        if highest is not None:
            self.watermarks[partition, epoch] = highest
        state, ours = model.epoch_state(epoch), self.shard.epoch_view(partition, epoch)
        assert (state is None) == (ours is None)
        if state is not None and ours is not None:
            assert {at: LABELS[uuid] for at, uuid in ours.slots.items()} == state.referenced
            assert list(ours.slots) == sorted(ours.slots)
            assert {LABELS[uuid] for uuid in ours.unreferenced} == set(state.unreferenced)
            assert ours.highest == state.highest
        for offset in OFFSETS:
            found = label_of(self.shard.segment_for(partition, epoch, offset))
            assert found == model.get(epoch, offset), (epoch, offset)
            found = label_of(self.shard.next_segment_with_txn_index(partition, epoch, offset))
            assert found == model.next_txn(epoch, offset), (epoch, offset)


class ShardAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.sides = SideBySide()
        self.history = DenseHistory(random.Random(0))

    @rule(seed=st.integers(0, 2**16), count=st.integers(1, 12))
    def burst(self, seed: int, count: int) -> None:
        self.history.rng.seed(seed)
        for _ in range(count):
            self.sides.one_event(self.history.event())

    @rule(event=EVENTS)
    def one_event(self, event: Event) -> None:
        self.sides.one_event(event)

    @rule(event=EVENTS, skipped=st.integers(0, 2))
    def one_record(self, event: Event, skipped: int) -> None:
        self.sides.one_record(event, skipped)

    @rule(
        events=st.lists(st.tuples(EVENTS, st.booleans()), min_size=2, max_size=8),
        limit=st.none() | st.integers(1, 4),
    )
    def one_batch(self, events: list[tuple[Event, bool]], limit: int | None) -> None:
        self.sides.one_batch(events, limit)

    @rule(number=st.integers(0, 50))
    def redelivery(self, number: int) -> None:
        self.sides.redelivery(number)

    @rule()
    def restore(self) -> None:
        self.sides.restore()

    @rule(partition=st.sampled_from(PARTITIONS), call=st.sampled_from(("load", "clear", "mark")))
    def view(self, partition: TopicIdPartition, call: str) -> None:
        self.sides.view(partition, call)

    @invariant()
    def sides_agree(self) -> None:
        self.sides.gate_agrees()
        self.sides.answers_agree()


def test_shard_under_any_history_then_answers_as_the_model() -> None:
    """A shard gives the model's queries, verdicts and structure after every step."""
    run_state_machine_as_test(ShardAgainstModel)


@pytest.mark.parametrize("seed", range(12))
def test_shard_under_a_dense_history_then_answers_as_the_model(seed: int) -> None:
    """A shard gives the model's answers where few segments displace each other for long."""
    rng = random.Random(seed)
    history = DenseHistory(rng)
    sides = SideBySide()
    for _ in range(120):
        kind = rng.random()
        if kind < 0.3:
            sides.one_event(history.event())
        elif kind < 0.6:
            sides.one_record(history.event(), rng.choice((0, 0, 1)))
        elif kind < 0.9:
            events = [(history.event(), rng.random() < 0.2) for _ in range(rng.randint(2, 8))]
            sides.one_batch(events, rng.choice((None, 1, 3)))
        elif kind < 0.95:
            sides.redelivery(rng.randint(0, 100))
        else:
            sides.restore()
        sides.answers_agree()
