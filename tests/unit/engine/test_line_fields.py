"""The fields of an engine's log lines that name their origin, as JSON."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rlmm.base.log_context import bound
from rlmm.engine.engine import EngineSettings
from rlmm.metadata.assignment import Assignment
from rlmm.pump.settings import PumpSettings
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.telemetry.logs import set_up
from rlmm.telemetry.settings import LoggingSettings, LogLevel
from tests.support.builders import finished, segment_id, started
from tests.support.engines import ROOM, World, until, until_open

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = EngineSettings(memory=ROOM, snapshot=SnapshotSettings(free_bytes_min=0))


class Lines(io.StringIO):
    def of(self, logger: str, text: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.getvalue().splitlines()]
        return [line for line in found if line["logger"] == logger and text in line["message"]]

    def where(self, logger: str, text: str) -> list[tuple[Any, ...]]:
        fields = ("cluster_id", "metadata_partition", "offset")
        return [tuple(line.get(name) for name in fields) for line in self.of(logger, text)]


@contextmanager
def logging() -> Iterator[Lines]:
    lines = Lines()
    settings = LoggingSettings(level=LogLevel.DEBUG, repeats_max=1_000)
    with set_up(settings, lines):
        yield lines


def history(world: World, place: int, count: int) -> int:
    for number in range(count):
        segment = segment_id(f"s{place}-{number // 2}", world.partition_on(place))
        world.store(finished(segment) if number % 2 else started(segment))
    return count


async def test_lines_of_an_engine_when_it_reads_and_keeps_then_say_where(tmp_path: Path) -> None:
    """Follower, gate, snapshots written and snapshots read each name cluster, partition, offset."""
    world = World(2)
    history(world, 0, 4)
    with logging() as lines:
        async with world.engine(SETTINGS, snapshots=tmp_path) as engine:
            await until_open(engine, 0, 1)
            identity = engine.identity
            assert identity is not None
            cluster = identity.cluster_id
            await engine.flush()
        async with world.engine(SETTINGS, snapshots=tmp_path) as engine:
            await until_open(engine, 0, 1)
    assert sorted(lines.where("rlmm.pump.follower", "reading from")) == [
        (cluster, 0, 0), (cluster, 0, 4), (cluster, 1, 0), (cluster, 1, 0),
    ]  # fmt: skip
    assert sorted(lines.where("rlmm.gate.admission", "is answered from")) == [
        (cluster, 0, 4), (cluster, 0, 4), (cluster, 1, 0), (cluster, 1, 0),
    ]  # fmt: skip
    assert lines.where("rlmm.snapshot.snapshot_folder", "written to") == [(cluster, 0, 4)]
    assert lines.where("rlmm.snapshot.snapshot_folder", "restored at") == [(cluster, 0, 4)]
    reached = lines.where("rlmm.pump.log_connection", "metadata topic")
    assert {found[0] for found in reached} == {cluster}


async def test_lines_of_an_engine_when_the_log_fails_then_say_where() -> None:
    """The engine logs each failure once, with the partition and the position."""
    world = World(2)
    history(world, 1, 3)
    settings = EngineSettings(memory=ROOM, pump=PumpSettings(end_age_ms_max=1_000))
    with logging() as lines:
        async with world.engine(settings) as engine:
            await until_open(engine, 0, 1)
            identity = engine.identity
            assert identity is not None
            world.script.lose_brokers()
            await until(lambda: len(lines.of("rlmm.gate.admission", "no longer ready")) == 2)
    cluster = identity.cluster_id
    gates = lines.where("rlmm.gate.admission", "no longer ready")
    assert sorted(gates) == [(cluster, 0, 0), (cluster, 1, 3)]
    assert {(cluster, 0, 0), (cluster, 1, 3)} == set(
        lines.where("rlmm.pump.follower", "next attempt")
    )


async def test_lines_of_a_follower_when_another_task_begins_it_then_are_its_engines() -> None:
    """The log lines of a follower have the fields of its engine, not of the caller."""
    world = World(2)
    history(world, 0, 2)
    with logging() as lines:
        async with world.engine(SETTINGS, assignment=Assignment.nothing()) as engine:
            await until(lambda: engine.identity is not None)
            identity = engine.identity
            assert identity is not None
            with bound(request="r1", metadata_partition=17):
                engine.reconcile(Assignment.everything())
            await until_open(engine, 0, 1)
    (line,) = (
        line
        for line in lines.of("rlmm.pump.follower", "reading from")
        if line["metadata_partition"] == 0
    )
    assert (line["cluster_id"], line["offset"]) == (identity.cluster_id, 0)
    assert "request" not in line
