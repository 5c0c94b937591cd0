"""
Fixtures that give a test a real Kafka, in any folder: a pytest plugin.

    kafka_jars      session   the jars; asks for what has to be installed
    kafka_broker    session   one broker that tiers, shared: a test uses topics of its own
    fresh_kafka     function  starts brokers for one test, to be killed, restarted, misconfigured
    kafka_cluster   function  three nodes that are all up, whatever the test before did to them
    secured_kafka   module    one broker with a door of every kind
    stock_peer      function  starts Kafka's own metadata manager beside a broker

A test with one of them gets the mark `kafka` and more time, and shares one worker; a test that gets
one through `request` sets the mark itself. The report of a failing test shows the ends of its
brokers' logs.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.kafka.cluster import Cluster
from tests.kafka.jars import Jars, PrerequisiteMissing
from tests.kafka.node import PATIENT, Node
from tests.kafka.prepared import prepare
from tests.kafka.secured import SecuredKafka
from tests.kafka.stock_manager import StockPeer
from tests.kafka.tiered import TieredKafka, tiered_node

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

    from tests.kafka.process import ProcessLog


WORD = "kafka"
WITHOUT_BROKER = ("tests/unit/", "tests/property/", "tests/conformance/test_", "tests/repository/")
"""Where tests do no I/O, whatever they are called."""


def is_grouped(test_id: str) -> bool:
    return WORD in test_id and not test_id.startswith(WITHOUT_BROKER)


class OneWorkerForKafka(LoadScopeScheduling):
    """Brokers that compete for a small machine look broken; only ids tell tests with one apart."""

    def _split_scope(self, nodeid: str) -> str:
        return WORD if is_grouped(nodeid) else nodeid


TIMEOUT_S = 300


@runtime_checkable
class Talkative(Protocol):
    @property
    def logs(self) -> list[ProcessLog]: ...


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use a broker before marks are read; refuse undeclared ones."""
    for item in items:
        if "kafka_jars" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)
        if item.get_closest_marker("kafka") is not None:
            if not is_grouped(item.nodeid):
                raise pytest.UsageError(
                    f"{item.nodeid} asks for a real broker: the word {WORD!r} has to stand in its"
                    f" file, name or case, and it has to stand outside {', '.join(WITHOUT_BROKER)}"
                )
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneWorkerForKafka | None:
    return OneWorkerForKafka(config, log) if config.getvalue("dist") == "load" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of the broker logs of a failed test; say once why many tests were skipped."""
    report = yield
    thrown = None if call.excinfo is None else call.excinfo.value
    if report.skipped and isinstance(getattr(thrown, "__context__", None), PrerequisiteMissing):
        # Skips of one place are told in one line; pytest would name the place of each test.
        report.longrepr = (__file__, 0, f"Skipped: {thrown}")
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            for log in value.logs if isinstance(value, Talkative) else ():
                report.sections.append((f"end of {log.path}", log.tail()))
    return report


@pytest.fixture(scope="session")
def kafka_jars() -> Jars:
    """Kafka's jars and ours; without the prerequisites the test is skipped, in CI it fails."""
    try:
        return prepare()
    except PrerequisiteMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka_broker(
    kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TieredKafka]:
    """A broker that tiers, shared by all tests: use topics of your own, and ask for no others."""
    folder = tmp_path_factory.mktemp("kafka") / "shared"
    with tiered_node(kafka_jars, folder, PATIENT) as node:
        yield TieredKafka(node.start())
        node.stop()


class FreshKafka(contextlib.ExitStack):
    """Makes nodes for one test and removes them after it."""

    def __init__(self, jars: Jars, folder: Path) -> None:
        super().__init__()
        self._jars = jars
        self._folder = folder
        self.logs: list[ProcessLog] = []

    def node(self, properties: Mapping[str, str] | None = None) -> Node:
        node = Node(self._jars, self._next_folder())
        node.properties.update(properties or {})
        return self._keep(node)

    def tiered(self, properties: Mapping[str, str] | None = None) -> TieredKafka:
        node = self._keep(tiered_node(self._jars, self._next_folder(), properties))
        return TieredKafka(node.start())

    def _next_folder(self) -> Path:
        return self._folder / f"node-{len(self.logs)}"

    def _keep(self, node: Node) -> Node:
        self.callback(node.close)
        self.logs.append(node.log)
        return node


@pytest.fixture
def fresh_kafka(kafka_jars: Jars, tmp_path: Path) -> Iterator[FreshKafka]:
    with FreshKafka(kafka_jars, tmp_path / "kafka") as fresh:
        yield fresh


@pytest.fixture(scope="module")
def started_cluster(
    kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Start three nodes once per module; `kafka_cluster` has all of them up."""
    with Cluster(kafka_jars, tmp_path_factory.mktemp("kafka") / "cluster") as cluster:
        yield cluster.start()


@pytest.fixture
def kafka_cluster(started_cluster: Cluster) -> Cluster:
    """Return three nodes that are all up when the test begins."""
    return started_cluster.start()


@pytest.fixture(scope="module")
def secured_kafka(
    kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    with SecuredKafka(kafka_jars, tmp_path_factory.mktemp("kafka") / "secured") as secured:
        yield secured.start()


class StockPeers(contextlib.ExitStack):
    def __init__(self, jars: Jars, folder: Path) -> None:
        super().__init__()
        self._jars = jars
        self._folder = folder
        self.logs: list[ProcessLog] = []

    def __call__(self, bootstrap: str, **options: Any) -> StockPeer:
        peer = StockPeer(self._jars, self._folder / f"stock-{len(self.logs)}", bootstrap, **options)
        self.enter_context(peer)
        self.logs.extend(peer.logs)
        return peer


@pytest.fixture
def stock_peer(kafka_jars: Jars, tmp_path: Path) -> Iterator[StockPeers]:
    """Return a factory: `stock_peer(bootstrap, partitions=..., settings=...)`."""
    with StockPeers(kafka_jars, tmp_path) as peers:
        yield peers
