"""Explanations of look-ups: answers of engine and cache model, and the rule between them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rlmm.inspection.explain import explain
from rlmm.inspection.explain_facts import ExplainFacts
from rlmm.inspection.lookup_trace import LookupMiss, LookupRule, look_up
from rlmm.metadata.ids import INT64_MIN, SegmentId
from tests.support.builders import finished, started
from tests.support.engine.chosen import ChosenShard
from tests.support.records.histories import (
    EPOCHS,
    HISTORIES,
    OFFSETS,
    PARTITIONS,
    UUIDS,
    DenseHistory,
)
from tests.support.records.kafka_cache_model import LiteralStates

if TYPE_CHECKING:
    from rlmm.metadata.events import Event


FIRST = SegmentId(PARTITIONS[0], UUIDS[0])


def check(events: list[Event]) -> None:
    shard, states = ChosenShard(0), LiteralStates()
    for event in events:
        shard.apply_event(event)
        states.apply(event)
    for partition in PARTITIONS:
        cache = states.cache(partition)
        for epoch in (*EPOCHS, 77):
            for offset in OFFSETS:
                found = look_up(shard, partition, epoch, offset)
                stock, covered = cache.get_from_slots(epoch, offset), cache.get(epoch, offset)
                assert found.found == shard.segment_for(partition, epoch, offset)
                assert (found.stock and str(found.stock.id.uuid)) == stock
                rule = (
                    LookupRule.SLOT
                    if stock
                    else LookupRule.COVER_LOOKUP
                    if covered
                    else LookupRule.NONE
                )
                assert found.rule is rule
                assert (found.why is LookupMiss.FOUND) == (stock is not None)
                assert (found.why is LookupMiss.EPOCH_UNKNOWN) == (epoch not in cache.epochs)
        for offset in range(0, 21, 5):
            found_by = explain(shard, partition, offset, None, ExplainFacts(0))
            answers = {cache.get(epoch, offset) for epoch in EPOCHS} - {None}
            if found_by.found is not None:
                assert str(found_by.found.id.uuid) in answers
            assert {one.found and str(one.found.id.uuid) for one in found_by.others} <= answers
            assert found_by.found is not None or found_by.findings


def test_look_up_where_an_epoch_begins_at_the_least_offset_is_explained_as_java_reckons() -> None:
    """An epoch that begins at the least offset makes the one before it endless, as in Java."""
    check([started(FIRST, 0, 0, {0: 0, 1: INT64_MIN}), finished(FIRST)])


@given(HISTORIES)
def test_look_up_is_explained_by_the_rule_that_answers(events: list[Event]) -> None:
    """The explanation names the rule that answers a look-up, for any history, epoch and offset."""
    check(events)


@pytest.mark.parametrize("seed", range(8))
def test_look_up_in_a_dense_history_is_explained_by_the_rule_that_answers(seed: int) -> None:
    """The explanation names the rule that answers where segments displace each other."""
    history = DenseHistory(random.Random(seed))
    check([history.event() for _ in range(60)])
