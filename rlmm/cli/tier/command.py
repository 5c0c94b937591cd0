"""
The command group `rlmm tier`, with the commands of copy jobs: plan, run, status, pause, sweep.
Maintenance commands are imported at their first use. Jobs need the extra
`tiering`, and `s3` and `spark` for a bucket and for Spark; help needs none.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.visible_text import visible, visible_block, visible_line
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.common.option_kinds import CalledAsFlag, ExplicitFlag, switch
from rlmm.cli.common.output import OUTPUTS, print_table
from rlmm.cli.common.parameter_types import POSITIVE_TIME
from rlmm.cli.common.shared_flags import name_variables
from rlmm.cli.tier.adopt import adopt_group, run_adopting
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import (
    conclude,
    echo_plan,
    quiet_log,
    require_new,
    save,
    stopping_signals,
    warn_of,
)
from rlmm.cli.tier_common.options import (
    DECIDED_BY_PLANS,
    adopting,
    flags_given,
    job_options,
    only_looking,
    store_options,
)
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.errors import ConfigError
from spark_tiering.adopt.adoption import windows
from spark_tiering.copy_job.job import make_job_plan, run_job
from spark_tiering.copy_job.wiring import open_surroundings
from spark_tiering.copy_plan.document import (
    DOCUMENT_BYTES_MAX,
    CopyPlanUnreadable,
    fingerprint,
    format_plan,
    parse_plan,
)
from spark_tiering.copy_plan.summary import summary, time_text
from spark_tiering.job_registry.heartbeats import JobStatus
from spark_tiering.job_registry.job_list import list_jobs
from spark_tiering.job_registry.job_store import JobStore
from spark_tiering.job_registry.records import JobRecords
from spark_tiering.stores.abandoned_uploads import left_behind, sweep
from spark_tiering.stores.opening import open_store

if TYPE_CHECKING:
    from rlmm.cli.tier_common.object_store import StoreChoice
    from spark_tiering.adopt.adoption import OpenWindow
    from spark_tiering.copy_job.request import JobRequest
    from spark_tiering.copy_plan.plan import CopyPlan
    from spark_tiering.segment_sources.protocol import UnusablePlace

_OUTPUT = click.option("--output", type=click.Choice(OUTPUTS), default="table", show_default=True)
_NEW_FILE = click.Path(dir_okay=False, path_type=Path)
CARE = {
    "audit": "audit_command",
    "backup": "backup_group",
    "expire": "expire_command",
    "export": "export_command",
    "rebuild": "rebuild_command",
    "verify": "verify_command",
}
"""Commands of modules of the same name in `rlmm.cli.tier_maintenance`."""


class TierGroup(click.Group):
    """Imports the commands of `rlmm.cli.tier_maintenance` at their first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *CARE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in CARE:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f"rlmm.cli.tier_maintenance.{cmd_name}")
        command = getattr(module, CARE[cmd_name])
        assert isinstance(command, click.Command), cmd_name
        name_variables(command, f"RLMM_TIER_{cmd_name.upper()}")
        return command


@click.group(
    cls=TierGroup,
    context_settings={"auto_envvar_prefix": "RLMM_TIER"},
    epilog="Each command's own --help has examples. Every flag is an environment variable as well, "
    "but for those that destroy or publish: RLMM_TIER_RUN_STORE is --store of `tier run`.",
)
def tier() -> None:
    """Copy cold segments to an object store, and maintain the tier."""


tier.add_command(adopt_group)


@tier.command("plan", epilog=ending("plan"))
@job_options
@click.option(
    "--save",
    "save_file",
    cls=CalledAsFlag,
    type=_NEW_FILE,
    help="Write the plan to a file, for `tier run --plan`. "
    "It is valid for one metadata log: an embedded log that does not exist is created.",
)
@_OUTPUT
def plan_command(request: JobRequest, *, save_file: Path | None, output: str) -> None:
    """
    Show which segments would be copied, and why the others would not. Nothing is changed.

    Exit codes: 0, 2 invalid flags, 3 source, store, cluster or metadata cannot be used, 4 the
    metadata is not ready.
    """
    require_new(save_file)
    if save_file is None:  # a plan that is kept is one for a log that is there
        request = only_looking(request)
    with quiet_log(), open_surroundings(request) as at:
        planned = make_job_plan(at)
        _show_plan(planned.plan, planned.seen.unusable, output)
    if save_file is not None:
        save(save_file, format_plan(planned.plan))


