"""The answer of `rlmm segments list`."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rlmm.cli.common.answer_header import MomentHead, moment_fields
from rlmm.cli.common.item_streams import first_of
from rlmm.cli.partial_metadata.ready_partitions import knows
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import partition_label, size_text, states_text
from rlmm.errors import UnknownPartition
from rlmm.inspection.segment_search import SegmentTotals, sort_key
from rlmm.views.segment import SegmentStateName, SegmentView, segment_view
from rlmm.views.values import Count, ViewObject

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment
    from rlmm.inspection.segment_search import SegmentFilter
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.views.values import View

    Found = AsyncGenerator[SegmentMetadata, None]


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
    Column("", "PARTITION", made_of=partition_label),
    Column("topic", "TOPIC", is_extra=True),
    Column("partition", "P", ValueFormat.NUMBER, is_extra=True),
    Column("topic_id", "TOPIC ID", is_extra=True),
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
        foot=lambda: SegmentsFoot(_totals_view(totals), [str(one) for one in astray]),
        summary=_summary,
    )


def _totals_view(totals: SegmentTotals) -> SegmentTotalsView:
    return SegmentTotalsView(totals.segments, totals.size_bytes, dict(totals.by_state))


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
