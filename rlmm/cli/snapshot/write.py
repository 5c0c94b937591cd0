"""
`rlmm snapshot write`: writes snapshots now, by the running service or without one. Only the holder
of a data folder writes there, so a running service is asked. Without one, the command opens every
log as an observer, which creates and changes none.
"""

from __future__ import annotations

import asyncio
import json
import math
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from rlmm.base.folder_lock import folder_lock, owner_pid
from rlmm.base.native_core import choose_engine, engine_in_use
from rlmm.base.visible_text import visible_line
from rlmm.cli.common.config_options import config_options
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.snapshot.command import snapshot
from rlmm.cli.snapshot.service_requests import ask, plain
from rlmm.config.process import LogKind
from rlmm.errors import ConfigError, NotReady
from rlmm.process.run import SNAPSHOT_SIGNAL
from rlmm.process.snapshot_once import write_snapshots_once
from rlmm.process.wiring import LOG_FOLDER, folder_of, observing, plans_of

if TYPE_CHECKING:
    from rlmm.cli.snapshot.service_requests import Document
    from rlmm.config.loading import LoadedConfiguration

__all__ = ["snapshot"]

_WAIT_S_MAX = 86_400.0


class _Seconds(click.FloatRange):
    """A finite time; the range of click alone would accept NaN."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


@snapshot.command("write")
@config_options
@click.option(
    "--wait",
    "wait_s",
    type=_Seconds(0, _WAIT_S_MAX, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for all logs together, at most a day.",
)
def write_command(*, configuration: LoadedConfiguration, wait_s: float) -> None:
    """
    Write a snapshot of every metadata partition that changed since its last one.

    If a service runs on the data folder, it writes the snapshots and reports. Else the command
    reads the log to its end and writes nothing into it; all logs together within --wait, with a
    fifth of it reserved for writing. Exit code 0; 1 if a snapshot could not be written; 2 if
    snapshots are off, there is no log, or the service cannot be asked; 3 if a log cannot be used; 4
    if a log was not read to its end within --wait, or not by the service before the request. With
    several logs the highest code counts.
    """
    data_dir = configuration.config.process.data_dir
    pid = owner_pid(data_dir)
    if pid is not None:
        document = ask(data_dir, pid, wait_s)
        is_each_meant = False  # a service may well follow a log of which nothing can be kept
    else:
        document = _write_here(observing(configuration), wait_s)
        is_each_meant = True
    click.echo(json.dumps(document, indent=2))
    _end(document, is_each_meant=is_each_meant)


def _end(document: Document, *, is_each_meant: bool) -> None:
    """Return the exit code and all faults of the logs."""
    codes = [EXIT_FOUND for found in document.values() if found["failed"]]
    errors = {name: found["error"] for name, found in document.items() if "error" in found}
    for name, found in document.items():
        if found["not_ready"]:
            message = f"metadata partitions {found['not_ready']} were not read to their end"
            _tell(NotReady.code, name, message)
            codes.append(NotReady.exit_code)
    for name, error in errors.items():
        if is_each_meant or len(errors) == len(document) or error["code"] != ConfigError.code:
            _tell(error["code"], name, error["message"])
            codes.append(error["exit_code"])
    if codes:
        click.get_current_context().exit(max(codes))


def _tell(code: str, name: str, message: str) -> None:
    with suppress(OSError):  # stderr may be closed; the exit code still reports the error
        click.echo(f"rlmm: {code}: {name}: {visible_line(message)}", err=True)


def _write_here(configuration: LoadedConfiguration, wait_s: float) -> Document:
    data_dir = configuration.config.process.data_dir
    plans = [plan for plan in plans_of(configuration) if plan.snapshots is not None]
    if not plans:
        msg = "log.kind is memory: nothing of it is kept"
        raise ConfigError(msg)
    _require_anything(configuration)
    # Whoever finds the lock may ask for snapshots: they are being written.
    signal.signal(SNAPSHOT_SIGNAL, signal.SIG_IGN)
    choose_engine(configuration.config.process.engine)
    engine_in_use()  # refused before the folder is made
    with folder_lock(data_dir):
        done = asyncio.run(write_snapshots_once(plans, wait_s))
    return {name: plain(asked) for name, asked in done.items()}


def _require_anything(configuration: LoadedConfiguration) -> None:
    """Refuse, before a folder is created, if every log is an embedded one that does not exist."""
    folders = []
    for name, config in configuration.clusters.items() or [(None, configuration.config)]:
        if config.log.kind is LogKind.KAFKA:
            return
        if config.log.kind is LogKind.FILES:
            folders.append(folder_of(config, name) / LOG_FOLDER)
    if not any(folder.is_dir() for folder in folders):
        msg = f"{', '.join(map(str, folders))} does not exist: there is no log to be read"
        raise ConfigError(msg)