@tier.command("run", epilog=ending("run"))
@job_options
@click.option(
    "--plan", "plan_file", cls=CalledAsFlag,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run a saved plan; a stale plan is refused.",
)  # fmt: skip
@click.option(
    "--adopt", is_flag=True,
    help="For topics that brokers tier: copying and retention of each named topic are turned off "
    "while it is copied, and restored afterwards. See docs/tiering.md.",
)  # fmt: skip
@switch("--dry-run", "Only show the plan, as `tier plan`.")
@click.option(
    "--report", "report_file", cls=CalledAsFlag, type=_NEW_FILE, help="Write the report to a file."
)
@_OUTPUT
def run_command(
    request: JobRequest,
    *,
    plan_file: Path | None,
    adopt: bool,
    dry_run: bool,
    report_file: Path | None,
    output: str,
) -> None:
    """
    Copy segments: start the copy in the metadata, copy, verify, finish it in the metadata.

    A second run continues one that was killed. SIGINT and SIGTERM stop between segments. Exit
    codes: 0 all segments are copied, 1 some are not, 2 invalid flags, or a stale plan, 3 source,
    store, cluster or metadata cannot be used, 4 the metadata is not ready or another job works on a
    topic.
    """
    if adopt and plan_file is not None:
        msg = "--adopt plans when copying is off, and takes no plan of before"
        raise ConfigError(msg)
    if dry_run and plan_file is not None:
        msg = "--dry-run makes a plan, and takes none: --plan and it contradict each other"
        raise ConfigError(msg)
    require_new(report_file)
    if adopt and not dry_run:
        run_adopting(request, report_file, output)
        return
    request = adopting(request) if adopt else request
    plan = None if plan_file is None else _read_plan(plan_file)
    if plan is not None:
        request = _as_planned(request, plan)
    if dry_run:
        request = only_looking(request)
    with quiet_log(), open_surroundings(request) as at:
        if dry_run:
            planned = make_job_plan(at)
            _show_plan(planned.plan, planned.seen.unusable, output)
            return
        with progress_line() as line, stopping_signals() as why_stop:
            report = run_job(
                at,
                plan,
                why_stop=why_stop,
                on_plan=lambda made: echo_plan(made, output),
                on_progress=line.show,
            )
    conclude(report, output, report_file)


@tier.command("status", epilog=ending("status"))
@store_options
@_OUTPUT
def status_command(choice: StoreChoice, *, output: str) -> None:
    """
    List the jobs of a store, the newest first, and the topics whose copying is turned off.

    Exit code 1 when the heartbeat of a job is overdue, or a job has left copying and retention of a
    topic turned off: see `rlmm tier adopt`.
    """
    with open_store(choice.settings) as store:
        kept = JobStore(store, choice.prefix)
        jobs, opened = list(list_jobs(kept)), windows(kept)
    rows = [
        {
            "jobId": one.job_id,
            "standing": one.standing.value,
            "host": None if one.beat is None else one.beat.host,
            "beganMs": one.began_ms,
            "hasPlan": one.has_plan,
            "hasReport": one.has_report,
            "isAskedToStop": one.is_asked_to_stop,
        }
        for one in jobs
    ]
    if output == "json":
        click.echo(json.dumps({"jobs": rows, "windows": _window_rows(opened)}, indent=2))
    else:
        print_table(
            "jobs",
            ("job", "standing", "host", "report", "asked to stop"),
            [
                (
                    row["jobId"],
                    row["standing"],
                    row["host"] or "-",
                    "yes" if row["hasReport"] else "-",
                    "yes" if row["isAskedToStop"] else "-",
                )
                for row in rows
            ],
        )
        if opened:
            print_table(
                "topics whose copying and retention are off",
                ("topic", "step", "since", "job", "standing"),
                [tuple(row.values())[:-1] for row in _window_rows(opened)],
            )
            for one in opened:
                if one.journal.trouble:
                    click.echo(visible_line(f"{one.journal.topic.name}: {one.journal.trouble}"))
    is_left = any(one.job is not JobStatus.ALIVE for one in opened)
    if is_left or any(one.standing is JobStatus.OVERDUE for one in jobs):
        click.get_current_context().exit(EXIT_FOUND)


