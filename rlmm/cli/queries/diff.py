"""`rlmm diff`: what differs between two moments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Meta

from rlmm.cli.common.answer_header import LogHead, log_fields, offsets_before
from rlmm.cli.common.item_streams import with_first
from rlmm.cli.common.log_range import bound_from, looking_up_to, named_places, require_places
from rlmm.cli.common.option_kinds import switch
from rlmm.cli.common.parameter_types import MOMENT
from rlmm.cli.common.query_options import PLACES, TOPIC, TOPIC_PARTITIONS
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import (
    NOTHING,
    PARTITION_COLUMNS,
    size_text,
    state_text,
)
from rlmm.errors import InvalidArgument
from rlmm.inspection.moment_diff import changes_of, compare
from rlmm.inspection.selectors import partition_filter
from rlmm.views.change import (
    ChangeCounts,
    ChangeView,
    PartitionChangeView,
    change_view,
    changes_view,
    partition_change_view,
)
from rlmm.views.event import Verdict
from rlmm.views.values import Count, PlaceOffsets, ViewObject

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.moment_diff import MomentDiff, PartitionPair
    from rlmm.inspection.selectors import MomentSelector, PartitionFilter
    from rlmm.views.values import View


def _what_text(item: View) -> str:
    before, after = (
        NOTHING if state is None else state_text(str(state))
        for state in (item["state_before"], item["state_after"])
    )
    offsets = f"{item['start_offset']}-{item['last_offset']}"
    match item["change"]:
        case "watermark":
            old, new = _or_nothing(item["watermark_before"]), _or_nothing(item["watermark_after"])
            return f"epoch {item['epoch']} reaches {old} -> {new}"
        case "partition-appeared":
            return "nothing was known of it before"
        case "partition-delete":
            return f"{before} -> {after} by {item['broker_id']}"
        case "segment-appeared" | "segment-changed":
            return f"{offsets} {after}"
        case "segment-gone" | "segment-being-deleted":
            return f"{offsets}, was {before}"
    return offsets


def _change_text(item: View) -> str:
    return str(item["change"]).removeprefix("segment-")


def _or_nothing(value: object) -> object:
    return NOTHING if value is None else value


COLUMNS = (
    *PARTITION_COLUMNS,
    Column("", "CHANGE", made_of=_change_text),
    Column("change", "KIND", is_extra=True),
    Column("segment_id", "SEGMENT ID"),
    Column("", "WHAT", made_of=_what_text),
    Column("start_offset", "START", ValueFormat.NUMBER, is_extra=True),
    Column("last_offset", "LAST", ValueFormat.NUMBER, is_extra=True),
    Column("state_before", "STATE BEFORE", ValueFormat.STATE, is_extra=True),
    Column("state_after", "STATE AFTER", ValueFormat.STATE, is_extra=True),
    Column("size_before", "SIZE BEFORE", ValueFormat.SIZE, is_extra=True),
    Column("size_after", "SIZE AFTER", ValueFormat.SIZE, is_extra=True),
    Column("epoch", "EPOCH", ValueFormat.NUMBER, is_extra=True),
    Column("watermark_before", "REACHED BEFORE", ValueFormat.NUMBER, is_extra=True),
    Column("watermark_after", "REACHED AFTER", ValueFormat.NUMBER, is_extra=True),
    Column("broker_id", "BROKER", ValueFormat.NUMBER, is_extra=True),
    Column("event_timestamp_ms", "LAST EVENT", ValueFormat.TIME, is_extra=True),
    Column("metadata_partition", "METADATA", ValueFormat.NUMBER, is_extra=True),
)
SUMMARY_COLUMNS = (
    *PARTITION_COLUMNS,
    Column("changes.segment-appeared", "APPEARED", ValueFormat.NUMBER),
    Column("changes.segment-finished", "FINISHED", ValueFormat.NUMBER),
    Column("changes.segment-being-deleted", "DELETING", ValueFormat.NUMBER),
    Column("changes.segment-gone", "GONE", ValueFormat.NUMBER),
    Column("before.size_bytes", "SIZE BEFORE", ValueFormat.SIZE),
    Column("after.size_bytes", "SIZE AFTER", ValueFormat.SIZE),
    Column("after.delete", "DELETION", ValueFormat.STATE, is_extra=True),
    Column("metadata_partition", "METADATA", ValueFormat.NUMBER, is_extra=True),
)


class DiffFoot(ViewObject):
    from_offsets: Annotated[
        PlaceOffsets, Meta(description="The last offset of the first moment, -1 for none.")
    ]
    to_offsets: Annotated[
        PlaceOffsets, Meta(description="The last offset of the second moment, -1 for none.")
    ]
    partitions: Annotated[int, Meta(ge=0, description="User partitions that have changed.")]
    changes: ChangeCounts
    size_before: Annotated[int, Meta(description="Of those partitions.")]
    size_after: int
    events: Annotated[
        dict[Verdict, Count], Meta(description="Events in between, by what became of them.")
    ]
    notes: list[str]


@dataclass(slots=True)
class _Sums:
    first_offsets: dict[int, int] = field(default_factory=dict)
    next_offsets: dict[int, int] = field(default_factory=dict)
    log_starts: dict[int, int] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    partitions: int = 0
    size_before: int = 0
    size_after: int = 0

    def read(self, compared: MomentDiff) -> None:
        place = compared.metadata_partition
        self.first_offsets[place] = compared.first_offset
        self.next_offsets[place] = compared.next_offset
        self.log_starts[place] = compared.log_start
        self.verdicts += compared.verdicts

    def differs(self, both: PartitionPair, counts: Counter[str]) -> None:
        before, after = both.summaries
        self.partitions += 1
        self.changes += counts
        self.size_before += before.size_bytes
        self.size_after += after.size_bytes

    def foot(self) -> DiffFoot:
        return DiffFoot(
            from_offsets=offsets_before(self.first_offsets),
            to_offsets=offsets_before(self.next_offsets),
            partitions=self.partitions,
            changes=changes_view(self.changes),
            size_before=self.size_before,
            size_after=self.size_after,
            events=dict(sorted(self.verdicts.items())),
            notes=[
                f"the log of metadata partition {place} begins at offset {start}: segments whose "
                "first record was before are in neither state"
                for place, start in sorted(self.log_starts.items())
                if start > 0
            ],
        )


async def diff_answer(
    looking: QueryContext,
    *,
    begin: MomentSelector,
    to: MomentSelector | None,
    wanted: PartitionFilter,
    places: tuple[int, ...] = (),
    is_summary: bool = False,
) -> CommandAnswer:
    """Compare the state at *begin* with the one at *to*, now by default."""
    looking = looking_up_to(looking, to)
    _require_order(looking, begin)
    identity = await looking.source.log.identity(timeout_s=looking.timeout_s)
    chosen = _places(looking, begin, places, identity.partition_count)
    sums = _Sums()
    views = _views(looking, begin, wanted, chosen, sums, is_summary=is_summary)
    first = await anext(views, None)  # what takes its time is done before anything is printed
    return CommandAnswer(
        "diff-summary" if is_summary else "diff",
        SUMMARY_COLUMNS if is_summary else COLUMNS,
        with_first(first, views),
        LogHead(**log_fields(looking, identity)),
        foot=sums.foot,
        summary=_summary,
    )


def _require_order(looking: QueryContext, begin: MomentSelector) -> None:
    """Refuse two times, or two offsets, of which the second is the earlier."""
    later, to = looking.bound, begin
    if later.time_ms is not None and to.time_ms is not None and later.time_ms < to.time_ms:
        msg = "--to lies before --from"
        raise InvalidArgument(msg)


def _places(
    looking: QueryContext, begin: MomentSelector, places: Collection[int], count: int
) -> list[int]:
    named = sorted(set(places) or named_places(looking, begin))
    require_places(named, count)
    return named or list(range(count))


async def _views(
    looking: QueryContext,
    begin: MomentSelector,
    wanted: PartitionFilter,
    places: Collection[int],
    sums: _Sums,
    *,
    is_summary: bool,
) -> AsyncGenerator[ChangeView | PartitionChangeView]:
    from rlmm.inspection.replay import PartitionReplay  # noqa: PLC0415  # not for --help

    for place in places:
        replay = PartitionReplay(
            looking.source.log, place, bound_from(begin, places), timeout_s=looking.timeout_s
        )
        progress = looking.progress if not sums.partitions else None
        compared = await compare(replay, place, looking.bound_of(places), progress)
        sums.read(compared)
        for both in compared.both(wanted.allows):
            counts: Counter[str] = Counter()
            for change in changes_of(both.before, both.after, both.partition):
                counts[change.kind] += 1
                if not is_summary:
                    yield change_view(both, change)
            if counts:
                sums.differs(both, counts)
                if is_summary:
                    yield partition_change_view(both, counts)


def _summary(document: View) -> Sequence[str]:
    changes, events, notes = document["changes"], document["events"], document["notes"]
    before, after = document["size_before"], document["size_after"]
    if not document["partitions"]:
        return ["nothing has changed", *notes]
    said = ", ".join(f"{count} {name}" for name, count in changes.items() if count)
    happened = ", ".join(f"{count} {name}" for name, count in events.items())
    return [
        f"user partitions that changed: {document['partitions']}; {said}",
        f"their size: {size_text(before)} -> {size_text(after)}",
        f"events in between: {happened}",
        *notes,
    ]


@click.command("diff")
@query
@click.option(
    "--from", "begin", type=MOMENT, metavar="OFFSET|TIME", required=True,
    help="The first moment: a time, or once the event at OFFSET of the metadata partition was "
    "applied (PARTITION:OFFSET,... for several).",
)  # fmt: skip
@click.option("--to", type=MOMENT, metavar="OFFSET|TIME", help="The second moment; else it is now.")
@PLACES
@TOPIC
@TOPIC_PARTITIONS
@switch("--summary", "One line for each user partition.", "is_summary")
def diff(
    asked: SourceChoice, topic: str | None, topic_partitions: str | None, **flags: Any
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
    answer(asked, diff_answer, wanted=partition_filter(topic, topic_partitions), **flags)
