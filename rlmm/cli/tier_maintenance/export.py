"""`rlmm tier export`: the bytes of the segments that hold a range of records, as a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlmm.base.visible_text import visible
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.common.option_kinds import CalledAsFlag, attach, switch
from rlmm.cli.common.parameter_types import MOMENT, WHEN
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import conclude, print_and_keep, quiet_log, require_new
from rlmm.cli.tier_common.options import flags_given
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.cli.tier_maintenance.export_question import asked_question, named_plan
from rlmm.cli.tier_maintenance.options import care_options
from rlmm.errors import ConfigError
from rlmm.inspection.moment import ReplayEnd
from spark_tiering.maintenance.new_file import new_file, require_free
from spark_tiering.maintenance.wiring import only_looking, open_tier
from spark_tiering.read_plan.document import format_plan
from spark_tiering.read_plan.moments import moment_at, steady
from spark_tiering.read_plan.plan_check import revisit
from spark_tiering.read_plan.plan_files import require_plan
from spark_tiering.read_plan.question import QuestionFacts
from spark_tiering.read_plan.reports import CheckReport, PlanExportReport
from spark_tiering.read_plan.tier_plans import (
    facts_of_cluster,
    fates_in_moment,
    fates_in_store,
    plan_of_manifests,
    plan_of_moment,
    remade,
)
from spark_tiering.read_plan.tokens import parse_token
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.findings.finding import Finding
    from rlmm.inspection.selectors import MomentSelector
    from spark_tiering.maintenance.tier import CareRequest, Tier
    from spark_tiering.read_plan.manifest_units import ManifestContents
    from spark_tiering.read_plan.moments import PlanMoment
    from spark_tiering.read_plan.plan import FrozenPlan, FrozenSegment
    from spark_tiering.read_plan.plan_check import PlannedSegmentFate
    from spark_tiering.read_plan.question import Question

STANDARD_OUTPUT = Path("-")
_OF_QUESTION = (
    "topics", "without_topics", "ranges", "from_offset", "to_offset", "from_time", "to_time",
)  # fmt: skip
_NEW_FILE = click.Path(dir_okay=False, path_type=Path, allow_dash=True)
_OLD_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ASKED = (
    click.option(
        "--from-offset", type=click.IntRange(0), metavar="OFFSET",
        help="The first offset of every partition. By default the start of the tier.",
    ),
    click.option(
        "--to-offset", type=click.IntRange(0), metavar="OFFSET",
        help="The end offset of every partition, exclusive. By default the end of the tier.",
    ),
    click.option(
        "--from-time", type=WHEN, metavar="TIME",
        help="Begin with the first segment whose newest record is not older.",
    ),
    click.option(
        "--to-time", type=WHEN, metavar="TIME",
        help="End with the first segment whose newest record is not older, inclusive.",
    ),
    click.option(
        "--range", "ranges", cls=CalledAsFlag, multiple=True, metavar="TOPIC-N@FROM:TO",
        help="The offsets of this partition from FROM to TO, exclusive; either may be left out. "
        "May be repeated; without --topic no other partition is planned.",
    ),
    click.option(
        "--since", metavar="TOKEN|FILE",
        help="Plan only offsets behind that plan, and its gaps.",
    ),
    click.option(
        "--token", metavar="TOKEN|FILE",
        help="Make the same plan again, from the history of the metadata.",
    ),
    click.option(
        "--at", type=MOMENT, metavar="OFFSET|TIME",
        help="The metadata as it was at a TIME, or at PARTITION:OFFSET,...: as for `rlmm "
        "segments`.",
    ),
    switch("--from-manifests", "Use the manifests in --store instead of the metadata."),
    click.option(
        "--check", "check_file", cls=CalledAsFlag, type=_OLD_FILE, metavar="FILE",
        help="Make no plan: report the segments of that plan that are deleted, or being deleted.",
    ),
    click.option(
        "--format", "form", type=click.Choice(["json", "parquet"]),
        help="The form of --save. By default by the name of FILE: Parquet for .parquet, else JSON.",
    ),
    click.option(
        "--save", "save_file", cls=CalledAsFlag, type=_NEW_FILE, metavar="FILE",
        help="Write the plan to a new file; - writes it alone to standard output.",
    ),
    switch("--fail-on-gap", "Exit with 1 when some of the range is not in the tier."),
)  # fmt: skip


@click.command("export", epilog=ending("export"))
@care_options(store="optional")
@attach(_ASKED)
def export_command(
    request: CareRequest,
    *,
    check_file: Path | None,
    save_file: Path | None,
    output: str,
    report_file: Path | None,
    **flags: Any,
) -> None:
    """
    Freeze a plan: the bytes of the segments that hold the records of a range, each offset once.

    Every reader of the plan, such as Spark, Trino, DuckDB or Flink, reads the same records, also
    later. Overlaps are resolved as in look-ups of brokers; gaps are reported. The token names the
    plan; a later plan uses it to find what is new since then. Nothing is changed.

    Exit codes: 0; 1 with --fail-on-gap for gaps, for manifests that cannot be read, and with
    --check for deleted segments; 2 invalid flags, tokens or files; 3 and 4 metadata, store or
    cluster cannot be reached.
    """
    is_printed = save_file == STANDARD_OUTPUT
    if is_printed and output == "json":
        raise ConfigError("--save - and --output json are both for standard output: say one")
    require_new(report_file)
    if save_file is not None and not is_printed:
        require_free(save_file)
    request = only_looking(request)
    if check_file is not None:
        _check(request, check_file, output, report_file, flags)
        return
    _require_together(flags)
    with quiet_log(), open_tier(request) as tier, progress_line() as shown:
        plan, manifests, impossible = _plan(tier, flags, Meter(shown.show))
        now_ms = tier.now_ms()
    saved = ""
    if save_file is not None:
        content = _formed(plan, flags["form"], save_file)
        saved = "" if is_printed else str(save_file)
        _keep(content, save_file)
    unread = () if manifests is None else tuple(manifests.unread)
    report = PlanExportReport(plan, now_ms, saved, unread, impossible)
    if is_printed:
        for line in report.lines():
            click.echo(visible(line), err=True)
        print_and_keep(iter(()), report.document(), "table", report_file)
    else:
        print_and_keep(report.lines(), report.document(), output, report_file)
    if report.unread or (flags["fail_on_gap"] and report.has_gaps):
        click.get_current_context().exit(EXIT_FOUND)


def _require_together(flags: Mapping[str, Any]) -> None:
    if flags["token"] is not None:
        given = flags_given((*_OF_QUESTION, "at", "from_manifests"))
        if given:
            msg = f"--token makes the very plan again, and takes no {', '.join(given)}"
            raise ConfigError(msg)
    if flags["since"] is not None:
        given = flags_given(("from_offset", "from_time", "ranges"))
        if given:
            msg = f"--since begins where that plan has ended, and takes no {', '.join(given)}"
            raise ConfigError(msg)
    if flags["from_manifests"]:
        given = flags_given(("sidecar", "log_dirs", "embedded", "at"))
        if given:
            msg = f"--from-manifests asks no metadata, and takes no {', '.join(given)}"
            raise ConfigError(msg)


def _plan(
    tier: Tier, flags: Mapping[str, Any], meter: Meter
) -> tuple[FrozenPlan, ManifestContents | None, list[Finding]]:
    """Return the plan, the content of the manifests that were read, and what was left out."""
    since, before = named_plan(flags["since"])
    if flags["token"] is not None:
        token, plan = named_plan(flags["token"])
        assert token is not None, "it is named"
        if plan is not None:
            since = parse_token(plan.since) if plan.since else None
        asked = None if plan is None else (plan.question, plan.facts)
        return remade(tier.log, token, asked, since), None, []
    question = asked_question(tier.request, flags, since, before)
    if flags["from_manifests"]:
        # Large, and needed for this alone.
        from spark_tiering.read_plan.manifest_units import told_by_manifests  # noqa: PLC0415

        manifests = told_by_manifests(
            tier.request.require_store, tier.store, tier.engine(), question.prefix,
            lambda topic: _may_want(question, topic), meter,
        )  # fmt: skip
        partitions = {one.id.partition for one in manifests.segments}
        facts = _facts(
            tier, [one for one in partitions if question.wants(one.topic, one.partition)]
        )
        return plan_of_manifests(manifests, question, facts, since), manifests, []
    moment = _moment(tier, flags["at"], question)
    wanted = [
        one.partition
        for one in moment.partitions()
        if question.wants(one.partition.topic, one.partition.partition)
    ]
    facts = QuestionFacts() if flags["at"] is not None else _facts(tier, wanted)
    plan = plan_of_moment(moment, question, facts, since, meter)
    return plan, None, moment.impossible()


def _moment(tier: Tier, at: MomentSelector | None, question: Question) -> PlanMoment:
    if at is None:
        return steady(tier.moment(), tier.log)
    if at.offset is not None:
        msg = f"--at {at.offset} is an offset of one metadata partition: say PARTITION:{at.offset}"
        raise ConfigError(msg)
    bound = ReplayEnd(at.offsets, at.time_ms)
    return moment_at(tier.log, bound, lambda topic: _may_want(question, topic))


def _may_want(question: Question, topic: str) -> bool:
    """Return whether any partition of *topic* may be wanted."""
    assigned = {name for name, _ in question.assigned}
    return topic in assigned if assigned else question.wants(topic, 0)


def _facts(tier: Tier, partitions: list[Any]) -> QuestionFacts:
    cluster = tier.cluster
    return (
        QuestionFacts()
        if cluster is None or not partitions
        else facts_of_cluster(cluster, partitions)
    )


# ------------------------------------------------------------------------------- what is kept


def _formed(plan: FrozenPlan, form: str | None, file: Path) -> bytes:
    if form is None:
        form = "parquet" if file.suffix == ".parquet" else "json"
    if form == "json":
        return format_plan(plan)
    try:
        # Large, and not needed for JSON.
        from spark_tiering.read_plan.parquet import format_parquet  # noqa: PLC0415
    except ImportError as error:
        msg = "Parquet needs pyarrow: pip install 'rlmm[spark]', or name a .json"
        raise ConfigError(msg) from error
    return format_parquet(plan)


def _keep(content: bytes, file: Path) -> None:
    if file == STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        return
    with new_file(file) as opened:
        opened.write(content)


# ------------------------------------------------------------------------------------- checked


def _check(
    request: CareRequest,
    file: Path,
    output: str,
    report_file: Path | None,
    flags: Mapping[str, Any],
) -> None:
    given = flags_given((*_OF_QUESTION, "since", "token", "at", "save_file"))
    if given:
        msg = f"--check looks at a plan that there is, and takes no {', '.join(given)}"
        raise ConfigError(msg)
    plan = require_plan(file)
    with quiet_log(), open_tier(request) as tier:
        fate_of: Callable[[FrozenSegment], PlannedSegmentFate]
        if flags["from_manifests"]:
            fate_of = fates_in_store(tier.store, plan.question.prefix)
        else:
            fate_of = fates_in_moment(tier.moment(), plan)
        report = CheckReport(plan, tuple(revisit(plan, fate_of)), tier.now_ms())
    conclude(report, output, report_file)
