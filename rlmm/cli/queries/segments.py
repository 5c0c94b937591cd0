"""`rlmm segments`: list segments, describe one, find the one with an offset."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Meta

from rlmm.cli.common.answer_header import MomentHead, moment_fields
from rlmm.cli.common.item_streams import first_of
from rlmm.cli.common.parameter_types import PARTITION, SEGMENT, SIZE, WHEN
from rlmm.cli.common.partial_metadata import knows
from rlmm.cli.common.query_options import PREFIX, SEGMENT_ID, TOPIC, TOPIC_PARTITIONS
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import PARTITION_COLUMNS, size_text, states_text
from rlmm.errors import UnknownPartition
from rlmm.inspection.segment_search import STATES, SegmentFilter, SegmentTotals, sort_key
from rlmm.inspection.selectors import partition_filter
from rlmm.metadata.segment import SegmentState
from rlmm.views.segment import SegmentStateName, SegmentView, segment_view
from rlmm.views.values import Count, ViewObject

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.views.values import View

    Found = AsyncGenerator[SegmentMetadata, None]
    from collections.abc import Collection

    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.selectors import SegmentLabel


class SegmentTotalsView(ViewObject):
    segments: Count
    size_bytes: int
    segments_by_state: dict[SegmentStateName, Count]


class SegmentsFoot(ViewObject):
    totals: SegmentTotalsView
    astray: Annotated[
        list[str],
        Meta(
            description="User partitions whose events lie where no broker looks for them; they are "
            "not listed."
        ),
    ]


COLUMNS = (
    *PARTITION_COLUMNS,
    Column("segment_id", "SEGMENT ID"),
    Column("state", "STATE", ValueFormat.STATE),
    Column("start_offset", "START", ValueFormat.NUMBER),
    Column("last_offset", "LAST", ValueFormat.NUMBER),
    Column("size_bytes", "SIZE", ValueFormat.SIZE),
    Column("max_timestamp_ms", "NEWEST RECORD", ValueFormat.TIME, is_extra=True),
    Column("epochs", "EPOCHS", ValueFormat.EPOCHS, is_extra=True),
    Column("broker_id", "BROKER", ValueFormat.NUMBER, is_extra=True),
    Column("event_timestamp_ms", "LAST EVENT", ValueFormat.TIME, is_extra=True),
    Column("custom_metadata_bytes", "CUSTOM", ValueFormat.SIZE, is_extra=True),
    Column("txn_index_empty", "NO TXN INDEX", is_extra=True),
)


async def list_answer(
    looking: QueryContext, *, wanted: SegmentFilter, order: str | None, limit: int | None
) -> CommandAnswer:
    """List the *wanted* segments, by partition and offset unless *order* is given."""
    moment = await _moment(looking, wanted)
    totals = SegmentTotals()
    astray: list[TopicIdPartition] = []
    found: Found = segments_of(moment, wanted, astray)
    if order is not None:
        found = _sorted(found, order, limit)
    elif limit is not None:
        found = first_of(found, limit)
    return CommandAnswer(
        "segments",
        COLUMNS,
        _views(found, totals),
        MomentHead(**moment_fields(looking, moment)),
        foot=lambda: SegmentsFoot(
            SegmentTotalsView(totals.segments, totals.size_bytes, dict(totals.by_state)),
            [str(one) for one in astray],
        ),
        summary=_summary,
    )


async def _moment(looking: QueryContext, wanted: SegmentFilter) -> Moment:
    if not wanted.partitions.is_of_one:
        return await looking.moment()
    return await looking.moment_with(knows(wanted.partitions.allows))


async def segments_of(
    moment: Moment, wanted: SegmentFilter, astray: list[TopicIdPartition] | None = None
) -> AsyncGenerator[SegmentMetadata, None]:
    """Yield every *wanted* segment. Partitions where brokers do not look go to *astray*."""
    for summary in await moment.user_partitions():
        if not wanted.may_hold(summary):
            continue
        try:
            async for page in moment.segments(summary.partition, wanted.epoch):
                for segment in page:
                    if wanted.allows(segment):
                        yield segment
        except UnknownPartition:
            if astray is not None:
                astray.append(summary.partition)


async def _views(found: Found, totals: SegmentTotals) -> AsyncIterator[SegmentView]:
    async with aclosing(found):
        async for segment in found:
            totals.add(segment)
            yield segment_view(segment)


async def _sorted(found: Found, order: str, limit: int | None) -> Found:
    """Yield all in *order*, or the first *limit* of them; equal ones as they came."""
    held: list[SegmentMetadata] = []
    async for segment in found:
        held.append(segment)
        if limit is not None and len(held) >= 2 * limit + 1_000:
            held = _of_order(held, order, limit)
    for segment in _of_order(held, order, limit):
        yield segment


def _of_order(
    segments: Iterable[SegmentMetadata], order: str, limit: int | None
) -> list[SegmentMetadata]:
    key, is_reversed = sort_key(order)
    return sorted(segments, key=key, reverse=is_reversed)[:limit]


def _summary(document: View) -> list[str]:
    totals, astray = document["totals"], document["astray"]
    states = states_text(totals["segments_by_state"])
    lines = [f"{totals['segments']:,} segments, {size_text(totals['size_bytes'])}"]
    if states:
        lines[0] += f": {states}"
    if astray:
        lines.append(
            f"{len(astray)} user partitions are not listed, {astray[0]} among them: their events "
            "lie where no broker looks for them; see `rlmm verify`"
        )
    return lines


_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED")
_ORDERS = ("start", "last", "size", "newest", "event", "broker", "state", "epoch")


@click.group("segments")
def segments() -> None:
    """List segments, describe one, find the one that holds an offset."""


@segments.command("list")
@past_query
@TOPIC
@TOPIC_PARTITIONS
@click.option(
    "--state", "states", multiple=True, type=click.Choice(_STATES, case_sensitive=False),
    help="In this state; may be repeated.",
)  # fmt: skip
@click.option(
    "--from", "newest_from_ms", type=WHEN, metavar="TIME", help="Whose newest record is not older."
)
@click.option(
    "--to", "newest_to_ms", type=WHEN, metavar="TIME", help="Whose newest record is not younger."
)
@click.option(
    "--min-size", "size_min", type=SIZE, metavar="SIZE", help="Of 10MiB at least, for example."
)
@click.option("--max-size", "size_max", type=SIZE, metavar="SIZE", help="Of so many bytes at most.")
@click.option(
    "--broker", "brokers", multiple=True, type=int, metavar="ID",
    help="Whose last event this broker wrote; may be repeated.",
)  # fmt: skip
@click.option("--epoch", type=click.IntRange(0), help="With offsets of this leader epoch.")
@click.option(
    "--with-custom-metadata/--without-custom-metadata", "has_custom_metadata", default=None,
    help="That have custom metadata, or have none.",
)  # fmt: skip
@click.option(
    "--sort", "order", type=click.Choice([*_ORDERS, *(f"-{one}" for one in _ORDERS)]),
    metavar="[-]ORDER",
    help=f"By {', '.join(_ORDERS)}; with a dash the largest first: --sort=-size. Else by partition "
    "and offset. All that are meant are held at once, unless --limit says how many.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(1), metavar="N", help="No more than these.")
def list_command(
    asked: SourceChoice, *, order: str | None, limit: int | None, **meant: Any
) -> None:
    """
    List segments, with sums below.

    They come as they are found, by topic, partition and start offset. LAST is the last offset,
    inclusive; times are those of a segment's newest record.

    \b
    Examples:
      rlmm segments list --topic 'orders.*'
      rlmm segments list --topic-partitions orders:0-3 --state copy_segment_started
      rlmm segments list --sort=-size --limit 10
      rlmm segments list --from -7d --output csv > week.csv
      rlmm segments list --at 2026-01-31T14:05:00Z --output json
    """
    answer(asked, list_answer, wanted=_filter_of(**meant), order=order, limit=limit)


def _filter_of(
    *, topic: str | None, topic_partitions: str | None, states: Collection[str],
    brokers: Collection[int], **others: Any,
) -> SegmentFilter:  # fmt: skip
    return SegmentFilter(
        partition_filter(topic, topic_partitions),
        frozenset(SegmentState[one] for one in states) or frozenset(STATES),
        brokers=frozenset(brokers),
        **others,
    )


@segments.command("describe")
@past_query
@click.argument("segment", type=SEGMENT, required=False)
@SEGMENT_ID
@PREFIX
def describe_command(
    asked: SourceChoice, *, segment: SegmentLabel | None, segment_id: SegmentLabel | None,
    prefix: str,
) -> None:  # fmt: skip
    """
    Show all that is known of one segment: state, offsets, epochs, objects, and what look-ups say.

    SEGMENT is an id of 22 characters or what no other one begins with. With its partition before
    it, orders-3/ID, only that one is asked for; an id that begins with a dash stands behind --.

    \b
    Examples:
      rlmm segments describe EBESExQVFhcYGRobHB0eHw
      rlmm segments describe orders-3/EBES
      rlmm segments describe -- -BESExQVFhcYGRobHB0eHw
      rlmm segments describe --segment-id=-BESExQVFhcYGRobHB0eHw --output yaml
    """
    from rlmm.cli.queries.segment_answer import describe_answer  # noqa: PLC0415  # imports this

    label = segment or segment_id
    if label is None or (segment and segment_id):
        raise click.UsageError("Name one segment, as SEGMENT or by --segment-id.")
    answer(asked, describe_answer, label=label, prefix=prefix)


@segments.command("find")
@past_query
@click.argument("label", type=PARTITION, metavar="TOPIC-PARTITION")
@click.option("--offset", type=click.IntRange(0), help="The segment that holds it.")
@click.option(
    "--time", "time_ms", type=WHEN, metavar="TIME",
    help="The first segment with records of that time or later.",
)  # fmt: skip
@click.option("--epoch", type=click.IntRange(0), help="In this leader epoch; else in any.")
@PREFIX
def find_command(
    asked: SourceChoice, *, offset: int | None, time_ms: int | None, **flags: Any
) -> None:
    """
    Show which segment of TOPIC-PARTITION holds an offset, or a time, and where its objects are.

    Without --epoch it is said in which leader epochs it is found. Segments that hold the offset and
    are found by no look-up are shown as well: copies under way, deletions, hidden ones. By time a
    segment is as close as it gets. Exit code 1 when no look-up finds any.

    \b
    Examples:
      rlmm segments find orders-3 --offset 1500
      rlmm segments find orders-3 --offset 1500 --epoch 4 --prefix tiered/
      rlmm segments find orders-3 --time 2026-01-31T14:05:00Z
      rlmm segments find AAECAwQFBgcICQoLDA0ODw:orders-3 --time -7d --output json
    """
    from rlmm.cli.queries.segment_answer import find_answer  # noqa: PLC0415  # imports this

    if (offset is None) == (time_ms is None):
        raise click.UsageError("Say what to find, with --offset or with --time.")
    answer(asked, find_answer, offset=offset, time_ms=time_ms, **flags)
