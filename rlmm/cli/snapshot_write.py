"""
`rlmm snapshot write`: snapshots now, by the running service or without one.

A running service is asked by a signal, and answers in a file beside its data; only the process that
holds a data folder writes there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import time
from typing import TYPE_CHECKING

import click

from rlmm.cli.config import config_options
from rlmm.cli.main import EXIT_FOUND
from rlmm.cli.snapshot import snapshot
from rlmm.errors import ConfigError, NotReady
from rlmm.folder_lock import folder_lock, owner_pid
from rlmm.once import write_snapshots_once
from rlmm.planning import plan_of
from rlmm.service import SNAPSHOT_SIGNAL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlmm.config.loading import Loaded
    from rlmm.config.sections import Config
    from rlmm.snapshot.writer import Flushed

__all__ = ["snapshot", "write_report"]

_log = logging.getLogger(__name__)

REPORT = "snapshot-report.json"
_LOOK_S = 0.05


async def write_report(data_dir: Path, done: Mapping[str, Flushed]) -> None:
    """
    Say what became of the snapshots that somebody asked the service for. Where that cannot be
    written it is logged: serving goes on.
    """
    text = json.dumps({name: _plain(flushed) for name, flushed in done.items()})

    def write() -> None:
        temporary = data_dir / f".{REPORT}"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(data_dir / REPORT)

    try:
        await asyncio.to_thread(write)
    except OSError as error:
        _log.warning("%s not written: %s", data_dir / REPORT, error)


def _plain(flushed: Flushed) -> dict[str, object]:
    return {
        "written": list(flushed.written),
        "unchanged": list(flushed.unchanged),
        "failed": {str(partition): str(error) for partition, error in flushed.failed.items()},
    }


@snapshot.command("write")
@config_options
@click.option("--wait", "wait_s", type=float, default=60.0, show_default=True, metavar="SECONDS")
def write_command(*, configuration: Loaded, wait_s: float) -> None:
    """
    Write a snapshot of every metadata partition that changed since its last one.

    Where a service runs on the data folder, it does that and tells; else the log is read here, up
    to its end, and nothing is written into it. Exit code 0, 1 when one could not be written, 4 when
    the end was not reached within --wait.
    """
    config = configuration.config
    pid = owner_pid(config.process.data_dir)
    if pid is None:
        document = _write_here(config, wait_s)
    else:
        document = _ask(config.process.data_dir, pid, wait_s)
    click.echo(json.dumps(document, indent=2))
    not_ready = document.get("not_ready")
    if not_ready:
        msg = f"metadata partitions {not_ready} were not read to their end in {wait_s:g} s"
        raise NotReady(msg)
    engines = [found for found in document.values() if isinstance(found, dict)]
    if any(found["failed"] for found in engines):
        click.get_current_context().exit(EXIT_FOUND)


def _write_here(config: Config, wait_s: float) -> dict[str, object]:
    plan = plan_of(config)
    if plan.snapshots is None:
        msg = f"log.kind is {config.log.kind}: nothing of it is kept"
        raise ConfigError(msg)
    # Whoever finds the lock may ask for snapshots: they are being written.
    signal.signal(SNAPSHOT_SIGNAL, signal.SIG_IGN)
    with folder_lock(config.process.data_dir):
        done = asyncio.run(write_snapshots_once(plan, wait_s))
    return {plan.name: _plain(done.flushed), "not_ready": list(done.not_ready)}


def _ask(data_dir: Path, pid: int, wait_s: float) -> dict[str, object]:
    """Have the running service write, and wait until it says that it has."""
    report = data_dir / REPORT
    before = _age_of(report)
    try:
        os.kill(pid, SNAPSHOT_SIGNAL)
    except OSError as error:
        msg = f"process {pid}, which holds {data_dir}, cannot be asked: {error.strerror}"
        raise ConfigError(msg) from error
    end_s = time.monotonic() + wait_s
    while _age_of(report) == before:
        if time.monotonic() > end_s:
            msg = f"process {pid} has written no snapshots in {wait_s:g} s; look at its log"
            raise NotReady(msg)
        time.sleep(_LOOK_S)
    found: dict[str, object] = json.loads(report.read_text(encoding="utf-8"))
    return found


def _age_of(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
