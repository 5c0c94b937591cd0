"""`rlmm usage`: where the bytes of the tier are, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, UnsetType

from rlmm.base.time_text import duration_text
from rlmm.cli.common.answer_header import (
    MomentHead,
    Notes,
    moment_fields,
    note_lines,
    partitions_in_place,
    shared_fields,
)
from rlmm.cli.common.option_kinds import time_option
from rlmm.cli.common.partial_metadata import is_of_all
from rlmm.cli.common.query_options import TOPIC
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import size_text
from rlmm.cli.queries.stuck import is_chosen
from rlmm.errors import LogError
from rlmm.inspection.lag import lag_of, local_sizes
from rlmm.inspection.usage import (
    Grouping,
    PriceClock,
    Prices,
    TopicUsage,
    UsageSums,
    live_records,
    longest_of,
)
from rlmm.inspection.verify import hidden_of
from rlmm.metadata.segment import SegmentState
from rlmm.retention.retention import UNLIMITED, RetentionSettings, due_of, number
from rlmm.views.values import Number, ViewObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.cluster_facts import ClusterFacts, PartitionOffsets, TopicFacts
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.inspection.usage import GroupUsage
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.views.values import View


class UsageView(ViewObject):
    name: str
    segments: int
    size_bytes: int
    mean_segment_bytes: int
    is_small: bool
    waste_bytes: int
    oldest_ms: int | None
    newest_ms: int | None
    finished_segments: int
    finished_bytes: int
    open_segments: int
    open_bytes: int
    being_deleted_segments: int
    being_deleted_bytes: int
    abandoned_segments: int
    abandoned_bytes: int
    displaced_segments: int
    displaced_bytes: int
    due_segments: int | None
    due_bytes: int | None
    cost_month: Number | None
    cost_written: Number | None


class UsageHead(MomentHead):
    by: Grouping
    due_within_ms: int
    notes: Notes = UNSET


class MetadataTopicView(ViewObject):
    """The records of the metadata topic, and the smallest retention that loses no live one."""

    records: int
    live_records: int
    dead_ratio: Number
    oldest_needed_ms: int | None
    longest_retention_ms: int | None
    safe_retention_ms: int | None


class UsageFoot(ViewObject):
    totals: UsageView
    metadata_topic: MetadataTopicView | UnsetType = UNSET


_COLUMNS = (
    Column("name", "NAME"),
    Column("segments", "SEGMENTS", ValueFormat.NUMBER),
    Column("size_bytes", "SIZE", ValueFormat.SIZE),
    Column("mean_segment_bytes", "MEAN", ValueFormat.SIZE),
    Column("waste_bytes", "WASTE", ValueFormat.SIZE),
    Column("due_bytes", "DUE", ValueFormat.SIZE),
    Column("oldest_ms", "OLDEST", ValueFormat.TIME, is_extra=True),
    Column("newest_ms", "NEWEST", ValueFormat.TIME, is_extra=True),
    Column("finished_bytes", "FINISHED", ValueFormat.SIZE, is_extra=True),
    Column("open_bytes", "OPEN", ValueFormat.SIZE, is_extra=True),
    Column("being_deleted_bytes", "DELETING", ValueFormat.SIZE, is_extra=True),
    Column("abandoned_bytes", "ABANDONED", ValueFormat.SIZE, is_extra=True),
    Column("displaced_bytes", "DISPLACED", ValueFormat.SIZE, is_extra=True),
)
_COST_COLUMNS = (
    Column("cost_month", "COST/MONTH", ValueFormat.NUMBER),
    Column("cost_written", "WRITTEN FOR", ValueFormat.NUMBER, is_extra=True),
)


class _Asked:
    """Holds the cluster's answers; a part that the cluster did not answer is absent."""

    def __init__(self) -> None:
        self.topics: Mapping[str, TopicFacts] = {}
        self.offsets: Mapping[TopicIdPartition, PartitionOffsets] = {}
        self.local_bytes: Mapping[tuple[str, int], int] = {}
        self.notes: list[str] = []

    async def ask(self, looking: QueryContext, partitions: Sequence[TopicIdPartition]) -> None:
        cluster = looking.source.cluster
        if cluster is None or not looking.is_now:
            self.notes.append("retention is not known: no --bootstrap-server, or a past moment")
            return
        try:
            self.topics = await cluster.topics(sorted({one.topic for one in partitions}))
            self.offsets = await cluster.offsets(partitions)
            limits = {number(one.setting("retention.bytes")) for one in self.topics.values()}
            if limits - {None, UNLIMITED}:
                await self._ask_disks(cluster)
        except LogError as error:
            self.notes.append(f"retention is not known: {error}")

    async def _ask_disks(self, cluster: ClusterFacts) -> None:
        leaders = {
            (name, one): place.leader
            for name, topic in self.topics.items()
            for one, place in topic.partitions.items()
        }
        self.local_bytes = local_sizes(await cluster.log_dirs(), leaders)
        if not self.local_bytes:
            self.notes.append(
                "the sizes of local logs were not told: what a limit of size deletes is reckoned "
                "without records that are not tiered yet"
            )

    def only_local_bytes(
        self, partition: TopicIdPartition, segments: Sequence[SegmentMetadata]
    ) -> int:
        """Estimate the bytes of its leader that are not tiered; 0 where the size is unknown."""
        held = self.local_bytes.get((partition.topic, partition.partition))
        lag = lag_of(partition, segments, self.offsets.get(partition), held, (0, 1))
        return lag.only_local_bytes or 0

    def rules(
        self, partition: TopicIdPartition, segments: Sequence[SegmentMetadata] = ()
    ) -> RetentionSettings:
        """Return the retention of one partition; a later topic of its name does not count."""
        topic = self.topics.get(partition.topic)
        if topic is not None and topic.topic_id != partition.topic_id:
            topic = None
        only_local = self.only_local_bytes(partition, segments)
        return RetentionSettings.of(topic, self.offsets.get(partition), only_local)


