"""Engines for one purpose: one deadline for all, and a result for each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.process.snapshot_once import write_snapshots_once
from rlmm.snapshot.snapshot_writer import FlushResult
from tests.support.builders import segment_id, started, tp
from tests.support.engines import ROOM, no_memory

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.engine.service import SnapshotOutcome

PLACES = 3
WAIT_S = 10.0


class Unexpected(Exception):
    pass


async def opened() -> LogOpener:
    log = MemoryLog(MemoryTopic(PLACES))
    for number in range(30):
        partition = tp("t", number)
        place = metadata_partition_for(partition.topic_id, number, PLACES)
        value = encode_any(started(segment_id("a", partition)))
        await log.append(place, value, timeout_s=1.0)
    return LogOpener(log)


async def broken() -> LogOpener:
    raise Unexpected("nobody thought of it")


async def never() -> LogOpener:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture(autouse=True)
def _no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time would leap over threads: report all as written at once."""

    async def flush(_: Engine, partitions: Collection[int] | None = None) -> FlushResult:
        assert partitions is not None
        return FlushResult(tuple(partitions))

    monkeypatch.setattr(Engine, "flush", flush)
    monkeypatch.setattr("rlmm.engine.service.PROCESS_PARTS", EngineParts(measure_memory=no_memory))


def plan(name: str) -> EnginePlan:
    opening = {"broken": broken, "n": never}.get(name if name == "broken" else name[0], opened)
    return EnginePlan(
        name, opening, Assignment.everything(), EngineSettings(memory=ROOM), None, is_observer=True
    )


async def written_once(*names: str) -> tuple[dict[str, SnapshotOutcome], float]:
    begin_s = asyncio.get_running_loop().time()
    done = await write_snapshots_once([plan(name) for name in names], WAIT_S)
    return done, asyncio.get_running_loop().time() - begin_s


async def test_once_when_one_fails_then_the_others_are_written_and_told_of() -> None:
    """A failure of one engine, of any type, leaves the results of the others."""
    done, took_s = await written_once("first", "broken", "never", "last")
    obstacles = {
        name: None if (error := asked.flushed.obstacle) is None else (error.code, str(error))
        for name, asked in done.items()
    }
    assert obstacles == {
        "first": None,
        "broken": ("part-failed", "broken has failed: Unexpected: nobody thought of it"),
        "never": ("not-ready", "the log was not opened in 10 s"),
        "last": None,
    }
    assert len(done["first"].flushed.written) == len(done["last"].flushed.written) == PLACES
    assert took_s == pytest.approx(WAIT_S, abs=2)


async def test_once_when_several_are_not_opened_then_one_deadline_is_for_all() -> None:
    """One deadline bounds the opening of all clusters."""
    names = ("never", "nor", "now")
    done, took_s = await written_once(*names)
    assert tuple(done) == names
    assert took_s == pytest.approx(WAIT_S, abs=2)


async def test_once_when_writing_is_too_long_then_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline bounds the writing, too, and the result names the snapshots that are on disk."""
    flush = Engine.flush

    async def slow(engine: Engine, partitions: Collection[int] | None = None) -> FlushResult:
        assert partitions is not None
        if 0 not in partitions:
            await asyncio.sleep(1_000)
        return await flush(engine, partitions)

    monkeypatch.setattr(Engine, "flush", slow)
    done, took_s = await written_once("one")
    flushed = done["one"].flushed
    assert flushed.written == (0,)
    assert {place: str(error) for place, error in flushed.failed.items()} == {
        1: "not written in 10 s",
        2: "not written in 10 s",
    }
    assert took_s == pytest.approx(WAIT_S, abs=2)
