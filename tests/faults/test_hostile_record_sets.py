"""Record sets whose few bytes stand for much work: many short turns, or a named refusal."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rlmm.base.native_core import ShardEngine
from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotPublishable
from rlmm.metadata import open_record_set
from rlmm.metadata.encoding import encode
from rlmm.metadata.engines import shard_type
from rlmm.metadata.python_shard import EPOCHS_FEW, PythonShard
from rlmm.metadata.record_layout import EPOCHS_MAX
from rlmm.metadata.report import Tally
from rlmm.pump.settings import PumpSettings
from rlmm.records import batch, records
from rlmm.records.compression import Compression
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from tests.support.builders import finished, started
from tests.support.engine.chosen import ChosenShard, needs_native
from tests.support.engine.engine_questions import TP
from tests.support.engines import ROOM, World, until_open
from tests.support.records.hostile_sets import (
    OUTCOMES,
    SHAPES,
    ZSTD,
    headers,
    packed,
    tags,
    with_epochs,
)
from tests.support.records.value_bytes import segment_value, update_value

if TYPE_CHECKING:
    from collections.abc import Callable

STEP_CPU_S_MAX = 0.3
"""Far above what a step takes, far below what the worst of these sets took in one turn: 6 s."""
READ_AT_ONCE_MAX = 500
APPLIED_AT_ONCE_MAX = 32
STEPS_MIN = {"60000 tiny records": 60_000 // APPLIED_AT_ONCE_MAX, "500000 headers": 1_000}
ANY_HISTORY = EngineSettings(memory=ROOM, pump=PumpSettings(undecodable_share_max=1))


ENGINES = [ShardEngine.PYTHON, pytest.param(ShardEngine.NATIVE, marks=needs_native)]
on_both_engines = pytest.mark.parametrize("engine", ENGINES, ids=str)


def range_of(count: int) -> dict[int, int]:
    """Return *count* leader epochs, each of one offset."""
    return {number: number for number in range(count)}


def step_by_step(data: bytes, engine: ShardEngine) -> tuple[PythonShard, int]:
    """Apply *data* with as little as possible in each call; return the shard and the calls."""
    shard, given_set, calls, is_complete = shard_type(engine)(0), RecordSet(0, data), 0, False
    while not is_complete:
        position, before_s = shard.position, time.thread_time()
        report = shard.apply(given_set, is_over=lambda: True)
        assert time.thread_time() - before_s < STEP_CPU_S_MAX, position
        assert report.damage is None
        assert shard.position - position <= APPLIED_AT_ONCE_MAX
        is_complete = report.complete
        calls += 1
    return shard, calls


@on_both_engines
@pytest.mark.parametrize("shape", SHAPES)
def test_record_set_when_it_stands_for_much_work_then_each_step_is_short(
    shape: str, engine: ShardEngine
) -> None:
    """No step takes long, and every record has its named outcome."""
    shard, calls = step_by_step(SHAPES[shape](), engine)
    statistics = shard.statistics()
    assert statistics.undecodable_by_reason == OUTCOMES.get(shape, {})
    assert statistics.tally.offsets == shard.position
    assert calls >= STEPS_MIN.get(shape, 1)


MADE: dict[str, Callable[[int], bytes]] = {
    "tags": lambda size: update_value(tags=tags(2 * size)),
    "epochs": with_epochs,
    "zeros": lambda size: bytes(100 * size),
    "started": lambda _: segment_value(),
    "finished": lambda _: update_value(),
}


@on_both_engines
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(MADE)), st.integers(1, 1_000), st.integers(1, 50)),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 1_000),
    st.sampled_from(Compression),
)
def test_record_set_when_applied_step_by_step_then_has_the_same_effect(
    engine: ShardEngine, runs: list[tuple[str, int, int]], header_count: int, codec: Compression
) -> None:
    """Steps change neither the state nor any count, and none is long."""
    values = [MADE[kind](size) for kind, size, count in runs for _ in range(count)]
    data = packed(codec, *values, headers=headers(header_count))
    shard, _ = step_by_step(data, engine)
    at_once = PythonShard(0)
    assert at_once.apply(RecordSet(0, data)).complete
    assert shard.image() == at_once.image()
    assert shard.statistics() == at_once.statistics()


def test_large_batch_when_its_records_are_used_up_then_are_those_of_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records that are freed one by one arrive in their order, with their offsets."""
    values = [encode(started(number, number, number)) for number in range(20)]
    data = build_batch(records_of(values, 0), 0)
    expected = ChosenShard(0)
    expected.apply(RecordSet(0, data))
    monkeypatch.setattr(open_record_set, "_FREED_AT_ONCE_MAX", 3)
    shard, _ = step_by_step(data, ShardEngine.PYTHON)
    assert shard.image() == expected.image()
    assert shard.statistics().tally == Tally(applied=20)