async def usage_answer(
    looking: QueryContext,
    *,
    topic: str | None,
    grouping: str,
    due_within_ms: int,
    copy_open_ms: int,
    gib_month: float,
    put_thousand: float,
) -> CommandAnswer:
    moment, asked = await looking.moment(), _Asked()
    summaries = await partitions_in_place(moment, asked.notes)
    chosen = [one for one in summaries if is_chosen(one.partition.topic, topic)]
    await asked.ask(looking, [one.partition for one in chosen])
    now_ms = looking.bound.time_ms or looking.now_ms
    usage = UsageSums(Grouping(grouping), PriceClock(now_ms, copy_open_ms))
    oldest_ms: list[int] = []
    for one in chosen:
        shard = await moment.state(one.partition)
        segments = shard.segments(one.partition)
        rules = asked.rules(one.partition, segments)
        dues = due_of(segments, rules, now_ms + due_within_ms)
        is_known = None not in (rules.retention_ms, rules.retention_bytes)
        usage.add(dues, hidden_of(shard, one.partition), is_due_known=is_known)
        oldest_ms += [min(each.event_timestamp_ms for each in segments)] if segments else []
    prices = Prices(gib_month, put_thousand)
    foot = UsageFoot(_view(usage.total, prices))
    if topic is None and is_of_all(moment):  # of a part no retention is known to be safe
        foot.metadata_topic = await _metadata_topic(
            looking, summaries, moment.positions, asked, min(oldest_ms, default=None)
        )
    head = UsageHead(
        **moment_fields(looking, moment),
        by=Grouping(grouping),
        due_within_ms=due_within_ms,
        notes=asked.notes or UNSET,
    )
    return CommandAnswer(
        "usage",
        _COLUMNS + _COST_COLUMNS if prices.is_known else _COLUMNS,
        [_view(group, prices) for group in usage.groups()],
        head=head,
        foot=lambda: foot,
        summary=_summary,
    )


def _summary(document: View) -> Iterator[str]:
    totals, topic = document["totals"], document.get("metadata_topic")
    due = totals["due_bytes"]
    soon = "it is not known how much goes soon" if due is None else f"{size_text(due)} go soon"
    yield (
        f"{totals['segments']:,} segments, {size_text(totals['size_bytes'])}, of which "
        f"{size_text(totals['waste_bytes'])} are waste, and {soon}"
    )
    if totals["cost_month"] is not None:
        yield f"cost of a month: {totals['cost_month']:,.2f}"
    if isinstance(topic, dict):
        dead = f"{topic['dead_ratio']:.0%}"
        yield f"metadata topic: {topic['records']:,} records, {dead} of them not needed any more"
        yield f"its smallest safe retention: {_retention_text(topic['safe_retention_ms'])}"
    yield from note_lines(document)


