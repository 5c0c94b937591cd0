"""`rlmm events`: the metadata topic, decoded."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Meta

from rlmm.cli.common.answer_header import LogHead, log_fields, offsets_before
from rlmm.cli.common.item_streams import first_of, with_first
from rlmm.cli.common.log_range import first_offsets, looking_up_to, named_places, require_places
from rlmm.cli.common.option_kinds import switch
from rlmm.cli.common.parameter_types import SEGMENT
from rlmm.cli.common.partial_metadata import readable
from rlmm.cli.common.query_options import BEGIN, END, PLACES, TOPIC, TOPIC_PARTITIONS
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.queries.event_text import (
    EXTRAS,
    partition_or_nothing,
    segment_and_event,
    time_text,
)
from rlmm.errors import ConfigError, InvalidArgument, LogError
from rlmm.inspection.event_filter import VERDICTS, EventFilter, EventKind, verdict_words
from rlmm.inspection.selectors import partition_filter
from rlmm.inspection.source_status import StateSourceKind
from rlmm.views.event import EventView, event_view
from rlmm.views.values import Count, PlaceOffsets, ViewObject, choice

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence

    from rlmm.cli.common.partial_metadata import ReadablePartitions
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.event_stream import EventReader
    from rlmm.inspection.selectors import MomentSelector, SegmentLabel
    from rlmm.views.values import View

COLUMNS = (
    Column("", "TIME", made_of=time_text),
    Column("", "PLACE", made_of=lambda item: f"{item['metadata_partition']}:{item['offset']}"),
    Column("", "PARTITION", made_of=partition_or_nothing),
    Column("", "SEGMENT, EVENT AND OUTCOME", made_of=segment_and_event),
    Column("offset", "OFFSET", ValueFormat.NUMBER, is_extra=True),
    *EXTRAS,
)


class EventsHead(LogHead):
    knows_verdicts: bool


class EventsFoot(ViewObject):
    as_of_offsets: Annotated[
        PlaceOffsets, Meta(description="The last offset that was read, -1 for none.")
    ]
    events: Count
    verdicts: dict[Annotated[str, choice([*VERDICTS, "not-judged"])], Count]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class EventsQuestion:
    wanted: EventFilter
    places: tuple[int, ...] = ()
    begin: MomentSelector | None = None
    to: MomentSelector | None = None
    limit: int | None = None
    follows: bool = False
    knows_verdicts: bool = True

    @property
    def is_of_one(self) -> bool:
        return self.wanted.segment is not None or self.wanted.partitions.is_of_one


@dataclass(slots=True)
class _Shown:
    """The readers, and the counts of the events that were shown."""

    readers: Mapping[int, EventReader]
    knows_verdicts: bool
    there: ReadablePartitions
    is_mentioned: bool = False
    """Whether any event is about the subject, shown or not."""
    counts: dict[str, int] = field(default_factory=dict)

    def view(self, happened: EventRecord) -> EventView:
        item = event_view(happened, knows_verdict=self.knows_verdicts)
        word = item.verdict or "not-judged"
        self.counts[word] = self.counts.get(word, 0) + 1
        return item

    def foot(self) -> EventsFoot:
        return EventsFoot(
            as_of_offsets=offsets_before(
                {place: reader.position for place, reader in self.readers.items()}
            ),
            events=sum(self.counts.values()),
            verdicts=dict(sorted(self.counts.items())),
            notes=list(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        yield from self.there.notes()
        for place, one in sorted(self.readers.items()):
            if one.log_start > 0:
                yield (
                    f"the log of metadata partition {place} begins at offset {one.log_start}: "
                    "what was before is gone"
                )


async def events_answer(looking: QueryContext, *, asking: EventsQuestion) -> CommandAnswer:
    from rlmm.inspection.event_stream import readers_of  # noqa: PLC0415  # not for --help

    looking = _require_meaning(looking_up_to(looking, asking.to), asking)
    log = looking.source.log
    identity = await log.identity(timeout_s=looking.timeout_s)
    places = _places(asking.places, identity.partition_count)
    require_places(named_places(looking, asking.begin), identity.partition_count)
    firsts = first_offsets(asking.begin, places)
    may_lack = asking.is_of_one and not asking.places and not asking.follows
    there = await readable(looking, places, may_lack=may_lack)
    is_tail = asking.follows and asking.begin is None
    if is_tail and not asking.knows_verdicts:
        firsts = await _ends(looking, places)
    bounds = {place: looking.bound_of(places) for place in there.places}
    readers = readers_of(
        log, bounds, timeout_s=looking.timeout_s, progress=looking.progress,
        firsts=None if asking.knows_verdicts else firsts,
    )  # fmt: skip
    shown = _Shown(readers, asking.knows_verdicts, there)
    if is_tail:
        for reader in readers.values():
            async for _ in reader.happened():
                pass
        told = _followed(looking, readers, asking)
    else:
        told = _told(looking, readers, asking, firsts, shown)
    views = _views(first_of(told, asking.limit), shown)
    if not asking.follows:  # all that takes its time is done before anything is printed
        views = with_first(await anext(views, None), views)
        if there.troubles and not shown.is_mentioned:
            raise there.not_found(looking, "it")
    return CommandAnswer(
        "events",
        COLUMNS,
        views,
        EventsHead(**log_fields(looking, identity), knows_verdicts=asking.knows_verdicts),
        foot=shown.foot,
        summary=partial(events_summary, told=there.notes()),
    )


def _require_meaning(looking: QueryContext, asking: EventsQuestion) -> QueryContext:
    if asking.follows and not looking.is_now:
        msg = "--follow goes on from the present, and --to or --at ends before: leave one out"
        raise InvalidArgument(msg)
    if asking.follows and looking.source.kind is StateSourceKind.FOLDERS:
        msg = "copied folders do not grow: --follow needs a service, or --bootstrap-server"
        raise ConfigError(msg)
    if asking.wanted.needs_verdicts and not asking.knows_verdicts:
        msg = "--verdict asks what became of events, and --no-verdicts does not find that out"
        raise InvalidArgument(msg)
    return looking


def _places(asked: Collection[int], count: int) -> list[int]:
    require_places(asked, count)
    return sorted(set(asked)) or list(range(count))


async def _ends(looking: QueryContext, places: Collection[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    bounds = await looking.source.log.bounds(places, timeout_s=looking.timeout_s)
    for place, bound in bounds.items():
        if isinstance(bound, LogError):
            raise bound
        found[place] = bound.high_watermark
    return found


async def _told(
    looking: QueryContext,
    readers: Mapping[int, EventReader],
    asking: EventsQuestion,
    firsts: Mapping[int, int],
    shown: _Shown,
) -> AsyncGenerator[EventRecord]:
    from rlmm.inspection.event_stream import merged  # noqa: PLC0415  # not for --help

    streams = [
        _wanted(reader, asking, firsts.get(place, 0), shown) for place, reader in readers.items()
    ]
    async with aclosing(merged(streams)) as there:
        async for happened in there:
            yield happened
    if asking.follows:
        async with aclosing(_followed(looking, readers, asking)) as coming:
            async for happened in coming:
                yield happened


async def _wanted(
    reader: EventReader, asking: EventsQuestion, first: int, shown: _Shown
) -> AsyncGenerator[EventRecord]:
    from_ms = None if asking.begin is None else asking.begin.time_ms
    has_begun = False
    async for one in reader.happened():
        shown.is_mentioned = shown.is_mentioned or asking.wanted.is_about(one)
        has_begun = has_begun or (
            one.next_offset > first and (from_ms is None or one.timestamp_ms >= from_ms)
        )
        if has_begun and asking.wanted.allows(one):
            yield one


async def _followed(
    looking: QueryContext, readers: Mapping[int, EventReader], asking: EventsQuestion
) -> AsyncGenerator[EventRecord]:
    from rlmm.inspection.event_stream import followed  # noqa: PLC0415  # not for --help

    log, timeout_s = looking.source.log, looking.timeout_s
    async with aclosing(followed(log, readers, timeout_s=timeout_s)) as coming:
        async for one in coming:
            if asking.wanted.allows(one):
                yield one


async def _views(told: AsyncGenerator[EventRecord], shown: _Shown) -> AsyncGenerator[EventView]:
    async with aclosing(told):
        async for happened in told:
            yield shown.view(happened)


def events_summary(document: View, *, told: Collection[str]) -> Sequence[str]:
    """Sum up a document without *told*, the notes that were on standard error before."""
    verdicts, notes = document["verdicts"], document["notes"]
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return [
        f"{document['events']} events" + (f": {said}" if said else ""),
        *(one for one in notes if one not in told),
    ]


_KINDS = ("segment", "update", "partition-delete", "snapshot", "unreadable")
_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED", "DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)  # fmt: skip


@click.command("events")
@past_query
@PLACES
@TOPIC
@TOPIC_PARTITIONS
@click.option(
    "--segment-id", "label", type=SEGMENT, metavar="ID", help="About this segment; its whole id."
)
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(_KINDS), help="Of this kind; repeatable."
)
@click.option(
    "--state", "states", multiple=True, type=click.Choice(_STATES, case_sensitive=False),
    metavar="STATE", help="That ask for this state, in Kafka's names; may be repeated.",
)  # fmt: skip
@click.option(
    "--verdict", "verdicts", multiple=True, metavar="WORD",
    help="Of which this became: applied, duplicate, rejected, undecodable, or a reason such as "
    "unknown-segment or displaced-another-segment; may be repeated.",
)  # fmt: skip
@click.option(
    "--broker", "brokers", multiple=True, type=int, metavar="ID", help="Written by it; repeatable."
)
@BEGIN
@END
@click.option("--limit", type=click.IntRange(1), metavar="N", help="No more than these.")
@switch("--follow", "Follow new events.")
@click.option(
    "--no-verdicts", is_flag=True,
    help="Begin at once: do not find out what became of events, which takes all that was before.",
)  # fmt: skip
def events(
    asked: SourceChoice, *, places: tuple[int, ...], begin: MomentSelector | None,
    to: MomentSelector | None, limit: int | None, follow: bool, no_verdicts: bool, **meant: Any,
) -> None:  # fmt: skip
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
    asking = EventsQuestion(_filter_of(**meant), places, begin, to, limit, follow, not no_verdicts)
    answer(asked, events_answer, asking=asking)


def _filter_of(
    *, topic: str | None, topic_partitions: str | None, label: SegmentLabel | None,
    kinds: Collection[str], states: Collection[str], verdicts: Collection[str],
    brokers: Collection[int],
) -> EventFilter:  # fmt: skip
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