def test_events_of_a_partition_with_many_leader_epochs_when_applied_then_end_a_slice_each() -> None:
    """The Python engine applies an event that changes very many leader epochs alone."""
    count = EPOCHS_FEW + 1
    values = [encode(started(number, 0, count, range_of(count))) for number in range(3)]
    values += [encode(finished(number)) for number in range(3)]
    shard, calls = step_by_step(build_batch(records_of(values, 0), 0), ShardEngine.PYTHON)
    assert shard.statistics().tally == Tally(applied=6)
    assert calls >= len(values)


def test_segment_with_too_many_leader_epochs_when_published_then_is_refused() -> None:
    """A writer is refused what a reader would set aside."""
    most = range_of(EPOCHS_MAX)
    assert len(encode(started("s", 0, EPOCHS_MAX, most))) > 13 * EPOCHS_MAX
    with pytest.raises(NotPublishable, match="10001 leader epochs, at most 10000"):
        encode(started("s", 0, EPOCHS_MAX, {**most, EPOCHS_MAX: EPOCHS_MAX}))


@on_both_engines
@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(packed(ZSTD, update_value(tags=tags(4_194_100))), 1, id="tags"),
        pytest.param(packed(ZSTD, *[b""] * 250_000), 250_000, id="tiny-records"),
    ],
)
async def test_loop_when_an_engine_reads_such_a_set_then_others_have_turns(
    data: bytes, count: int, engine: ShardEngine
) -> None:
    """Between two turns of another task the engine works for a fraction of a second at most."""
    world = World()
    place = world.place(TP)
    async with world.engine(ANY_HISTORY, make_shard=shard_type(engine)) as running:
        await until_open(running, place)
        world.topic.store(world.topic.partitions[place], data, count)
        reached = asyncio.create_task(running.wait_reached({place: count - 1}, timeout_s=100))
        longest_s, before_s = 0.0, time.thread_time()
        while not reached.done():
            await asyncio.sleep(0)
            now_s = time.thread_time()
            longest_s, before_s = max(longest_s, now_s - before_s), now_s
        await reached
        assert longest_s < STEP_CPU_S_MAX


async def test_batch_when_a_writer_listens_then_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The verdicts of writers cost the Python engine no second reading of the batch, however many
    slices it has.
    """
    reads = 0
    read = records.compiled_values

    def counted(*arguments: object) -> object:
        nonlocal reads
        reads += 1
        return read(*arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(batch, "compiled_values", counted)
    world = World()
    place = world.place(TP)
    async with world.engine(ANY_HISTORY, make_shard=PythonShard) as engine:
        await until_open(engine, place)
        reader = engine._pump.follower(place)
        assert reader is not None
        verdicts = reader.verdicts
        append = verdicts.begin()
        values = [encode(started(number, number, number)) for number in range(1_000)]
        data = build_batch(records_of(values, 0), 0)
        world.topic.store(world.topic.partitions[place], data, len(values))
        await engine.wait_reached({place: 999}, timeout_s=60)
        assert reads == 1
        waiter = verdicts.listen(999, append, values[-1])
        verdicts.end_append(append)
        await waiter
