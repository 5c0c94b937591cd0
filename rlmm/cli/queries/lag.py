"""`rlmm lag` and `rlmm offsets`: how far copies are, against the ends of the logs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from rlmm.base.time_text import duration_text
from rlmm.cli.common.answer_header import (
    MomentHead,
    Notes,
    all_segments,
    moment_fields,
    note_lines,
    partitions_in_place,
    shared_fields,
)
from rlmm.cli.common.option_kinds import time_option
from rlmm.cli.common.partial_metadata import is_of_all
from rlmm.cli.common.query_options import TOPIC
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query, query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import size_text
from rlmm.cli.queries.doctor import require_brokers, required_cluster
from rlmm.cli.queries.stuck import is_chosen
from rlmm.inspection.lag import disks, lag_of, local_sizes
from rlmm.metadata.assignment import place_of
from rlmm.metadata.ids import TopicIdPartition
from rlmm.retention.segment_lineage import finished_of, lineage_of
from rlmm.views.segment import PartitionView, partition_fields
from rlmm.views.values import Number, ViewObject, age_ms_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.cluster_facts import ClusterFacts, PartitionOffsets, TopicFacts
    from rlmm.inspection.lag import PartitionLag
    from rlmm.inspection.moment import Moment
    from rlmm.views.values import View


class LagView(PartitionView):
    log_start: int | None
    local_start: int | None
    log_end: int | None
    last_stable: int | None
    tier_start: int | None
    tier_end: int | None
    tier_end_of_broker: int | None
    leader_differs: bool
    lag_offsets: int | None
    lag_s: Number | None
    last_copied_ms: int | None
    open_copies: int
    local_bytes: int | None
    only_local_bytes: int | None
    rate_bytes_s: Number


class DiskView(ViewObject):
    """A log folder of a broker, and when it is full if copies stood still."""

    broker: int
    path: str
    total_bytes: int | None
    usable_bytes: int | None
    tiered_bytes: int
    rate_bytes_s: Number
    full_in_s: Number | None


class LagHead(MomentHead):
    rate_window_ms: int
    notes: Notes = UNSET


class LagTotals(ViewObject):
    partitions: int
    lag_offsets: int
    only_local_bytes: int
    leaders_differ: int
    first_full_in_s: Number | None


class LagFoot(ViewObject):
    totals: LagTotals


class OffsetsView(PartitionView):
    """The ends of the log and of the tier; null where the cluster was not asked."""

    tier_start: int | None
    tier_end: int | None
    earliest: int | None = None
    earliest_local: int | None = None
    latest_tiered: int | None = None
    earliest_pending_upload: int | None = None
    last_stable: int | None = None
    latest: int | None = None


class OffsetsHead(MomentHead):
    is_told_by_cluster: bool
    notes: Notes = UNSET


_LAG_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", ValueFormat.NUMBER),
    Column("tier_end", "TIERED TO", ValueFormat.NUMBER),
    Column("last_stable", "STABLE", ValueFormat.NUMBER),
    Column("lag_offsets", "LAG", ValueFormat.NUMBER),
    Column("lag_s", "AGE", ValueFormat.DURATION),
    Column("only_local_bytes", "ONLY LOCAL", ValueFormat.SIZE),
    Column("leader_differs", "DIFFERS"),
    Column("rate_bytes_s", "BYTES/S", ValueFormat.NUMBER, is_extra=True),
    Column("open_copies", "OPEN", ValueFormat.NUMBER, is_extra=True),
    Column("local_start", "LOCAL FROM", ValueFormat.NUMBER, is_extra=True),
    Column("log_end", "LOG END", ValueFormat.NUMBER, is_extra=True),
    Column("tier_end_of_broker", "LEADER SAYS", ValueFormat.NUMBER, is_extra=True),
    Column("local_bytes", "LOCAL", ValueFormat.SIZE, is_extra=True),
)
_DISK_COLUMNS = (
    Column("broker", "BROKER", ValueFormat.NUMBER),
    Column("path", "FOLDER"),
    Column("usable_bytes", "FREE", ValueFormat.SIZE),
    Column("tiered_bytes", "OF TIERED", ValueFormat.SIZE),
    Column("rate_bytes_s", "BYTES/S", ValueFormat.NUMBER),
    Column("full_in_s", "FULL IN", ValueFormat.DURATION),
    Column("total_bytes", "TOTAL", ValueFormat.SIZE, is_extra=True),
)
_OFFSET_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", ValueFormat.NUMBER),
    Column("tier_start", "TIER FROM", ValueFormat.NUMBER),
    Column("tier_end", "TIER TO", ValueFormat.NUMBER),
    Column("earliest", "EARLIEST", ValueFormat.NUMBER),
    Column("earliest_local", "LOCAL", ValueFormat.NUMBER),
    Column("latest_tiered", "TIERED", ValueFormat.NUMBER),
    Column("latest", "LATEST", ValueFormat.NUMBER),
    Column("earliest_pending_upload", "PENDING", ValueFormat.NUMBER, is_extra=True),
    Column("last_stable", "STABLE", ValueFormat.NUMBER, is_extra=True),
    Column("topic_id", "TOPIC ID", is_extra=True),
)


async def lag_answer(
    looking: QueryContext, *, topic: str | None, window_ms: int, shows_disks: bool
) -> CommandAnswer:
    cluster = required_cluster(looking, "lag")
    # A disk fills with what others follow as well, so of disks nothing is told without these.
    moment = await (looking.whole() if shows_disks else looking.moment())
    topics, every, offsets = await _tiered(cluster, topic)
    partitions = _looked_at(every, moment)
    dirs = await cluster.log_dirs()
    leaders = {
        (one.topic, one.partition): topics[one.topic].partitions[one.partition].leader
        for one in partitions
    }
    sizes = local_sizes(dirs, leaders)
    window = (looking.now_ms - window_ms, looking.now_ms)
    notes: list[str] = []
    known = {one.partition for one in await partitions_in_place(moment, notes)}
    rows = [
        lag_of(
            one, await all_segments(moment, one) if one in known else [], offsets.get(one),
            sizes.get((one.topic, one.partition)), window,
        )
        for one in partitions
    ]  # fmt: skip
    rates = {(one.partition.topic, one.partition.partition): one.rate_bytes_s for one in rows}
    outlooks = disks(dirs, rates)
    items: list[DiskView] | list[LagView] = (
        [DiskView(**asdict(one), full_in_s=one.full_in_s) for one in outlooks]
        if shows_disks
        else [_lag_view(one, looking.now_ms) for one in rows]
    )
    totals = LagTotals(
        partitions=len(rows),
        lag_offsets=sum(one.lag_offsets or 0 for one in rows),
        only_local_bytes=sum(one.only_local_bytes or 0 for one in rows),
        leaders_differ=sum(one.is_told_otherwise for one in rows),
        first_full_in_s=min(
            (one.full_in_s for one in outlooks if one.full_in_s is not None), default=None
        )
        if is_of_all(moment)
        else None,
    )
    head = LagHead(**moment_fields(looking, moment), rate_window_ms=window_ms, notes=notes or UNSET)
    return CommandAnswer(
        "disks" if shows_disks else "lag",
        _DISK_COLUMNS if shows_disks else _LAG_COLUMNS,
        items,
        head=head,
        foot=lambda: LagFoot(totals),
        summary=_summary,
    )


def _summary(document: View) -> Iterator[str]:
    yield from note_lines(document)
    totals = document["totals"]
    yield (
        f"{totals['partitions']:,} partitions, {totals['lag_offsets']:,} offsets are not tiered, "
        f"about {size_text(totals['only_local_bytes'])}"
    )
    if totals["leaders_differ"]:
        yield f"{totals['leaders_differ']:,} leaders believe in another end of the tier"
    first_s = totals["first_full_in_s"]
    if first_s is not None:
        yield f"if copies stood still, the first disk would be full in {duration_text(first_s)}"


async def offsets_answer(looking: QueryContext, *, topic: str | None) -> CommandAnswer:
    moment = await looking.moment()
    cluster = looking.source.cluster if looking.is_now else None
    notes: list[str] = []
    held = [
        one.partition
        for one in await partitions_in_place(moment, notes)
        if is_chosen(one.partition.topic, topic)
    ]
    told: dict[TopicIdPartition, PartitionOffsets] = {}
    partitions, known = held, set(held)
    if cluster is not None:
        _, there, ends_there = await _tiered(cluster, topic)
        told.update(ends_there)
        told.update(await cluster.offsets(sorted(known.difference(there), key=str)))
        partitions = list(dict.fromkeys([*held, *_looked_at(there, moment)]))
    items = []
    for one in sorted(partitions, key=lambda one: (one.topic, one.partition, one.topic_id)):
        lineage = lineage_of(finished_of(await all_segments(moment, one) if one in known else []))
        ends = told.get(one)
        view = OffsetsView(
            **partition_fields(one),
            tier_start=lineage.begins[0][1] if lineage.begins else None,
            tier_end=lineage.end,
        )
        if ends is not None:
            view.earliest, view.earliest_local = ends.earliest, ends.earliest_local
            view.latest_tiered, view.latest = ends.latest_tiered, ends.latest
            view.earliest_pending_upload = ends.earliest_pending_upload
            view.last_stable = ends.last_stable
        items.append(view)
    head = OffsetsHead(
        **moment_fields(looking, moment),
        is_told_by_cluster=cluster is not None,
        notes=notes or UNSET,
    )
    return CommandAnswer("offsets", _OFFSET_COLUMNS, items, head=head, summary=note_lines)


async def _tiered(
    cluster: ClusterFacts, topic: str | None
) -> tuple[
    Mapping[str, TopicFacts],
    list[TopicIdPartition],
    Mapping[TopicIdPartition, PartitionOffsets],
]:
    topics = {
        name: one
        for name, one in (await cluster.topics()).items()
        if one.is_tiered and is_chosen(name, topic)
    }
    partitions = [
        TopicIdPartition(one.topic_id, name, number)
        for name, one in sorted(topics.items())
        for number in sorted(one.partitions)
    ]
    return topics, partitions, await cluster.offsets(partitions)


def _looked_at(partitions: Sequence[TopicIdPartition], moment: Moment) -> list[TopicIdPartition]:
    count = moment.identity.partition_count
    return [one for one in partitions if place_of(one, count) in moment.positions]


def _lag_view(lag: PartitionLag, now_ms: int) -> LagView:
    return LagView(
        **{**shared_fields(LagView, lag), **partition_fields(lag.partition)},
        leader_differs=lag.is_told_otherwise,
        lag_s=age_ms_s(lag.last_copied_ms, now_ms) if lag.lag_offsets else None,
    )


@click.command("lag")
@query
@TOPIC
@time_option(
    "--rate-window",
    "window_ms",
    "24h",
    "Rates are of what came in since that time.",
    is_positive=True,
)
@click.option("--disks", "shows_disks", is_flag=True,
              help="One row for each log folder of the brokers, and when it is full.")  # fmt: skip
def lag(asked: SourceChoice, **flags: Any) -> None:
    """
    Show how far copies are behind, and when disks are full.

    From first principles: the log's end and last stable offset against what is in finished
    segments, not the brokers' own gauge; where the leader tells another end of the tier the row is
    marked. Asks the cluster, so --bootstrap-server is needed. How long until a disk is full is
    reckoned as if copies stood still from now on.

    \b
    Examples:
      rlmm lag --bootstrap-server kafka:9092
      rlmm lag --bootstrap-server kafka:9092 --topic 'orders.*' --output csv
      rlmm lag --bootstrap-server kafka:9092 --disks
    """
    require_brokers(asked, "lag")
    answer(asked, lag_answer, **flags)


@click.command("offsets")
@past_query
@TOPIC
def offsets(asked: SourceChoice, topic: str | None) -> None:
    """
    Show where each log and its tier begin and end.

    With --bootstrap-server the same as kafka-get-offsets tells for earliest, earliest-local,
    latest-tiered, earliest-pending-upload and latest, beside what the metadata says of the tier;
    without it, and with --at, that alone, which is exact to the segment.

    \b
    Examples:
      rlmm offsets --topic orders
      rlmm offsets --topic orders --at -1d
      rlmm offsets --bootstrap-server kafka:9092 --output tsv --no-headers
    """
    answer(asked, offsets_answer, topic=topic)
