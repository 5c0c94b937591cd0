"""The service before its cluster exists, at its start, and during a stop."""

from __future__ import annotations

import asyncio
import re
import signal
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, open_kafka
from rlmm.errors import NotReady
from rlmm.kafka_client.settings import KafkaSettings
from rlmm.metadata.assignment import Assignment
from rlmm.process.run import serve
from rlmm.pump.settings import PumpSettings
from tests.kafka.node import ReservedPort
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.builders import started, tp
from tests.support.engines import ROOM, until
from tests.support.server.serve_process import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from rlmm.engine.service import Service
    from tests.kafka.fixtures import FreshKafka

BRIEFLY = ("--pump-bounds-timeout-ms", "200")
PATIENCE_S = 240.0
PATIENTLY = (
    *("--pump-bounds-timeout-ms", str(int(PATIENCE_S * 1_000))),
    *("--kafka-socket-connection-setup-timeout-ms", str(int(PATIENCE_S * 1_000))),
    *("--shutdown-timeout-ms", str(int(PATIENCE_S * 1_000))),
)
"""Seconds for an end that waits for no broker."""
NOT_REACHED = "the log is not reached"
DEADLINE_S = 30.0


@pytest.fixture
def nobody() -> Iterator[str]:
    port = ReservedPort()
    yield f"127.0.0.1:{port.number}"
    port.release()


@asynccontextmanager
async def silent_broker() -> AsyncIterator[tuple[str, asyncio.Event]]:
    came = asyncio.Event()
    over = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        came.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", came
        over.set()


def pauses(messages: list[str]) -> list[tuple[int, float]]:
    form = re.compile(rf"{NOT_REACHED} \(attempt (\d+)\).*; next attempt in ([\d.]+) s")
    found = [form.fullmatch(message) for message in messages]
    return [(int(one[1]), float(one[2])) for one in found if one is not None]


async def test_f95_serve_when_no_broker_listens_then_retries(tmp_path: Path, nobody: str) -> None:
    """Failure scenario F95: each attempt is logged, pauses double, and SIGTERM ends it in order."""
    async with serving(tmp_path, "--bootstrap-server", nobody, *BRIEFLY) as served:
        for _ in range(3):
            await served.until(NOT_REACHED)
        assert await served.end(signal.SIGTERM, DEADLINE_S) == 0
    assert pauses(served.messages)[:3] == [(1, 0.25), (2, 0.5), (3, 1.0)]
    assert served.messages[-1] == "stopped"


async def test_f95_serve_when_stopped_while_connecting_then_ends_at_once(tmp_path: Path) -> None:
    """Failure scenario F95: a broker that takes connections and says nothing delays no stop."""
    loop = asyncio.get_running_loop()
    async with (
        silent_broker() as (address, came),
        serving(tmp_path, "--bootstrap-server", address, *PATIENTLY) as served,
    ):
        async with asyncio.timeout(DEADLINE_S):
            await came.wait()
        asked_s = loop.time()
        assert await served.end(signal.SIGTERM, PATIENCE_S) == 0
        # Well below the time that an answer is waited for.
        assert loop.time() - asked_s < PATIENCE_S / 4
    assert not pauses(served.messages)


async def test_f95_service_when_no_broker_listens_then_counted(nobody: str) -> None:
    """Failure scenarios F93, F95: not connected, attempts counted, every call refused by reason."""
    service: asyncio.Future[Service] = asyncio.get_running_loop().create_future()
    settings = EngineSettings(
        pump=PumpSettings(bounds_timeout_ms=20, retry_first_ms=1, retry_last_ms=4), memory=ROOM
    )
    plan = EnginePlan(
        "kafka",
        partial(open_kafka, KafkaSettings(bootstrap_servers=(nobody,), node_id="test")),
        Assignment.everything(),
        settings,
        None,
        is_observer=False,
    )
    task = asyncio.create_task(serve([plan], DEADLINE_S, on_started=service.set_result))
    engine = (await service).engines["kafka"]
    await until(lambda: engine.statistics().pump.connect_attempts > 5, DEADLINE_S)
    statistics = engine.statistics()
    assert not statistics.pump.is_connected
    assert statistics.identity is None
    assert nobody in statistics.pump.last_trouble
    with pytest.raises(NotReady) as caught:
        engine.reads.segments(tp())
    assert caught.value.reason == "connecting"
    with pytest.raises(NotReady):
        await engine.write(started("a"), timeout_s=0.01)
    signal.raise_signal(signal.SIGTERM)
    await task


async def test_f95_serve_when_kafka_comes_then_on(tmp_path: Path, fresh_kafka: FreshKafka) -> None:
    """Failure scenario F95: the engine reads everything and answers as soon as the broker is up."""
    kafka = await asyncio.to_thread(fresh_kafka.tiered)
    await asyncio.to_thread(kafka.node.stop)
    async with serving(tmp_path, "--bootstrap-server", kafka.bootstrap, *BRIEFLY) as served:
        await served.until(NOT_REACHED)
        coming = asyncio.create_task(asyncio.to_thread(kafka.node.start))
        await served.until_open(METADATA_PARTITIONS)
        await coming
        assert await served.end(signal.SIGTERM) == 0
    assert any("mode observer" in message for message in served.messages)
