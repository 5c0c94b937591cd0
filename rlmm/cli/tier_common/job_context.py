"""What surrounds every job of `rlmm tier`: signals, log lines, files that are made."""

from __future__ import annotations

import errno
import json
import logging
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from rlmm.errors import ConfigError
from rlmm.telemetry.logs import set_up
from rlmm.telemetry.settings import LoggingSettings, LogLevel
from spark_tiering.copy_job.source_problems import hindrances
from spark_tiering.copy_plan.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rlmm.telemetry.logs import LogLines
    from spark_tiering.copy_plan.plan import CopyPlan

_log = logging.getLogger("rlmm.cli.tier.around")

LINES_MAX = 10


def quiet_log() -> AbstractContextManager[LogLines]:
    """Log lines on standard error: how far a job is, and whatever is wrong."""
    levels = ("rlmm.cli.tier.progress=info",)
    return set_up(LoggingSettings(level=LogLevel.WARNING, levels=levels))


@contextmanager
def stopping_signals() -> Iterator[list[str]]:
    """The signals that asked to stop; a second one ends the process as it always does."""
    heard: list[str] = []

    def hear(number: int, _: Any) -> None:
        name = signal.Signals(number).name
        if heard:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        heard.append(name)
        _log.warning("%s: what is on its way is finished first", name)

    before = {one: signal.signal(one, hear) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield heard
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def ending_signals() -> Iterator[None]:
    """
    SIGTERM ends the block as Ctrl-C does, where nothing is changed that has to be told: files that
    were half made go with it.
    """

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def echo_plan(plan: CopyPlan, output: str) -> None:
    """What is going to be done; with JSON the report is the only answer."""
    warn_of(plan)
    if output != "json":
        click.echo(summary(plan), nl=False)


def warn_of(plan: CopyPlan) -> None:
    """A line for what cannot be copied until somebody has looked at it; the first ones of many."""
    lines = hindrances(plan)
    for line in lines[:LINES_MAX]:
        _log.warning("%s", line)
    if len(lines) > LINES_MAX:
        _log.warning("... and %d more that cannot be copied", len(lines) - LINES_MAX)


def require_new(file: Path | None) -> None:
    """
    Raise `ConfigError` where *file* is there, or could not be made: before anything is done whose
    outcome is to be kept in it.
    """
    if file is not None:
        save(file, b"")
        file.unlink()


def save(file: Path, content: bytes) -> None:
    """Keep *content* in a new file: nothing is overwritten."""
    try:
        with file.open("xb") as opened:
            opened.write(content)
    except OSError as error:
        msg = f"{file}: {error.strerror or error}"
        raise ConfigError(msg) from error


def told_and_kept(
    lines: Iterator[str], document: dict[str, Any], output: str, file: Path | None
) -> None:
    """
    A report printed, and kept in *file*; printed first: what was done is told in any case, and it
    is kept where nobody reads what is printed.
    """
    try:
        if output == "json":
            click.echo(json.dumps(document, indent=2))
        else:
            for text in lines:
                click.echo(text)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise ConfigError(f"standard output: {error.strerror or error}") from error
    finally:
        if file is not None:
            save(file, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
