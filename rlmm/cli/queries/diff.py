"""`rlmm diff`: what differs between two moments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import MOMENT
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice
    from rlmm.inspection.selectors import MomentSelector


@click.command("diff")
@source_options
@output_options
@click.option(
    "--from",
    "begin",
    type=MOMENT,
    metavar="OFFSET|TIME",
    required=True,
    help="The first moment: a time, or once the event at OFFSET of the metadata partition was "
    "applied (PARTITION:OFFSET,... for several).",
)
@click.option("--to", type=MOMENT, metavar="OFFSET|TIME", help="The second moment; else it is now.")
@click.option(
    "--partition",
    "places",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help="Of this metadata partition; may be repeated.",
)
@click.option("--topic", metavar="REGEX", help="Of topics with such a name.")
@click.option(
    "--topic-partitions",
    metavar="PATTERN",
    help="Of these user partitions, as kafka-get-offsets has it: t1:1,t2:0-3,t3.",
)
@click.option("--summary", "is_summary", is_flag=True, help="One line for each user partition.")
def diff(
    asked: SourceChoice,
    *,
    begin: MomentSelector,
    to: MomentSelector | None,
    places: tuple[int, ...],
    topic: str | None,
    topic_partitions: str | None,
    is_summary: bool,
) -> None:
    """
    Show what differs between two moments: segments, how far was copied, deletions.

    Both states are those of the log, read once, so a segment that came and went in between is in
    neither: `rlmm events` tells of it. A running service tells its log to the role admin alone.

    \b
    Examples:
      rlmm diff --from -1d
      rlmm diff --from 2026-01-31T14:00:00Z --to 2026-01-31T14:05:00Z --topic 'orders.*'
      rlmm diff --from 7:1200 --to 7:1350
      rlmm diff --from -7d --summary --output csv
    """
    from rlmm.cli.queries.diff_answer import diff_answer  # noqa: PLC0415  # not for help and completion
    from rlmm.inspection.selectors import partition_filter  # noqa: PLC0415

    answer(
        asked,
        partial(
            diff_answer, begin=begin, to=to, wanted=partition_filter(topic, topic_partitions),
            places=places, is_summary=is_summary,
        ),
    )  # fmt: skip
