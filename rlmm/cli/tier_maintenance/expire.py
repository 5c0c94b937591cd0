"""`rlmm tier expire`: segments are deleted by Kafka's rule of retention."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.option_kinds import CalledAsFlag, ExplicitFlag, attach, switch
from rlmm.cli.common.parameter_types import POSITION, SIZE, TIME
from rlmm.cli.tier_common.examples import ending
from rlmm.cli.tier_common.job_context import conclude, quiet_log, require_new, stopping_signals
from rlmm.cli.tier_common.progress_line import progress_line
from rlmm.cli.tier_maintenance.options import care_options
from rlmm.errors import ConfigError
from spark_tiering.maintenance.expire.decision import ExpireOptions
from spark_tiering.maintenance.expire.job import expire
from spark_tiering.maintenance.wiring import only_looking, open_tier, require_begun

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.tier import CareRequest

EXIT_BUSY = 4
EARLIEST = "earliest"
_PLAIN = re.compile(r"-?\d{1,18}")


class _Limit(click.ParamType):  # type: ignore[type-arg]  # it takes none when it runs
    """A limit as Kafka writes it, a plain number with -1 for none, or an amount with a unit."""

    def __init__(self, amount: click.ParamType) -> None:  # type: ignore[type-arg]
        self.name = amount.name
        self._amount = amount

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str) and _PLAIN.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, int):
            if value < -1:
                self.fail(f"{value} is no limit: -1 is none at all.", param, ctx)
            return value
        return int(self._amount.convert(value, param, ctx))


class _Start(click.ParamType):  # type: ignore[type-arg]  # it takes none when it runs
    name = "log start"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == EARLIEST else POSITION.convert(value, param, ctx)


_LIMITS = (
    click.option(
        "--retention-ms", type=_Limit(TIME), metavar="TIME",
        help="Delete segments whose newest record is older: 7d, or milliseconds as in Kafka; -1 "
        "for no limit. By default the setting of the topic in the cluster.",
    ),
    click.option(
        "--retention-bytes", type=_Limit(SIZE), metavar="SIZE",
        help="Delete the oldest segments of a partition above this size: 10GiB; -1 for no limit. "
        "By default the setting of the topic in the cluster.",
    ),
    click.option(
        "--log-start-offset", "log_starts", cls=CalledAsFlag, type=_Start(), multiple=True,
        metavar="TOPIC-N@OFFSET|earliest",
        help="Delete segments of that partition that end before OFFSET. May be repeated. earliest: "
        "before the log start offset of the cluster, for an archive as well.",
    ),
    click.option(
        "--min-age", type=TIME, default="1d", show_default=True, metavar="TIME",
        help="A younger open copy may have a writer: it stays, and so do the segments behind it.",
    ),
    switch("--end-open-copies", "Delete open copies without a writer, also above the limits."),
    click.option(
        "--old-epochs", is_flag=True,
        help="Delete segments whose leader epochs were all replaced by later ones, by the other "
        "segments.",
    ),
    click.option(
        "--deleted-topics", is_flag=True,
        help="Delete the rest of topics that the cluster has deleted; for its own metadata.",
    ),
    click.option(
        "--old-prefix", "old_prefixes", cls=CalledAsFlag, multiple=True, metavar="PREFIX",
        help="An older prefix of keys, where objects may still be. May be repeated.",
    ),
    click.option("--max-delete", type=click.IntRange(1), help="The most segments of this run."),
    click.option(
        "--objects-gone", is_flag=True,
        help="The objects are already deleted: delete the metadata although none is found.",
    ),
    switch("--offline", "Ask no cluster: you guarantee that no broker expires these topics."),
    click.option(
        "--apply", "is_applied", cls=ExplicitFlag, is_flag=True,
        help="Delete; without this flag the command is a dry run.",
    ),
)  # fmt: skip


@click.command("expire", epilog=ending("expire"))
@care_options()
@attach(_LIMITS)
def expire_command(
    request: CareRequest,
    *,
    is_applied: bool,
    output: str,
    report_file: Path | None,
    **flags: Any,
) -> None:
    """
    Delete segments by Kafka's rule of retention: metadata first, then objects.

    By default this is a dry run: it shows the segments to delete, with bytes, reasons and the new
    start of each partition. The next run continues one that died. Topics that live brokers tier are
    refused, and the other topics are processed. SIGINT and SIGTERM stop between segments. Exit
    codes: 0 all is done, or shown, 1 something was refused or is left, 2 invalid flags, 3 store,
    cluster or metadata cannot be used, 4 the metadata is not ready or another job works on a topic.
    """
    wish = _wish_of(flags)
    if wish.is_offline and request.source is not None and request.source.bootstrap_servers:
        msg = "--offline asks no cluster, and --bootstrap-server names one"
        raise ConfigError(msg)
    require_new(report_file)
    # Not for a run either: what is not there has nothing to delete, and may be a mistyped folder.
    request = only_looking(require_begun(request))
    with (
        quiet_log(),
        open_tier(request) as tier,
        progress_line() as line,
        stopping_signals() as why_stop,
    ):
        report = expire(
            tier,
            wish,
            is_applied=is_applied,
            why_stop=why_stop,
            on_progress=line.show,
        )
    conclude(report, output, report_file, EXIT_BUSY)


def _wish_of(flags: dict[str, Any]) -> ExpireOptions:
    given = flags["log_starts"]
    wish = ExpireOptions(
        retention_ms=flags["retention_ms"],
        retention_bytes=flags["retention_bytes"],
        asks_log_start=EARLIEST in given,
        open_for_ms=flags["min_age"],
        ends_open_copies=flags["end_open_copies"],
        drops_old_epochs=flags["old_epochs"],
        drops_deleted_topics=flags["deleted_topics"],
        max_delete=flags["max_delete"],
        old_prefixes=tuple(flags["old_prefixes"]),
        is_without_objects=flags["objects_gone"],
        is_offline=flags["offline"],
    )
    starts = {}
    for label, offset in (one for one in given if one != EARLIEST):
        if label.topic is None:
            msg = f"--log-start-offset names a partition by its topic: orders-3@1500, not {label}"
            raise ConfigError(msg)
        starts[label.topic, label.partition] = offset
    return replace(wish, log_starts=starts)
