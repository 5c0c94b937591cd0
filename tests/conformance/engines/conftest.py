"""Every kind of engine, for the contract that all of them keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.settings import ExecutionSettings
from tests.support.spark.sessions import SLOTS, TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.execution.protocol import ExecutionEngine

ON_SPARK = ("rdd", "arrow", pytest.param("connect", marks=pytest.mark.long))
SLOW = ("arrow", "connect")
KINDS = ("in-process", "threads", *ON_SPARK)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "conformance/engines" in item.nodeid:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[ExecutionEngine]:
    with made(request, request.param) as engine:
        yield engine


@pytest.fixture(params=ON_SPARK)
def spark_engine(request: pytest.FixtureRequest) -> Iterator[ExecutionEngine]:
    with made(request, request.param) as engine:
        yield engine


@pytest.fixture
def rdd_engine(request: pytest.FixtureRequest) -> Iterator[ExecutionEngine]:
    with made(request, "rdd") as engine:
        yield engine


@pytest.fixture(params=["rdd", *(pytest.param(kind, marks=pytest.mark.long) for kind in SLOW)])
def dying_engine(request: pytest.FixtureRequest) -> Iterator[ExecutionEngine]:
    with made(request, request.param) as engine:
        yield engine


@pytest.fixture(params=[ON_SPARK[0], ON_SPARK[2]])
def early_engine(request: pytest.FixtureRequest) -> Iterator[ExecutionEngine]:
    with made(request, request.param) as engine:
        yield engine


def made(request: pytest.FixtureRequest, kind: str) -> ExecutionEngine:
    if kind == "in-process":
        return InProcess()
    if kind == "threads":
        return InProcess(SLOTS)
    from spark_tiering.execution.opening import open_engine  # noqa: PLC0415 - large

    if kind == "connect":
        return open_engine(ExecutionSettings(request.getfixturevalue("spark_connect")))
    from spark_tiering.execution.arrow import ArrowJobs  # noqa: PLC0415 - large
    from spark_tiering.execution.opening import engine_over  # noqa: PLC0415
    from spark_tiering.execution.spark_engine import SparkEngine  # noqa: PLC0415

    session = request.getfixturevalue("spark_session")
    return engine_over(session) if kind == "rdd" else SparkEngine(ArrowJobs(session))
