"""The context of every job of `rlmm tier`: signals, log lines, reports, new files."""

from __future__ import annotations

import errno
import json
import logging
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from rlmm.base.visible_text import visible, visible_block
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.tier_common import progress_line
from rlmm.errors import ConfigError
from rlmm.telemetry.logs import set_up
from rlmm.telemetry.settings import LoggingSettings, LogLevel
from spark_tiering.copy_job.report import hindrances
from spark_tiering.copy_plan.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rlmm.telemetry.logs import LogLines
    from spark_tiering.copy_plan.plan import CopyPlan
    from spark_tiering.reporting.report import OutcomeReport

_log = logging.getLogger(__name__)

LINES_MAX = 10


def quiet_log() -> AbstractContextManager[LogLines]:
    levels = (f"{progress_line.__name__}=info",)
    return set_up(LoggingSettings(level=LogLevel.WARNING, levels=levels))


@contextmanager
def stopping_signals() -> Iterator[Callable[[], str]]:
    """Yield a function that names the signal received; a second signal ends the process."""
    received: list[str] = []

    def receive(number: int, _: Any) -> None:
        name = signal.Signals(number).name
        if received:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        received.append(name)
        _log.warning("%s: the work in progress is finished first", name)

    before = {one: signal.signal(one, receive) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: received[0] if received else ""
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def ending_signals() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that half-written files are removed."""

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def echo_plan(plan: CopyPlan, output: str) -> None:
    """Print the plan, unless the output is JSON: then the report is the only output."""
    warn_of(plan)
    if output != "json":
        click.echo(visible_block(summary(plan)), nl=False)


def warn_of(plan: CopyPlan) -> None:
    lines = hindrances(plan)
    for line in lines[:LINES_MAX]:
        _log.warning("%s", line)
    if len(lines) > LINES_MAX:
        _log.warning("... and %d more that cannot be copied", len(lines) - LINES_MAX)


def require_new(file: Path | None) -> None:
    """Raise `ConfigError` where *file* exists, or could not be made, before the job begins."""
    if file is not None:
        save(file, b"")
        file.unlink()


def save(file: Path, content: bytes) -> None:
    """Write *content* to a new file; an existing one is not overwritten."""
    try:
        with file.open("xb") as opened:
            opened.write(content)
    except OSError as error:
        msg = f"{file}: {error.strerror or error}"
        raise ConfigError(msg) from error


def conclude(report: OutcomeReport, output: str, file: Path | None, busy: int = EXIT_FOUND) -> None:
    """Print and keep *report*; exit with 1, or *busy* for a busy topic, where it is not fine."""
    print_and_keep(report.lines(), report.document(), output, file)
    if not report.is_fine:
        is_busy = getattr(report, "is_busy", False)
        click.get_current_context().exit(busy if is_busy else EXIT_FOUND)


def print_and_keep(
    lines: Iterator[str], document: dict[str, Any], output: str, file: Path | None
) -> None:
    """Print a report, then keep it in *file*, also where printing fails."""
    try:
        if output == "json":
            click.echo(json.dumps(document, indent=2))
        else:
            for text in lines:
                click.echo(visible(text))
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise ConfigError(f"standard output: {error.strerror or error}") from error
    finally:
        if file is not None:
            save(file, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
