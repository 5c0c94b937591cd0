"""Engines over a topic in memory for a `VirtualTimeLoop`, and the steps of tests with them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.script import LogScript
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.pump.memory_budget import MemorySettings, MemoryUsage
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from tests.support.builders import tp
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from rlmm.gate.state import GateState
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.log.protocol import MetadataLog
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition

START_MS = 1_700_000_000_000
ROOM = MemorySettings(alert_bytes=1 << 50, limit_bytes=1 << 50)


def no_memory() -> MemoryUsage:
    return MemoryUsage(0, 1 << 50)


class LoopClock:
    def now_ms(self) -> int:
        return START_MS + round(asyncio.get_running_loop().time() * 1_000)

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(timeout_s)


@dataclass
class World:
    partition_count: int = 3
    topic: MemoryTopic = field(init=False)
    script: LogScript = field(init=False)

    def __post_init__(self) -> None:
        self.topic = MemoryTopic(self.partition_count, clock=LoopClock())
        self.script = LogScript(self.topic)

    def place(self, partition: TopicIdPartition) -> int:
        return metadata_partition_for(partition.topic_id, partition.partition, self.partition_count)

    def partition_on(self, place: int, name: str = "orders") -> TopicIdPartition:
        return next(
            found for number in range(1_000) if self.place(found := tp(name, number)) == place
        )

    def store(self, *events: Event) -> int:
        """Let another writer store *events*, each in its own batch; return the last offset."""
        offset = -1
        for event in events:
            partition = getattr(event, "partition", None) or event.id.partition  # type: ignore[union-attr]
            offset = self.script.write(self.place(partition), encode_any(event))
        return offset

    def log(self, **options: Any) -> MemoryLog:
        return MemoryLog(self.topic, **options)

    @asynccontextmanager
    async def engine(
        self, settings: EngineSettings | None = None, **options: Any
    ) -> AsyncIterator[Engine]:
        """Run an engine in the block; an error that ended it is raised at the end."""
        log = options.pop("log", None) or MemoryLog(self.topic)
        engine = Engine(
            log,
            settings or EngineSettings(memory=ROOM),
            parts=EngineParts(
                clock=LoopClock(),
                make_shard=options.pop("make_shard", ChosenShard),
                measure_memory=options.pop("measure_memory", no_memory),
                set_apart=options.pop("set_apart", lambda: None),
                snapshot_disk=options.pop("snapshot_disk", SNAPSHOT_DISK),
            ),
            **options,
        )
        running = asyncio.create_task(engine.run(), name="engine")
        try:
            yield engine
        finally:
            running.cancel()
            await asyncio.wait([running])
        # Not reached by a failure of the block, which is the one to be told.
        if not running.cancelled():
            running.result()


@dataclass
class LibraryTopic:
    """A topic in memory, and libraries opened on it."""

    settings: EngineSettings
    memory: MemoryTopic = field(default_factory=lambda: MemoryTopic(3))

    def __post_init__(self) -> None:
        self.script = LogScript(self.memory)

    @property
    def ends(self) -> list[int]:
        return [partition.next_offset for partition in self.memory.partitions]

    @asynccontextmanager
    async def opened(
        self, snapshots: Path | None = None, *, log: MetadataLog | None = None, **options: Any
    ) -> AsyncIterator[RemoteLogMetadata]:
        options.setdefault("settings", self.settings)
        log = log or MemoryLog(self.memory)
        async with open_metadata(log, snapshots=snapshots, **options) as metadata:
            yield metadata


async def until(condition: Callable[[], bool], timeout_s: float = 600.0) -> None:
    loop = asyncio.get_running_loop()
    held: asyncio.Future[None] = loop.create_future()

    def look() -> None:
        if held.done():
            return
        if condition():
            held.set_result(None)
        else:
            loop.call_later(0.02, look)

    look()
    async with asyncio.timeout(timeout_s):
        await held


async def until_state(
    engine: Engine, state: GateState | str, *places: int, timeout_s: float = 600.0
) -> None:
    def are_there() -> bool:
        gates = engine.statistics().gates
        return all(gates.get(place) == state for place in places)

    await until(are_there, timeout_s)


async def until_open(engine: Engine, *places: int, timeout_s: float = 60.0) -> None:
    await until_state(engine, "open", *places, timeout_s=timeout_s)


@asynccontextmanager
async def opened(
    *events: Event,
    settings: EngineSettings | None = None,
    make_log: Callable[[World], MetadataLog] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[World, Engine, int]]:
    """Run an engine over a topic that holds *events*, and wait until it answers for `tp()`."""
    world = World()
    place = world.place(tp())
    world.store(*events)
    if make_log is not None:
        options["log"] = make_log(world)
    async with world.engine(settings, **options) as engine:
        await until_open(engine, place)
        yield world, engine, place
