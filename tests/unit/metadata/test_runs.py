"""Batches of one event are applied in runs, with the same results as one by one."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import pytest

from bench.history import single, written_events
from rlmm.metadata import opened
from rlmm.metadata.python_shard import PythonShard
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from rlmm.metadata.report import Report

pytestmark = pytest.mark.slow

VALUES = [event.value for event in islice(written_events(3, metadata_partitions=1), 40)]


def mutated(seed: int) -> RecordSet:
    rng = Random(seed)
    offset = 0
    data = bytearray()
    for value in VALUES[: rng.randint(2, len(VALUES))]:
        offset += rng.random() < 0.1
        data += single(value, offset)
        offset += 1
    for _ in range(rng.randrange(3)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return RecordSet(0, bytes(data), rng.choice([None, offset, offset + 1]))


def applied(record_set: RecordSet, position: int, max_events: int | None) -> list[Report]:
    shard = PythonShard(0, position)
    reports = [shard.apply(record_set, max_events)]
    while not reports[-1].complete:
        damage = reports[-1].damage
        if damage is not None:
            if damage.next_offset is None or damage.next_offset <= shard.position:
                break
            reports.append(shard.set_aside(damage, record_set.data, damage.next_offset))
        reports.append(shard.apply(record_set, max_events))
    return reports


@pytest.mark.parametrize("max_events", [None, 1, 7])
def test_runs_when_batches_are_damaged_or_missing_change_no_report(
    monkeypatch: pytest.MonkeyPatch, max_events: int | None
) -> None:
    """Every report equals that of opening each batch on its own."""
    for seed in range(300):
        record_set = mutated(seed)
        position = seed % 3
        in_runs = applied(record_set, position, max_events)
        with monkeypatch.context() as patch:
            patch.setattr(opened, "RUN_MAX", 0)
            assert in_runs == applied(record_set, position, max_events), seed
