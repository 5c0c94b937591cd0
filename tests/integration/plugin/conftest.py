"""Fixtures of the plugin tests: the plugins, a service beside a broker, its socket."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.kafka.plugin import built, our_bucket
from tests.kafka.plugin_kafka import PluginKafka, plugin_kafka
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.server.serve_process import serving
from tests.support.stores.s3_servers import BUCKET, moto_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractAsyncContextManager

    from tests.kafka.jars import Jars
    from tests.support.server.serve_process import Serving


class Beside(Protocol):
    def __call__(self, bootstrap: str, /) -> AbstractAsyncContextManager[Serving]: ...


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


@pytest.fixture
def our_kafka(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> Iterator[PluginKafka]:
    with plugin_kafka(kafka_jars, tmp_path / "ours", plugins) as kafka:
        yield kafka


@pytest.fixture
def our_kafka_with_bucket(
    kafka_jars: Jars, plugins: Path, tmp_path: Path
) -> Iterator[tuple[PluginKafka, str]]:
    with moto_server(tmp_path) as server:
        storage = our_bucket(plugins, server.endpoint, BUCKET)
        with plugin_kafka(kafka_jars, tmp_path / "ours", plugins, storage=storage) as kafka:
            yield kafka, server.endpoint
