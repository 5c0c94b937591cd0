"""
A broker that runs with Kafka's own metadata manager or with ours, on the same data and storage
manager, with its answers and costs. This module compares nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlmm.errors import LogUnavailable
from rlmm.kafka_client.connections.connection import BrokerConnection, Dialer
from rlmm.kafka_client.settings import KafkaSettings, TopicSettings, address_of
from rlmm.kafka_messages.fetch import FetchPartition, FetchRequest
from rlmm.kafka_messages.offsets import LATEST_TIERED, ListOffsetsRequest
from tests.kafka.node import ONE_NODE, PATIENT, STARTED, Node
from tests.kafka.plugin import our_manager, our_storage
from tests.kafka.process import ProcessFailed
from tests.kafka.sidecar import CLEAN_STATUS, Sidecar
from tests.kafka.tiered import TieredKafka, tiering

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from rlmm.metadata.ids import Uuid
    from tests.kafka.jars import Jars

DEADLINE_S: Final = 600.0
PAUSE_S: Final = 0.02
"""Pause after a refused fetch: without it a client would measure its own load."""
JVM_FLAGS: Final = (
    "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-Xms1g", "-Xmx2g",
)  # fmt: skip
"""A broker of production: both compilers, G1, and more heap than any of this needs."""

TASK_INTERVAL: Final = "remote.log.manager.task.interval.ms"
QUICK_INTERVAL_MS: Final = 500
"""While something is prepared."""
USUAL_INTERVAL_MS: Final = 30_000
"""Kafka's default, while something is measured that is not about it."""
_USED = re.compile(r"garbage-first heap\s+total \d+K.*?used (\d+)K")
_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB$", re.MULTILINE)
_KIB: Final = 1024


class Keeper(StrEnum):
    KAFKA = "Kafka's manager"
    OURS = "rlmm"


@dataclass(frozen=True, slots=True)
class World:
    node: Node
    sidecar: Sidecar
    common: dict[str, str]
    ours: dict[str, str] = field(repr=False)

    @property
    def kafka(self) -> TieredKafka:
        return TieredKafka(self.node)

    def spawn(self, manager: Keeper, interval_ms: int) -> None:
        plugin = self.ours if manager is Keeper.OURS else {}
        self.node.properties = {
            **PATIENT, **ONE_NODE, **self.common, **plugin, TASK_INTERVAL: str(interval_ms)
        }  # fmt: skip
        self.node.spawn()

    @contextmanager
    def running(self, manager: Keeper, interval_ms: int) -> Iterator[None]:
        if manager is Keeper.OURS:
            self.sidecar.start()
        self.spawn(manager, interval_ms)
        self.node.wait_until_ready()
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        self.node.stop(DEADLINE_S)
        if self.sidecar.stop() not in {None, CLEAN_STATUS}:
            msg = f"the service did not stop in order:\n{self.sidecar.log.tail()}"
            raise ProcessFailed(msg)

    def forget_snapshots(self) -> None:
        shutil.rmtree(self.sidecar.folder / "rlmm-data", ignore_errors=True)


@contextmanager
def world(jars: Jars, folder: Path, plugins: Path) -> Iterator[World]:
    store = folder / "tier"
    common = {**tiering(store), **our_storage(plugins, store)}
    common.pop("rsm.config.dir")  # of Kafka's own storage for tests
    with ExitStack() as closing:
        node = Node(jars, folder / "node", ready=(STARTED,))
        closing.callback(node.close)
        node.flags = [*jars.archived, *JVM_FLAGS]
        sidecar = closing.enter_context(Sidecar(folder / "sidecar", node.bootstrap))
        yield World(node, sidecar, common, our_manager(plugins, sidecar.address))


# --------------------------------------------------------------------------- asked from outside


@asynccontextmanager
async def connected(bootstrap: str) -> AsyncIterator[BrokerConnection]:
    settings = KafkaSettings((bootstrap,), topic=TopicSettings(name="any"), is_observer=True)
    dialer = await Dialer.prepare(settings)
    connection = None
    async with asyncio.timeout(DEADLINE_S):
        while connection is None:
            with contextlib.suppress(LogUnavailable):
                connection = await dialer.dial(*address_of(bootstrap), "bench")
            if connection is None:
                await asyncio.sleep(PAUSE_S)
    try:
        yield connection
    finally:
        await connection.close()


async def first_read(bootstrap: str, topic_id: Uuid, partition: int = 0) -> None:
    wanted = FetchPartition(partition, 0, 1 << 20)
    request = FetchRequest(topic_id, [wanted], wait_ms=500, bytes_max=1 << 20)
    async with connected(bootstrap) as connection, asyncio.timeout(DEADLINE_S):
        while True:
            answer = await connection.call(request)
            if any(found.code == 0 and len(found.data) for found in answer.partitions):
                return
            await asyncio.sleep(PAUSE_S)


async def tiered_ends(connection: BrokerConnection, topic: str, partitions: int) -> list[int]:
    request = ListOffsetsRequest({topic: range(partitions)}, LATEST_TIERED)
    told = (await connection.call(request)).get(topic, {})
    return [told[one].offset if one in told else -1 for one in range(partitions)]


async def wait_for_tiered_ends(bootstrap: str, topic: str, ends: list[int]) -> None:
    """Wait until the broker knows the tier's end of every partition."""
    async with connected(bootstrap) as connection, asyncio.timeout(DEADLINE_S):
        while True:
            if await tiered_ends(connection, topic, len(ends)) == ends:
                return
            await asyncio.sleep(PAUSE_S)


# -------------------------------------------------------------------------------------- its cost


@dataclass(frozen=True, slots=True)
class Memory:
    heap_bytes: int
    """Resident after a full collection."""
    broker_bytes: int
    sidecar_bytes: int
    """Both as the operating system counts them; 0 where there is no service."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor seconds of all threads; 0 for the service where there is none."""

    broker_s: float
    sidecar_s: float

    def since(self, before: Spent) -> Spent:
        return Spent(self.broker_s - before.broker_s, self.sidecar_s - before.sidecar_s)


def memory_of(world: World) -> Memory:
    """Return the resident bytes of the broker and of its service."""
    least = min(_used_heap(world.node) for _ in range(3))
    sidecar = resident_bytes_of(world.sidecar.pid) if world.sidecar.is_running else 0
    return Memory(least, resident_bytes_of(world.node.pid), sidecar)


def processor_of(world: World) -> Spent:
    sidecar = processor_s_of(world.sidecar.pid) if world.sidecar.is_running else 0.0
    return Spent(processor_s_of(world.node.pid), sidecar)


def _used_heap(node: Node) -> int:
    _jcmd(node, "GC.run")
    return used_bytes(_jcmd(node, "GC.heap_info"))


def _jcmd(node: Node, command: str) -> str:
    jcmd = str(shutil.which("jcmd"))
    done = subprocess.run(  # noqa: S603  # the JDK's own program, for a process of ours
        [jcmd, str(node.pid), command], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def used_bytes(told: str) -> int:
    found = _USED.search(told)
    if found is None:
        msg = f"no figure of G1's heap in {told!r}"
        raise ValueError(msg)
    return int(found[1]) * _KIB


def resident_bytes_of(pid: int) -> int:
    found = _RESIDENT.search(Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * _KIB if found else 0


def processor_s_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