@tier.command("pause", epilog=ending("pause"))
@store_options
@click.argument("job_id")
def pause_command(choice: StoreChoice, *, job_id: str) -> None:
    """
    Ask a job to stop between segments, wherever it runs. The job finishes the segments that it is
    copying and begins no others; a later `tier run` continues.
    """
    with open_store(choice.settings) as store:
        jobs = JobStore(store, choice.prefix)
        known = {one.job_id: one.standing for one in list_jobs(jobs)}
        if job_id not in known:
            msg = f"the store knows of no job {job_id!r}; `rlmm tier status` lists them"
            raise ConfigError(msg)
        JobRecords(jobs, job_id).ask_to_stop("rlmm tier pause")
    click.echo(f"job {job_id} ({known[job_id].value}) is asked to stop between segments")


@tier.command("sweep", epilog=ending("sweep"))
@store_options
@click.option(
    "--older-than", type=POSITIVE_TIME, default="7d", show_default=True, metavar="TIME",
    help="Choose a time that no upload exceeds: the store does not tell whether one is running.",
)  # fmt: skip
@switch(
    "--end", "Abort the uploads; without this flag they are listed.", "is_ending", cls=ExplicitFlag
)
@_OUTPUT
def sweep_command(choice: StoreChoice, *, older_than: int, is_ending: bool, output: str) -> None:
    """
    List the incomplete multipart uploads under the prefix, which killed writers left and which
    take space.

    Objects are not touched. Exit code 1 when some uploads are left.
    """
    before_ms = SYSTEM_CLOCK.now_ms() - older_than
    with open_store(choice.settings) as store:
        act = sweep if is_ending else left_behind
        found = list(act(store, choice.prefix, before_ms))
    if output == "json":
        rows = [{"key": one.key, "id": one.upload_id, "beganMs": one.began_ms} for one in found]
        click.echo(json.dumps({"ended" if is_ending else "uploads": rows}, indent=2))
    else:
        print_table(
            "unfinished uploads" + (", ended" if is_ending else ""),
            ("key", "began"),
            [(one.key, time_text(one.began_ms)) for one in found],
        )
    if found and not is_ending:
        click.get_current_context().exit(EXIT_FOUND)


def _window_rows(opened: list[OpenWindow]) -> list[dict[str, str]]:
    return [
        {
            "topic": one.journal.topic.name,
            "step": one.journal.step.value,
            "since": time_text(one.journal.opened_ms),
            "jobId": one.journal.job_id,
            "standing": one.job.value,
            "trouble": one.journal.trouble,
        }
        for one in opened
    ]


# ---------------------------------------------------------------------------------------- plans


def _show_plan(plan: CopyPlan, unusable: tuple[UnusablePlace, ...], output: str) -> None:
    warn_of(plan)
    if output == "json":
        click.echo(format_plan(plan).decode(), nl=False)
        return
    click.echo(visible_block(summary(plan)), nl=False)
    for one in unusable:
        click.echo(visible(f"  not used: {one}"))


def _read_plan(file: Path) -> CopyPlan:
    with file.open("rb") as opened:
        content = opened.read(DOCUMENT_BYTES_MAX + 1)
    plan = parse_plan(content)
    if isinstance(plan, CopyPlanUnreadable):
        msg = f"{file}: {plan}"
        raise ConfigError(msg)
    return plan


def _as_planned(request: JobRequest, plan: CopyPlan) -> JobRequest:
    """Return the request with the plan's decisions; refuse another prefix, and such flags."""
    given = flags_given(DECIDED_BY_PLANS)
    if given:
        msg = f"a plan has decided about {', '.join(given)}: leave them out, or make another plan"
        raise ConfigError(msg)
    rules = plan.rules
    if request.prefix != rules.prefix:
        msg = f"plan {fingerprint(plan)[:16]} is for the prefix {rules.prefix!r}, not for "
        msg += repr(request.prefix)
        raise ConfigError(msg)
    return replace(
        request,
        mode=rules.mode,
        filters=rules.filters,
        budgets=rules.budgets,
        broker_id=rules.broker_id,
    )
