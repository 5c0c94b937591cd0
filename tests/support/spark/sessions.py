"""
A session of Spark's on this machine for all tests of a process: a pytest plugin.

    spark_session   session   two slots, retries, no network; it ends with the process
    spark_connect   session   the address of a Spark Connect server with two slots

A session starts in seconds and Spark allows one in a process, so no test stops it. Workers import
the tests' own modules. A test with one of them gets more time.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tiering.execution.java import find_java
from spark_tiering.execution.settings import ExecutionSettings
from tests.support.repository import tree
from tests.support.stores.s3_servers import ACCESS, SECRET, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

SLOTS = 2
TIMEOUT_S = 300
"""A busy machine needs many times of what an idle one needs to start Spark."""
QUICK = {
    # What a cancelled task is given before its worker is killed.
    "spark.python.task.killTimeout": "100ms",
    "spark.sql.shuffle.partitions": "2",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        asked = {"spark_session", "spark_connect"} & {*getattr(item, "fixturenames", ())}
        if asked and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def python_path() -> str:
    before = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, (str(tree.ROOT), before)))


def spark_program(name: str) -> Path:
    (place,) = importlib.import_module("pyspark").__path__
    return Path(place) / "bin" / name


@contextmanager
def spark_process(
    command: list[str], port: int, log: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java(os.environ).home),
        "PYTHONPATH": python_path(),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **variables,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{command[0]} did not start\n{log.read_text()[-2_000:]}")
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def spark_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("connect")
    (port,) = free_ports(1)
    conf = {
        **QUICK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": f"{folder}/tables",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.ui.enabled": "false",
    }
    command = [
        str(spark_program("spark-submit")),
        f"--master=local[{SLOTS},4]",
        "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
        *(f"--conf={name}={value}" for name, value in conf.items()),
        "spark-internal",
    ]
    with spark_process(command, port, folder / "log"):
        yield f"sc://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    from spark_tiering.execution.session import open_session  # noqa: PLC0415 - large

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("PYTHONPATH", python_path())
        # Workers find them where they run, as they have to; nothing of this machine is its own.
        patch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        conf = {**QUICK, "spark.local.dir": folder, "spark.sql.warehouse.dir": f"{folder}/tables"}
        opened = open_session(ExecutionSettings(f"local[{SLOTS}]", conf=conf))
        patch.undo()
        try:
            yield opened.spark
        finally:
            opened.close()
