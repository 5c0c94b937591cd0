"""`rlmm history`: every event about a segment, or about a user partition."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Meta

from rlmm.cli.common.answer_header import LogHead, log_fields, offsets_before
from rlmm.cli.common.item_streams import first_of, last_of, with_first
from rlmm.cli.common.log_range import first_offsets, looking_up_to, named_places, require_places
from rlmm.cli.common.parameter_types import MOMENT, SUBJECT
from rlmm.cli.common.partial_metadata import ReadablePartitions, readable
from rlmm.cli.common.query_options import END, SEGMENT_ID
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.queries.event_text import EXTRAS, time_text, whole_text
from rlmm.cli.queries.events import EventsFoot, events_summary
from rlmm.cli.queries.segments import segments_of
from rlmm.errors import InvalidArgument, NotFound, NotReady
from rlmm.inspection.history import EventHistory, HistorySubject
from rlmm.inspection.segment_search import SegmentFilter
from rlmm.inspection.selectors import PartitionLabel, SegmentLabel
from rlmm.inspection.source_status import StateSourceKind
from rlmm.log.protocol import LogBounds
from rlmm.metadata.assignment import place_of
from rlmm.metadata.ids import TopicIdPartition
from rlmm.views.event import HistoryLineView, line_view

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.history import HistoryLine
    from rlmm.inspection.replay import PartitionReplay
    from rlmm.inspection.selectors import MomentSelector, PartitionLabel
    from rlmm.metadata.ids import Uuid

_NAMED_MAX = 5

OF_SEGMENT = (
    Column("", "TIME", made_of=time_text),
    Column("offset", "OFFSET", ValueFormat.NUMBER),
    Column("", "EVENT AND OUTCOME", made_of=whole_text),
    Column("state_before", "BEFORE", ValueFormat.STATE, is_extra=True),
    Column("state_after", "AFTER", ValueFormat.STATE, is_extra=True),
    Column("part", "PART", is_extra=True),
    *EXTRAS,
)
OF_PARTITION = (
    *OF_SEGMENT[:2],
    Column("", "SEGMENT ID", made_of=lambda item: item["segment_id"]),
    *OF_SEGMENT[2:],
)


class HistoryHead(LogHead):
    sought: Annotated[str, Meta(description="The segment or the partition, as it was named.")]


@dataclass(slots=True)
class _Read:
    """The offsets that were read, and the counts of the lines that were shown."""

    positions: dict[int, int] = field(default_factory=dict)
    """The offset behind the last that was read, by metadata partition."""
    log_starts: dict[int, int] = field(default_factory=dict)
    there: ReadablePartitions = field(default_factory=lambda: ReadablePartitions(()))
    is_mentioned: bool = False
    """Whether any event is about the subject, shown or not."""
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, item: HistoryLineView) -> None:
        verdict = str(item.verdict)
        self.counts[verdict] = self.counts.get(verdict, 0) + 1

    def foot(self) -> EventsFoot:
        return EventsFoot(
            as_of_offsets=offsets_before(self.positions),
            events=sum(self.counts.values()),
            verdicts=dict(sorted(self.counts.items())),
            notes=[
                *self.there.notes(),
                *(
                    f"the log of metadata partition {place} begins at offset {start}: what was "
                    "before is gone, and segments whose first record was there are not known any "
                    "more"
                    for place, start in sorted(self.log_starts.items())
                    if start > 0
                ),
            ],
        )


async def history_answer(
    looking: QueryContext,
    *,
    what: PartitionLabel | SegmentLabel,
    begin: MomentSelector | None = None,
    to: MomentSelector | None = None,
    limit: int | None = None,
    last: int | None = None,
    place: int | None = None,
) -> CommandAnswer:
    """Return every event about *what* by offset. Raises `NotFound` where the log has none."""
    looking, read = looking_up_to(looking, to), _Read()
    count = (await looking.source.log.identity(timeout_s=looking.timeout_s)).partition_count
    named = named_places(looking, begin)
    require_places(named if place is None else named | {place}, count)
    chronicles = await _chronicles(looking, what, count, place, read)
    views = _views(looking, chronicles, first_offsets(begin, chronicles), begin, read)
    if last is not None:
        views = last_of(views, last)
    elif limit is not None:
        views = first_of(views, limit)
    first = await anext(views, None)  # so that all searching is done before anything is printed
    if not read.is_mentioned and read.there.troubles:
        raise read.there.not_found(looking, str(what))
    if not read.is_mentioned:
        raise await _nothing(looking, what, place)
    identity = await looking.source.log.identity(timeout_s=looking.timeout_s)
    is_segment = isinstance(what, SegmentLabel)
    return CommandAnswer(
        "history",
        OF_SEGMENT if is_segment else OF_PARTITION,
        _counted(with_first(first, views), read),
        HistoryHead(**log_fields(looking, identity), sought=str(what)),
        foot=read.foot,
        summary=partial(events_summary, told=read.there.notes()),
    )


# ------------------------------------------------------------------------------- where to look


async def _chronicles(
    looking: QueryContext, what: PartitionLabel | SegmentLabel, count: int, place: int | None,
    read: _Read,
) -> dict[int, EventHistory]:  # fmt: skip
    from rlmm.inspection.log_scan import find_mention  # noqa: PLC0415  # not for --help

    label = what.partition if isinstance(what, SegmentLabel) else what
    uuid = await _whole_id(looking, what) if isinstance(what, SegmentLabel) else None
    sought = HistorySubject(segment=uuid)
    if label is not None:
        sought = HistorySubject(uuid, label.topic, label.partition, label.topic_id)
    if place is None and label is not None and label.topic_id is not None:
        unnamed = TopicIdPartition(label.topic_id, "", label.partition)  # its place needs no name
        read.there = await readable(looking, [place_of(unnamed, count)], may_lack=False)
        return {one: EventHistory(sought) for one in read.there.places}
    if place is None and label is not None and looking.source.kind is StateSourceKind.SIDECAR:
        known = await _known_places(looking, label)
        if known:
            return {one: EventHistory(sought) for one in known}
    found: dict[int, EventHistory] = {}
    places = range(count) if place is None else (place,)
    read.there = await readable(looking, places, may_lack=True)
    for one in read.there.places:
        mention = await find_mention(
            looking.source.log, one, sought, looking.bound,
            timeout_s=looking.timeout_s, progress=looking.progress,
        )  # fmt: skip
        if mention is None:
            continue
        about = mention.partition if uuid is not None else None
        found[one] = EventHistory(sought if about is None else HistorySubject.of(about, uuid))
    return found


async def _known_places(looking: QueryContext, label: PartitionLabel) -> list[int]:
    """Return the places of that name; none where some are not ready, as the log has them all."""
    try:
        now = await looking.source.now(wait_s=looking.wait_s, progress=looking.progress)
    except NotReady:
        return []
    summaries = await now.user_partitions()
    return sorted({one.metadata_partition for one in summaries if label.names(one.partition)})


async def _whole_id(looking: QueryContext, label: SegmentLabel) -> Uuid:
    """Return the whole id of a present segment; `NotFound`, or `InvalidArgument` for several."""
    if label.uuid is not None:
        return label.uuid
    now = await looking.source.now(wait_s=looking.wait_s, progress=looking.progress)
    every = segments_of(now, SegmentFilter())
    found = sorted({one.id.uuid async for one in every if label.names(one.id.uuid)})
    if not found:
        msg = (
            f"no segment that is there now has an id that begins with {label.text}: of one that "
            "was deleted say the whole id"
        )
        raise NotFound(msg)
    if len(found) > 1:
        named = ", ".join(map(str, found[:_NAMED_MAX]))
        msg = f"{len(found)} segments have ids that begin with {label.text}: {named}"
        raise InvalidArgument(msg)
    return found[0]


async def _nothing(
    looking: QueryContext, what: PartitionLabel | SegmentLabel, place: int | None
) -> NotFound:
    msg = f"no event about {what} is in the log"
    log, timeout_s = looking.source.log, looking.timeout_s
    count = (await log.identity(timeout_s=timeout_s)).partition_count
    bounds = await log.bounds(range(count) if place is None else [place], timeout_s=timeout_s)
    cut = [
        one
        for one, found in bounds.items()
        if isinstance(found, LogBounds) and found.log_start_offset
    ]
    if cut:
        named = ", ".join(map(str, sorted(cut)[:_NAMED_MAX]))
        more = f" and {len(cut) - _NAMED_MAX} more" if len(cut) > _NAMED_MAX else ""
        msg += f"; the beginning of metadata partition {named}{more} is gone: perhaps it was there"
    return NotFound(msg)


# ------------------------------------------------------------------------------------- reading


async def _views(
    looking: QueryContext, chronicles: Mapping[int, EventHistory], firsts: Mapping[int, int],
    begin: MomentSelector | None, read: _Read,
) -> AsyncGenerator[HistoryLineView]:  # fmt: skip
    """Yield the lines from *begin* on, one metadata partition after the other."""
    from rlmm.inspection.replay import PartitionReplay  # noqa: PLC0415  # not for --help

    for place, chronicle in sorted(chronicles.items()):
        bound = looking.bound_of(chronicles.keys())
        replay = PartitionReplay(looking.source.log, place, bound, timeout_s=looking.timeout_s)
        first, from_ms = firsts.get(place, 0), None if begin is None else begin.time_ms
        has_begun = False
        async with aclosing(_lines(replay, chronicle, looking, place, read)) as lines:
            async for line in lines:
                one = line.happened
                has_begun = has_begun or (
                    one.next_offset > first and (from_ms is None or one.timestamp_ms >= from_ms)
                )
                if has_begun:
                    yield line_view(line)


async def _lines(
    replay: PartitionReplay, chronicle: EventHistory, looking: QueryContext, place: int, read: _Read
) -> AsyncGenerator[HistoryLine]:
    async with aclosing(replay.chunks()) as chunks:
        async for chunk in chunks:
            read.log_starts[place] = replay.log_start
            read.positions[place] = chunk.next_offset
            if looking.progress is not None and not read.is_mentioned:
                looking.progress(place, chunk.next_offset, replay.end)
            for happened in chunk.happened(chronicle.wanted):
                line = chronicle.tell(happened)
                if line is not None:
                    read.is_mentioned = True
                    yield line
    read.log_starts[place] = replay.log_start
    read.positions[place] = replay.end


async def _counted(
    views: AsyncGenerator[HistoryLineView], read: _Read
) -> AsyncGenerator[HistoryLineView]:
    async with aclosing(views):
        async for item in views:
            read.count(item)
            yield item


@click.command("history")
@past_query
@click.argument("what", type=SUBJECT, required=False, metavar="SEGMENT|TOPIC-PARTITION")
@SEGMENT_ID
@click.option(
    "--from", "begin", type=MOMENT, metavar="OFFSET|TIME",
    help="Show what happened from then on; verdicts need all that was before all the same.",
)  # fmt: skip
@END
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N events alone.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N events alone.")
@click.option(
    "--metadata-partition", "place", type=click.IntRange(0), metavar="N",
    help="Look there alone; else an id without its partition is looked for everywhere.",
)  # fmt: skip
def history(
    asked: SourceChoice, *, what: PartitionLabel | SegmentLabel | None,
    segment_id: SegmentLabel | None, **flags: Any,
) -> None:  # fmt: skip
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
    subject = what or segment_id
    if subject is None or (what and segment_id):
        raise click.UsageError("Name one segment or partition, as an argument or by --segment-id.")
    if flags["limit"] is not None and flags["last"] is not None:
        raise click.UsageError("--limit and --last contradict each other: give one of them.")
    answer(asked, history_answer, what=subject, **flags)
