"""
`rlmm tier run --adopt` and `rlmm tier adopt`: copies that the brokers of a live cluster adopt.
Copying and retention of the topic are off meanwhile. Only `resume` and `abort` close a window that
a job has left open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rlmm.cli.common.option_kinds import ExplicitFlag
from rlmm.cli.common.output import OUTPUTS
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import (
    conclude,
    echo_plan,
    quiet_log,
    require_new,
    stopping_signals,
)
from rlmm.cli.tier_common.options import adopting, job_options
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.errors import ConfigError, TopicBusy
from spark_tiering.adopt.adoption import AdoptionListeners, abort, adopt, resume
from spark_tiering.adopt.steps import WindowOptions
from spark_tiering.copy_job.wiring import open_surroundings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_tiering.adopt.report import AdoptionReport
    from spark_tiering.copy_job.request import JobRequest
    from spark_tiering.copy_job.wiring import CopyJobContext

_SHRINKING = click.option(
    "--allow-shrinking-retention", "is_shrinking_allowed", cls=ExplicitFlag, is_flag=True,
    help="Restore the retention that the journal in the store has, although it is shorter than the "
    "present one. Without this flag the command shows both and changes nothing.",
)  # fmt: skip
_OUTPUT = click.option("--output", type=click.Choice(OUTPUTS), default="table", show_default=True)


@click.group("adopt")
def adopt_group() -> None:
    """Close a window that an adopting job left open, with copying and retention turned off."""


@adopt_group.command("resume", epilog=ending("adopt resume"))
@click.argument("topic")
@job_options
@_SHRINKING
@_OUTPUT
def resume_command(
    request: JobRequest, *, topic: str, is_shrinking_allowed: bool, output: str
) -> None:
    """
    Continue the window of TOPIC that a job has left open, and close it.

    Exit codes as of `rlmm tier run`; 1 where the window stays open, with the reason.
    """
    _taken_up(request, topic, output, resume, is_shrinking_allowed=is_shrinking_allowed)


@adopt_group.command("abort", epilog=ending("adopt abort"))
@click.argument("topic")
@job_options
@_SHRINKING
@_OUTPUT
def abort_command(
    request: JobRequest, *, topic: str, is_shrinking_allowed: bool, output: str
) -> None:
    """
    Close the window of TOPIC that a job has left open, without copying more.

    Open copies are ended, the newest first; finished ones stay, and brokers copy the rest. The
    settings of the topic are restored. Exit codes as of `rlmm tier run`.
    """
    _taken_up(request, topic, output, abort, is_shrinking_allowed=is_shrinking_allowed)


def run_adopting(request: JobRequest, report_file: Path | None, output: str) -> None:
    if not request.filters.topics:
        msg = "--adopt changes settings of topics for a while: name them with --topic"
        raise ConfigError(msg)
    _run(request, output, adopt, report_file)


def _taken_up(
    request: JobRequest,
    topic: str,
    output: str,
    way: Callable[..., AdoptionReport],
    *,
    is_shrinking_allowed: bool,
) -> None:
    options = WindowOptions(is_shrinking_allowed=is_shrinking_allowed)

    def take_up(at: CopyJobContext, *, listeners: AdoptionListeners) -> AdoptionReport:
        return way(at, topic, options, listeners)

    _run(request, output, take_up)


def _run(
    request: JobRequest,
    output: str,
    work: Callable[..., AdoptionReport],
    report_file: Path | None = None,
) -> None:
    require_new(report_file)
    with quiet_log(), open_surroundings(adopting(request)) as at:  # noqa: SIM117 - in this order
        with progress_line() as line, stopping_signals() as why_stop:
            listeners = AdoptionListeners(
                why_stop,
                lambda plan: echo_plan(plan, output),
                line.show,
            )
            report = work(at, listeners=listeners)
    conclude(report, output, report_file, TopicBusy.exit_code)
