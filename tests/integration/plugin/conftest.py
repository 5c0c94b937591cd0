"""Fixtures of the plugin tests: the plugins, a service beside a broker, its socket."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.kafka.plugin import built, our_bucket, our_manager
from tests.kafka.plugin_kafka import PluginKafka, plugin_kafka
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.server.serve_process import serving
from tests.support.stores.s3_servers import BUCKET, moto_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from tests.kafka.fixtures import StockPeers
    from tests.kafka.jars import Jars
    from tests.kafka.stock_manager import StockPeer
    from tests.support.server.serve_process import Serving
    from tests.support.stores.s3_servers import Server


class Beside(Protocol):
    def __call__(self, bootstrap: str, /) -> AbstractAsyncContextManager[Serving]: ...


class NewPeer(Protocol):
    def __call__(
        self,
        bootstrap: str,
        cluster_id: str,
        address: str,
        broker_id: int = ...,
        more: Mapping[str, str] = ...,
    ) -> StockPeer: ...


@pytest.fixture(scope="session")
def plugins(kafka_jars: Jars) -> Path:
    del kafka_jars  # who cannot run a broker cannot build for one either, and is told how
    return built()


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Return a socket path below 108 characters, wherever pytest keeps its files."""
    folder = Path(tempfile.mkdtemp(prefix="rlmm-"))
    yield folder / "s"
    shutil.rmtree(folder)


@pytest.fixture
def sidecar(tmp_path: Path, socket_path: Path) -> Beside:
    @contextlib.asynccontextmanager
    async def beside(bootstrap: str) -> AsyncIterator[Serving]:
        arguments = [
            "--bootstrap-server", bootstrap, "--mode", "serve", "--assignment", "broker",
            "--sidecar-unix-path", str(socket_path), "--kafka-topic-is-created", "true",
            "--kafka-topic-num-partitions", str(METADATA_PARTITIONS),
            "--kafka-topic-replication-factor", "1", "--kafka-topic-min-isr", "1",
        ]  # fmt: skip
        async with serving(tmp_path, *arguments) as served:
            yield served
            await served.end(signal.SIGKILL)

    return beside


class NewKafka(Protocol):
    """Starts a broker with our plugins for one test, with the options of `plugin_kafka`."""

    def __call__(self, **options: Any) -> PluginKafka: ...


@pytest.fixture
def new_kafka(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> Iterator[NewKafka]:
    with contextlib.ExitStack() as closing:

        def begin(**options: Any) -> PluginKafka:
            kafka = plugin_kafka(kafka_jars, tmp_path / "ours", plugins, **options)
            return closing.enter_context(kafka)

        yield begin


@pytest.fixture
def our_kafka(new_kafka: NewKafka) -> PluginKafka:
    return new_kafka()


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Server]:
    with moto_server(tmp_path) as server:
        yield server


@pytest.fixture
def our_kafka_with_bucket(
    s3: Server, new_kafka: NewKafka, plugins: Path
) -> tuple[PluginKafka, str]:
    return new_kafka(storage=our_bucket(plugins, s3.endpoint, BUCKET)), s3.endpoint


@pytest.fixture
def new_peer(plugins: Path, stock_peer: StockPeers) -> NewPeer:
    """Return a starter of Kafka's manager process with our manager in it, as broker *broker_id*."""

    def begin(
        bootstrap: str,
        cluster_id: str,
        address: str,
        broker_id: int = 5,
        more: Mapping[str, str] = {},
    ) -> StockPeer:
        settings = our_manager(plugins, address)
        configuration = {
            "manager.class.name": settings["remote.log.metadata.manager.class.name"],
            "manager.class.path": settings["remote.log.metadata.manager.class.path"],
            "cluster.id": cluster_id,
            "sidecar.address": address,
            **more,
        }
        return stock_peer(bootstrap, broker_id=broker_id, settings=configuration)

    return begin
