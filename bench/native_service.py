"""
`rlmm serve` on a data folder that holds one embedded log: started by one engine or the other, asked
by `/readyz` until it answers, and ended in order or by SIGKILL.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from bench.history import METADATA_PARTITIONS
from bench.native_engines import environment
from bench.sidecar_ground import DEADLINE_S, Process
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.process.wiring import LOG_FOLDER, SNAPSHOT_FOLDER
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlmm.base.native_core import ShardEngine
    from rlmm.records.record_set import RecordSet

_POLL_S = 0.002
_LONG_MS = 86_400_000
"""Between two snapshots: the orderly end writes them."""


@dataclass(frozen=True, slots=True)
class Started:
    ready_s: float
    """From exec to the first `/readyz` that says 200."""
    cpu_s: float
    resident_bytes: int


class Serving:
    def __init__(self, process: subprocess.Popen[bytes], path: Path, started: Started) -> None:
        self.server = Process(path, process)
        self.started = started
        self._process = process

    def stop(self) -> None:
        """End it in order: it writes all snapshots."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(DEADLINE_S)
        assert status == 0, status


def fill_data_folder(folder: Path, sets: Iterable[RecordSet]) -> None:
    folder.mkdir(parents=True)
    asyncio.run(_fill(folder / LOG_FOLDER, sets))


async def _fill(place: Path, sets: Iterable[RecordSet]) -> None:
    log = await FilesLog.open(place, partition_count=METADATA_PARTITIONS)
    await log.close()
    async with await LogRegistry.open(place, LogSettings(sync=SyncPolicy.NEVER)) as registry:
        for record_set in sets:
            part = await registry.partition(TOPIC, record_set.partition)
            await part.append(record_set.data, verify_crc=False)


def drop_snapshots(folder: Path) -> None:
    shutil.rmtree(folder / SNAPSHOT_FOLDER, ignore_errors=True)


@contextmanager
def serving(folder: Path, engine: ShardEngine) -> Iterator[Serving]:
    """Start a service on *folder*, and wait until it is ready; at the end it is killed."""
    config = folder.with_suffix(".toml")
    port = _free_port()
    # Paths of sockets are short, those of folders are not.
    with (
        tempfile.TemporaryDirectory(prefix="rlmm-") as short,
        folder.with_suffix(".log").open("wb") as written,
    ):
        path = Path(short) / "rlmm.sock"
        config.write_text(
            f'data_dir = "{folder}"\n'
            f'sidecar.unix_path = "{path}"\n'
            f'http.listen = "127.0.0.1:{port}"\n'
            f"snapshot.interval_ms = {_LONG_MS}\n"
            'log.kind = "files"\n'
        )
        kept = {name: text for name, text in os.environ.items() if not name.startswith("RLMM_")}
        command = [sys.executable, "-m", "rlmm", "serve", "--config", str(config)]
        begin = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, cwd=folder, stderr=written,
            env={**kept, **environment(engine), "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            found = Process(path, process)
            _wait_ready(found, port)
            ready_s = time.perf_counter() - begin
            started = Started(ready_s, found.cpu_s, found.resident_bytes)
            yield Serving(process, path, started)
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _wait_ready(process: Process, port: int) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not _is_ready(port):
        process.require_running()
        if time.monotonic() > deadline_s:
            msg = "the service is not ready"
            raise TimeoutError(msg)
        time.sleep(_POLL_S)


def _is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