def _retention_text(safe_ms: int | None) -> str:
    if safe_ms is None:
        return "not known, topics did not tell theirs"
    return "without limit" if safe_ms < 0 else duration_text(safe_ms / 1_000)


def _view(group: GroupUsage, prices: Prices) -> UsageView:
    sums: dict[str, Any] = {}
    for name in ("finished", "open", "being_deleted", "abandoned", "displaced", "due"):
        part = getattr(group, name)
        is_known = part is not None
        sums[f"{name}_segments"] = part.segments if is_known else None
        sums[f"{name}_bytes"] = part.size_bytes if is_known else None
    return UsageView(
        **shared_fields(UsageView, group),
        segments=group.all.segments,
        size_bytes=group.all.size_bytes,
        mean_segment_bytes=group.mean_bytes,
        **sums,
        cost_month=group.cost(prices) if prices.is_known else None,
        cost_written=group.put_cost(prices) if prices.is_known else None,
    )


async def _metadata_topic(
    looking: QueryContext,
    summaries: Sequence[PartitionSummary],
    positions: Mapping[int, int],
    asked: _Asked,
    oldest_ms: int | None,
) -> MetadataTopicView:
    starts = {
        place.metadata_partition: place.log_start or 0
        for place in (await looking.source.standing()).places
    }
    counts = {
        SegmentState.COPY_SEGMENT_STARTED: sum(one.started for one in summaries),
        SegmentState.COPY_SEGMENT_FINISHED: sum(one.finished for one in summaries),
        SegmentState.DELETE_SEGMENT_STARTED: sum(one.being_deleted for one in summaries),
    }
    known = [one.partition for one in summaries if one.segments]
    topic = TopicUsage(
        sum(position - starts.get(place, 0) for place, position in positions.items()),
        live_records(counts, sum(one.delete is not None for one in summaries)),
        oldest_ms,
        longest_of(asked.rules(one).retention_ms for one in known),
    )
    return MetadataTopicView(
        records=topic.records,
        live_records=topic.live,
        dead_ratio=topic.dead_ratio,
        oldest_needed_ms=topic.oldest_needed_ms,
        longest_retention_ms=topic.longest_retention_ms,
        safe_retention_ms=topic.safe_retention_ms(looking.now_ms),
    )


@click.command("usage")
@past_query
@TOPIC
@click.option(
    "--by", "grouping", type=click.Choice(["topic", "state", "epoch", "age"]), default="topic",
    show_default=True, help="What sums are made by.",
)  # fmt: skip
@time_option(
    "--due-within",
    "due_within_ms",
    "24h",
    "What retention will delete by then; its settings are the cluster's.",
)
@time_option("--copy-older-than", "copy_open_ms", "1h", "A copy that is open for longer is waste.")
@click.option(
    "--price-gib-month", "gib_month", type=click.FloatRange(min=0), default=0.0, metavar="PRICE",
    help="What storage costs you, in your money.",
)  # fmt: skip
@click.option(
    "--price-put-thousand", "put_thousand", type=click.FloatRange(min=0), default=0.0,
    metavar="PRICE", help="What a thousand writing requests cost you.",
)  # fmt: skip
def usage(asked: SourceChoice, **flags: Any) -> None:
    """
    Sum up bytes and segments, waste, what goes soon, and cost.

    Waste is copies that were never finished and segments that no look-up finds. With
    --bootstrap-server beside the source, retention is reckoned by the topics' own settings, and it
    is said which retention of the metadata topic would be safe.

    \b
    Examples:
      rlmm usage
      rlmm usage --by age --topic 'orders.*'
      rlmm usage --bootstrap-server kafka:9092 --due-within 7d
      rlmm usage --price-gib-month 0.023 --price-put-thousand 0.005 --output csv
    """
    answer(asked, usage_answer, **flags)
