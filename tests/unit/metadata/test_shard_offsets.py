"""Batches whose offsets cannot be true, batches that are cut off, and damage that is passed."""

from __future__ import annotations

import struct
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import pytest

from bench.history import single, written_events
from rlmm.metadata import opened
from rlmm.metadata.image_reading import read_partition_image
from rlmm.metadata.python_shard import STEPS_MAX, PythonShard
from rlmm.records.control import ControlType
from rlmm.records.damage import DamageReason
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import Producer, build_batch, build_control_batch
from tests.support.builders import finished, started, tp
from tests.support.engine.shards import batch_of, new_shard, record_set

if TYPE_CHECKING:
    from rlmm.metadata.report import Report

PRODUCER = Producer(1, 0, is_transactional=True)
FIRST = batch_of([started("a"), finished("a")])
SECOND = batch_of([started("b", 100, 199), finished("b")], 2)
THIRD = batch_of([started("c", 200, 299), finished("c")], 4)


def moved(batch: bytes, base_offset: int) -> bytes:
    return struct.pack(">q", base_offset) + batch[8:]


FAR = moved(SECOND, 2 ^ 1 << 40)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(record_set(FIRST, FAR, THIRD), id="far ahead, and more behind it"),
        pytest.param(record_set(FIRST, FAR, THIRD, next_offset=6), id="in a set of a known end"),
        pytest.param(record_set(FIRST, moved(SECOND, 3), THIRD), id="one ahead, over the next"),
        pytest.param(record_set(FIRST, moved(SECOND, 0), THIRD), id="below the one before it"),
        pytest.param(record_set(FIRST, FAR, next_offset=4), id="the last one, of a known end"),
    ],
)
def test_batch_with_a_flipped_base_offset_then_is_not_passed(given: RecordSet) -> None:
    """Neighbours show a wrong base offset, which no checksum covers; nothing is skipped."""
    report = new_shard().apply(given)
    assert report.damage is not None
    assert report.damage.reason is DamageReason.BAD_OFFSETS
    assert (report.next_offset, report.complete) == (2, False)
    assert report.tally.missing == 0


def test_hole_between_batches_then_is_no_damage() -> None:
    """Compaction leaves holes: a batch that begins late and ends before the next is sound."""
    shard = new_shard()
    report = shard.apply(record_set(FIRST, moved(SECOND, 10), moved(THIRD, 20), next_offset=30))
    assert report.complete
    assert (report.tally.applied, report.tally.missing, report.next_offset) == (6, 24, 30)


@pytest.mark.parametrize("size", [1, 40, len(SECOND) - 1])
def test_batch_that_is_cut_off_where_the_end_is_known_then_is_not_skipped(size: int) -> None:
    """The position stays before a cut-off batch, even if the known log end lies behind it."""
    shard = new_shard()
    report = shard.apply(record_set(FIRST, SECOND[:size], next_offset=4))
    assert report.complete
    assert (report.next_offset, report.tally.missing) == (2, 0)
    assert shard.apply(record_set(SECOND, next_offset=4)).next_offset == 4


def test_damaged_batches_side_by_side_then_are_passed_together() -> None:
    """The shard passes neighbouring damaged batches and goes on at the next sound one."""
    shard = new_shard()
    broken = SECOND[:-1] + bytes((SECOND[-1] ^ 1,))
    given = record_set(FIRST, broken, moved(broken, 4), moved(THIRD, 6))
    report = shard.apply(given)
    assert report.damage is not None
    aside = shard.set_aside(report.damage, given.data, 6)
    assert (aside.tally.undecodable, aside.next_offset) == (4, 6)
    rest = shard.apply(given)
    assert rest.complete
    assert (rest.tally.applied, rest.next_offset) == (2, 8)


@pytest.mark.parametrize("wrong", [3, 4])
def test_batch_that_was_set_aside_then_is_not_read_again(wrong: int) -> None:
    """A batch that was set aside is not read again, even if its offsets look right then."""
    shard = new_shard()
    given = record_set(FIRST, moved(SECOND, wrong), THIRD, next_offset=6)
    report = shard.apply(given)
    assert report.damage is not None
    shard.set_aside(report.damage, given.data, 4)
    rest = shard.apply(given)
    assert (rest.complete, rest.tally.applied, rest.entries) == (True, 2, ())
    assert [one.start_offset for one in shard.segments(tp())] == [0, 200]


def test_damaged_batch_at_the_end_when_set_aside_then_is_behind() -> None:
    """The same record set given once more has nothing left, though nothing follows the damage."""
    shard = new_shard()
    given = record_set(FIRST, SECOND[:-1] + bytes((SECOND[-1] ^ 1,)))
    report = shard.apply(given)
    assert report.damage is not None
    shard.set_aside(report.damage, given.data, 4)
    assert shard.apply(given).complete
    assert shard.position == 4


@pytest.mark.parametrize("kind", ["empty", "control"])
def test_max_events_where_no_batch_has_a_record_then_still_ends_the_call(kind: str) -> None:
    """Stepping over is work too: a call that is limited steps over so many batches and stops."""
    batches = [
        build_batch([], at, last_offset=at)
        if kind == "empty"
        else build_control_batch(ControlType.COMMIT, at, producer=PRODUCER, timestamp_ms=0)
        for at in range(STEPS_MAX + 5)
    ]
    shard = new_shard()
    given = record_set(*batches)
    assert not shard.apply(given, 1).complete
    assert shard.position == STEPS_MAX
    assert shard.apply(given, 1).complete
    assert shard.position == STEPS_MAX + 5
    assert new_shard().apply(given).complete


def test_image_of_one_partition_when_taken_over_then_replaces_what_was_known() -> None:
    """A user partition moves between shards with everything that is known of it."""
    whole, other = new_shard(), new_shard()
    whole.apply(record_set(FIRST, SECOND))
    other.apply(record_set(THIRD[:0], batch_of([started("x"), finished("x")])))
    image = whole.partition_image(tp())
    assert image is not None
    assert other.import_partition(image) == tp()
    assert other.partition_image(tp()) == image
    assert other.segments(tp()) == whole.segments(tp())
    assert read_partition_image(image).key in other._states


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


@pytest.mark.slow
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
