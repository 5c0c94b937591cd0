"""`rlmm history`: every event about a segment, or about a user partition."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.parameter_types import MOMENT, SEGMENT, SUBJECT
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from rlmm.cli.common.source_options import SourceChoice
    from rlmm.inspection.selectors import MomentSelector, PartitionLabel, SegmentLabel


@click.command("history")
@source_options
@at_option
@output_options
@click.argument("what", type=SUBJECT, required=False, metavar="SEGMENT|TOPIC-PARTITION")
@click.option(
    "--segment-id",
    type=SEGMENT,
    metavar="SEGMENT",
    help="The same as an option, for ids that begin with a dash: --segment-id=-abc.",
)
@click.option(
    "--from",
    "begin",
    type=MOMENT,
    metavar="OFFSET|TIME",
    help="Show what happened from then on; verdicts need all that was before all the same.",
)
@click.option("--to", type=MOMENT, metavar="OFFSET|TIME", help="The same as --at.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N events alone.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N events alone.")
@click.option(
    "--metadata-partition",
    "place",
    type=click.IntRange(0),
    metavar="N",
    help="Look there alone; else an id without its partition is looked for everywhere.",
)
def history(
    asked: SourceChoice,
    *,
    what: PartitionLabel | SegmentLabel | None,
    segment_id: SegmentLabel | None,
    begin: MomentSelector | None,
    to: MomentSelector | None,
    limit: int | None,
    last: int | None,
    place: int | None,
) -> None:
    """
    Show every event about a segment or a user partition, and what became of it.

    Times are those of the records. What the state machine refused is there with its reason, and
    so is a record that cannot be decoded and has the id in its bytes; of deleted segments all is
    there as well. An event that takes the place of another segment in look-ups says of which one.
    A running service tells its log to the role admin alone.

    \b
    Examples:
      rlmm history EBESExQVFhcYGRobHB0eHw
      rlmm history --segment-id=-BESExQVFhcYGRobHB0eHw
      rlmm history orders-3/EBESExQVFhcYGRobHB0eHw
      rlmm history orders-3 --from -7d --last 50
      rlmm history orders-3 --log-dirs copies/ --output jsonl | jq 'select(.verdict=="rejected")'
    """
    from rlmm.cli.queries.history_answer import history_answer  # noqa: PLC0415  # not for help

    subject = what or segment_id
    if subject is None or (what and segment_id):
        raise click.UsageError("Name one segment or partition, as an argument or by --segment-id.")
    if limit is not None and last is not None:
        raise click.UsageError("--limit and --last contradict each other: give one of them.")
    answer(
        asked,
        partial(
            history_answer, what=subject, begin=begin, to=to, limit=limit, last=last, place=place
        ),
    )
