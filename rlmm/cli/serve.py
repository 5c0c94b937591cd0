"""`rlmm serve`: the service, until a signal asks it to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.config import config_options
from rlmm.cli.snapshot_write import write_report
from rlmm.config.process import Mode
from rlmm.errors import RlmmError, StopTimedOut
from rlmm.folder_lock import folder_lock
from rlmm.planning import plan_of
from rlmm.service import SNAPSHOT_SIGNAL, serve
from rlmm.telemetry.logs import set_up

if TYPE_CHECKING:
    from rlmm.config.loading import Loaded
    from rlmm.config.sections import Config
    from rlmm.telemetry.logs import LogLines

_log = logging.getLogger(__name__)


@click.command(
    "serve",
    epilog="Every key of docs/configuration.md is a flag, too. SIGTERM stops in order and within "
    "shutdown_timeout_ms, SIGUSR1 writes snapshots of what changed.",
)
@config_options
def serve_command(*, configuration: Loaded) -> None:
    """
    Follow a metadata log, answer from it and take writes, until SIGTERM or SIGINT.

    Without any configuration an embedded log is kept in rlmm-data, below the current folder. Exit
    codes: 0 stopped in order, 2 configuration, 3 the log cannot be used, 5 a part has failed, 6
    something would not end in time and is named.
    """
    config = configuration.config
    # Whoever finds the lock may ask for snapshots before there is anybody to take them.
    signal.signal(SNAPSHOT_SIGNAL, signal.SIG_IGN)
    is_observer = config.process.mode is Mode.OBSERVER
    with (
        set_up(config.logging) as lines,
        folder_lock(config.process.data_dir, is_observer=is_observer),
    ):
        try:
            asyncio.run(_serve(config, lines))
        except RlmmError as error:
            _log.critical("%s: %s", error.code, error)
            raise


async def _serve(config: Config, lines: LogLines) -> None:
    plan = plan_of(config)
    process = config.process
    _log.info(
        "serving from %s: log %s, mode %s, assignment %s, pid %d",
        process.data_dir,
        config.log.kind,
        process.mode,
        process.assignment,
        os.getpid(),
    )
    try:
        await serve(
            [plan],
            process.shutdown_timeout_ms / 1_000,
            beside={"log lines": lines.run},
            report=partial(write_report, process.data_dir),
        )
    except StopTimedOut as error:
        # What hangs would hold up the interpreter's own end as well: leave without it.
        _log.critical("%s: %s", error.code, error)
        logging.shutdown()
        sys.stderr.flush()
        os._exit(error.exit_code)
