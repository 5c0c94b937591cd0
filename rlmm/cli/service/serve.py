"""`rlmm serve`: runs the service until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import click

from rlmm.access.authentication import Authenticator
from rlmm.access.tokens import own_token
from rlmm.base.clock import suspend_aware_loop
from rlmm.base.freed_memory import give_back_freed_memory
from rlmm.base.native_core import choose_engine, engine_in_use
from rlmm.base.threads import in_own_thread
from rlmm.base.version import __version__
from rlmm.cli.common.config_options import source_options
from rlmm.cli.common.exit_codes import error_line
from rlmm.cli.service.config_reload import ConfigReload, EarlySignals
from rlmm.cli.service.data_folder import DataFolder
from rlmm.cli.snapshot.service_requests import SnapshotReports
from rlmm.config.process import ServiceMode
from rlmm.errors import ConfigError, RlmmError, StopTimedOut
from rlmm.metrics.served_state import ServedState
from rlmm.process.later_imports import import_later, later_names
from rlmm.process.run import SNAPSHOT_SIGNAL, pool_over, serve
from rlmm.process.systemd import SupervisorNotices
from rlmm.process.wiring import (
    LOG_FOLDER,
    broker_log_of,
    engines_of,
    folder_of,
    http_of,
    plans_of,
    sidecar_of,
    token_file_of,
)
from rlmm.telemetry.line_thread import line_thread
from rlmm.telemetry.logs import is_json, set_up
from rlmm.telemetry.settings import LogFormat, LoggingSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.cli.common.config_options import ConfigurationSources
    from rlmm.config.loading import LoadedConfiguration
    from rlmm.engine.service import Service
    from rlmm.http.server import HttpServer
    from rlmm.telemetry.logs import LogLines

_log = logging.getLogger(__name__)

_POOL_S = 2.0
"""Time for threads to end after all else has."""


@click.command(
    "serve",
    epilog="Every key of docs/configuration.md but secrets is a flag as well. SIGTERM stops the "
    "service in order, within shutdown_timeout_ms. SIGUSR1 writes snapshots of changed partitions. "
    "SIGHUP loads the configuration again, applies logging.*, and loads changed tokens and "
    "certificates.",
)
@source_options
def serve_command(*, sources: ConfigurationSources) -> None:
    """
    Run the service until SIGTERM or SIGINT.

    The service follows a metadata log, answers questions and accepts writes. The default is an
    embedded log in rlmm-data, below the working directory. Exit codes: 0 stopped in order, 2
    configuration, 3 the log cannot be used, 5 a part has failed, 6 a part did not stop in time.
    """
    # Whoever finds the lock may ask for something before there is anybody to do it.
    signal.signal(SNAPSHOT_SIGNAL, signal.SIG_IGN)
    early = EarlySignals()
    early.remember()
    give_back_freed_memory()
    form = _format_said(sources)
    try:
        configuration = sources.load()
        config = configuration.config
        form = config.logging.format
        choose_engine(config.process.engine)
        engine_in_use()  # refused before anything is begun
        with (
            line_thread(sys.stderr) as writer,
            set_up(config.logging, writer) as lines,
            asyncio.Runner(loop_factory=suspend_aware_loop) as runner,
        ):
            try:
                runner.run(_serve_to_the_end(sources, configuration, lines, early))
            finally:
                form = lines.form
    except RlmmError as error:
        _end(error, form)


async def _serve_to_the_end(
    sources: ConfigurationSources,
    configuration: LoadedConfiguration,
    lines: LogLines,
    early: EarlySignals,
) -> None:
    """Run `_serve`, then exit without waiting for threads that hang."""
    failure: RlmmError | None = None
    engines = configuration.clusters.values() or [configuration.config]
    is_observer = all(each.process.mode is ServiceMode.OBSERVER for each in engines)
    folder = DataFolder(configuration.config.process.data_dir, is_observer=is_observer)
    try:
        async with folder:
            await _serve(sources, configuration, lines, early, folder)
    except RlmmError as error:
        failure = error
    try:
        await pool_over(_POOL_S)
    except StopTimedOut as error:
        if failure is not None:
            _log.error("%s", error)
        _leave(failure or error, lines)
    if failure is not None:
        raise failure


async def _serve(
    sources: ConfigurationSources,
    configuration: LoadedConfiguration,
    lines: LogLines,
    early: EarlySignals,
    folder: DataFolder,
) -> None:
    config = configuration.config
    _announce(configuration, folder)
    own = partial(_own_token, configuration)
    is_later = not folder.is_held and config.http.token_file is None
    if is_later and token_file_of(configuration) is not None:
        # It would lie in the data folder, which does not answer.
        _log.warning("no token is made for this machine's own user before the data folder answers")
    authenticator, token_file = await asyncio.to_thread(
        _authenticator, configuration, None if is_later else own
    )
    authenticator.audit.wait_room = lines.wait_room
    engines = engines_of(configuration)
    sidecar = sidecar_of(configuration, engines, authenticator)
    broker_log = await asyncio.to_thread(broker_log_of, configuration)
    shown = ServedState(
        __version__,
        lines=lines.statistics,
        sidecar=sidecar.statistics,
        access=authenticator.statistics,
        broker_log=broker_log,
    )
    notices = SupervisorNotices(
        os.environ, sidecar.listening.is_set, config.http.heartbeat_age_ms_max / 1_000
    )
    reloading = ConfigReload(
        sources, configuration, lines, authenticator.ask_to_look, notices.reloading, early
    )
    http = http_of(configuration, shown, authenticator, token_file)
    later = {"own token": folder.behind(partial(_own_token_later, own, authenticator, http))}

    def begin(service: Service) -> None:
        shown.begin(service)
        notices.begin(service)

    plans = [replace(one, open_log=folder.behind(one.open_log)) for one in plans_of(configuration)]
    async with http:
        try:
            with reloading.heeding(), notices.telling():
                await serve(
                    plans,
                    config.process.shutdown_timeout_ms / 1_000,
                    beside={
                        "log lines": lines.run,
                        "log levels": reloading.run,
                        "clusters": folder.behind(engines.run),
                        "access": authenticator.run,
                        "audit log": authenticator.audit.run,
                        "sidecar": folder.behind(sidecar.run),
                        "imports": partial(import_later, later_names(config), sidecar.listening),
                        **({} if broker_log is None else {"broker log": broker_log.run}),
                        **(later if is_later else {}),
                    },
                    report=SnapshotReports(config.process.data_dir).add,
                    on_made=begin,
                    on_started=engines.begin,
                    on_ending=notices.stopping,
                )
        except StopTimedOut as error:
            authenticator.audit.flush()
            _leave(error, lines)
        finally:
            authenticator.audit.flush()


def _announce(configuration: LoadedConfiguration, folder: DataFolder) -> None:
    config = configuration.config
    for notice in configuration.notices:
        _log.warning("%s", notice)
    process, engine = config.process, engine_in_use()
    if engine.obstacle and not engine.is_missing:
        _log.warning("engine = auto does not use the native core: %s", engine.obstacle)
    if configuration.clusters and folder.is_held and (process.data_dir / LOG_FOLDER).exists():
        _log.warning(
            "%s is of none of the clusters and is not served: move it to the folder of one",
            process.data_dir / LOG_FOLDER,
        )
    for name, each in configuration.clusters.items() or [(None, config)]:
        _log.info(
            "serving from %s: log %s, mode %s, assignment %s, engine %s, pid %d",
            folder_of(each, name),
            each.log.kind,
            each.process.mode,
            each.process.assignment,
            engine,
            os.getpid(),
            extra={} if name is None else {"cluster": name},
        )


def _authenticator(
    configuration: LoadedConfiguration, own: Callable[[], tuple[Path, str] | None] | None
) -> tuple[Authenticator, Path | None]:
    """Return the authenticator, and the file with the local token if there is one."""
    config = configuration.config
    path, token = (own() if own is not None else None) or (None, None)
    return Authenticator(config.access, config.tls, own_token=token), path


def _own_token(configuration: LoadedConfiguration) -> tuple[Path, str] | None:
    """Return the file with the local token, and the token; `None` without one."""
    path = token_file_of(configuration)
    if path is None:
        return None
    try:
        return path, own_token(path, "http.token_file")
    except ConfigError as error:
        if configuration.config.http.token_file is not None:
            raise
        _log.warning("no token is made for this machine's own user: %s", error)
        return None


async def _own_token_later(
    own: Callable[[], tuple[Path, str] | None], authenticator: Authenticator, http: HttpServer
) -> None:
    """Create the token once the folder for it exists."""
    found = await in_own_thread("own-token", own)
    if found is not None:
        path, token = found
        authenticator.take_own(token)
        http.show_token_file(path)
    await asyncio.Event().wait()


def _leave(error: RlmmError, lines: LogLines) -> NoReturn:
    """Exit the process at once if threads hang, because the interpreter would wait for them."""
    lines.tell_repeats(is_end=True)
    lines.drain()
    _tell(error, lines.form)
    os._exit(error.exit_code)


def _format_said(sources: ConfigurationSources) -> LogFormat:
    """Return the log format for messages before the configuration is loaded."""
    said = sources.said("logging_format")
    return LogFormat(said) if said in set(LogFormat) else LogFormat.AUTO


def _end(error: RlmmError, form: LogFormat) -> NoReturn:
    _tell(error, form)
    raise click.exceptions.Exit(error.exit_code) from error


def _tell(error: RlmmError, form: LogFormat) -> None:
    """Print the last line in the format of the lines before it: JSON or text, never both."""
    with line_thread(sys.stderr) as writer:
        if not is_json(form, sys.stderr):
            if writer is not None:
                writer.write(f"{error_line(error)}\n")
                return
            with suppress(OSError):  # stderr may be closed; the exit code still reports the error
                click.echo(error_line(error), err=True)
            return
        with set_up(LoggingSettings(format=form), writer):
            fields = {"error": error.code, "exit_code": error.exit_code}
            _log.critical("%s: %s", error.code, " ".join(str(error).split()), extra=fields)
