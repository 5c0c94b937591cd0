"""`rlmm events`: the metadata topic, decoded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rlmm.cli.common.parameter_types import MOMENT, SEGMENT
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_options import at_option, output_options, source_options

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.cli.common.source_options import SourceChoice
    from rlmm.inspection.event_filter import EventFilter
    from rlmm.inspection.selectors import MomentSelector, SegmentLabel

_KINDS = ("segment", "update", "partition-delete", "snapshot", "unreadable")
_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED", "DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)  # fmt: skip


@click.command("events")
@source_options
@at_option
@output_options
@click.option(
    "--partition",
    "places",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help="Of this metadata partition; may be repeated.",
)
@click.option("--topic", metavar="REGEX", help="About topics with such a name.")
@click.option(
    "--topic-partitions",
    metavar="PATTERN",
    help="About these user partitions, as kafka-get-offsets has it: t1:1,t2:0-3,t3.",
)
@click.option(
    "--segment-id", "label", type=SEGMENT, metavar="ID", help="About this segment; its whole id."
)
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(_KINDS), help="Of this kind; repeatable."
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    metavar="STATE",
    help="That ask for this state, in Kafka's names; may be repeated.",
)
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    metavar="WORD",
    help="Of which this became: applied, duplicate, rejected, undecodable, or a reason such as "
    "unknown-segment or displaced-another-segment; may be repeated.",
)
@click.option(
    "--broker", "brokers", multiple=True, type=int, metavar="ID", help="Written by it; repeatable."
)
@click.option("--from", "begin", type=MOMENT, metavar="OFFSET|TIME", help="From then on.")
@click.option("--to", type=MOMENT, metavar="OFFSET|TIME", help="The same as --at.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="No more than these.")
@click.option("--follow", is_flag=True, help="Follow new events.")
@click.option(
    "--no-verdicts",
    is_flag=True,
    help="Begin at once: do not find out what became of events, which takes all that was before.",
)
def events(
    asked: SourceChoice,
    *,
    places: tuple[int, ...],
    begin: MomentSelector | None,
    to: MomentSelector | None,
    limit: int | None,
    follow: bool,
    no_verdicts: bool,
    **meant: Any,
) -> None:
    """
    Show the events of the metadata topic, decoded, and what became of each.

    By the time of their records; PLACE is metadata partition and offset, as --at takes it. What
    nobody understands is shown in hex with its reason. With --follow what is there is left out
    unless --from is said, and Ctrl-C ends. A running service tells its log to the role admin alone.

    \b
    Examples:
      rlmm events --from -1h --topic 'orders.*'
      rlmm events --verdict rejected --verdict undecodable
      rlmm events --follow --no-verdicts --output jsonl
      rlmm events --partition 7 --from 1200 --limit 20
      rlmm events --state copy_segment_finished --broker 3 --log-dirs copies/ --output csv
    """
    from rlmm.cli.queries.events_answer import EventsQuestion, events_answer  # noqa: PLC0415  # not for help

    asking = EventsQuestion(_filter_of(**meant), places, begin, to, limit, follow, not no_verdicts)
    answer(asked, partial(events_answer, asking=asking))


def _filter_of(
    *, topic: str | None, topic_partitions: str | None, label: SegmentLabel | None,
    kinds: Collection[str], states: Collection[str], verdicts: Collection[str],
    brokers: Collection[int],
) -> EventFilter:  # fmt: skip
    from rlmm.inspection.event_filter import (  # noqa: PLC0415  # not for help
        EventFilter,
        EventKind,
        verdict_words,
    )
    from rlmm.inspection.selectors import partition_filter  # noqa: PLC0415

    if label is not None and (label.uuid is None or label.partition is not None):
        raise click.UsageError("--segment-id takes the whole id of a segment, and nothing else.")
    return EventFilter(
        partition_filter(topic, topic_partitions),
        frozenset(map(EventKind, kinds)),
        frozenset(states),
        verdict_words(verdicts),
        frozenset(brokers),
        None if label is None else label.uuid,
    )
