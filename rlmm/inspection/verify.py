"""
The verification of the tier's metadata: gaps, look-ups, and the ends of the log. Pure. Stock
brokers are the measure: a hole is one that a consumer meets, an overlap does no harm, and an epoch
that was replaced is history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.findings.finding import Finding, error, note, of_partition, warning
from rlmm.inspection.epoch_order import KINDS as EPOCH_KINDS
from rlmm.inspection.epoch_order import epoch_order
from rlmm.inspection.explain_findings import STOCK_LOOKUP_EMPTY
from rlmm.inspection.lookup_trace import forgotten_of, shadowed_in
from rlmm.retention.segment_lineage import (
    began_behind,
    finished_of,
    gaps_in,
    lineage_of,
    overlaps_in,
    wanted_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.findings.finding import FindingKind
    from rlmm.inspection.cluster_facts import PartitionOffsets
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.retention.segment_lineage import EpochStretch, Lineage

LOOKUP_HOLE = error(
    "LOOKUP-HOLE",
    "offsets that no finished segment covers",
    "a consumer that comes to them gets no data, or is told that they are out of range; if the "
    "local log does not have them any more they are lost",
    "see `rlmm explain` for what became of the segment that held them, and whether a copy of them "
    "is still open (`rlmm stuck`)",
)
HIDDEN_SEGMENT = warning(
    "HIDDEN-SEGMENT",
    "a finished segment that another one has displaced in every look-up",
    "stock brokers before the repair of KAFKA-20932 forget it: its offsets may not be found, and "
    "retention never deletes its objects",
    "nothing to do where its offsets are covered; else have them copied again, and have retention "
    "of that segment watched",
)
OVERLAP = note(
    "OVERLAP",
    "the same offsets in two finished segments",
    "harmless: two leaders copied the same records; only storage is paid twice",
    "nothing to do, retention deletes both",
)
SUPERSEDED_EPOCH = note(
    "SUPERSEDED-EPOCH",
    "segments of a leader epoch that was replaced",
    "after an unclean election what the old leader had copied is not part of the log any more",
    "nothing to do: brokers delete segments outside their epochs, and no look-up reads them",
)
HISTORY_TRIMMED = error(
    "HISTORY-TRIMMED",
    "the metadata topic does not begin at its beginning",
    "segments whose first record is gone are not known to any service any more, nor to a broker "
    "that restarts",
    "set `retention.ms=-1` on the metadata topic, and rebuild what is missing from the store",
)
WRONG_PLACE = error(
    "WRONG-PLACE",
    "events of a user partition in a metadata partition that is not its own",
    "the number of partitions of the metadata topic is not the one that they were written with: "
    "brokers look for these events elsewhere, and see an empty tier",
    "bring the partition count back, or have the events written anew; never change it again",
)
TOPIC_RECREATED = warning(
    "TOPIC-RECREATED",
    "one topic name with several topic ids",
    "the topic was deleted and created anew: what the old one left is not found by its name, and "
    "is paid for",
    "see `rlmm stuck` for the deletion that was not finished",
)
NOWHERE = error(
    "NOWHERE",
    "offsets that are neither tiered nor on local disks",
    "the log says that it begins before them, and neither tier nor brokers have them",
    "if they are in the store, rebuild their metadata; else move the log start behind them, so "
    "that consumers are told",
)
BELOW_LOG_START = note(
    "BELOW-LOG-START",
    "segments that lie before the log's start",
    "retention will delete them; they are not read",
    "nothing to do, unless they stay for days: then see `rlmm stuck`",
)
BEYOND_LOG_END = warning(
    "BEYOND-LOG-END",
    "the tier reaches beyond the end of the log",
    "the log was cut after the copy, as by an unclean election: what is written there now may "
    "differ from what was copied",
    "look whether the leader epochs of new segments are later ones; consumers go by those",
)
BROKEN_RULE = error(
    "BROKEN-RULE",
    "the state contradicts its own rules",
    "this must not be: it is a fault of ours, or of a snapshot",
    "please report it with a `rlmm support-bundle`; a restart without snapshots reads all anew",
)
KINDS = (
    LOOKUP_HOLE, HIDDEN_SEGMENT, OVERLAP, SUPERSEDED_EPOCH, *EPOCH_KINDS,
    HISTORY_TRIMMED, WRONG_PLACE, TOPIC_RECREATED, NOWHERE, BELOW_LOG_START, BEYOND_LOG_END,
    BROKEN_RULE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartitionStart:
    metadata_partition: int
    log_start: int
    updates_without_base: int


def verify_partition(
    shard: Shard, partition: TopicIdPartition, offsets: PartitionOffsets | None
) -> list[Finding]:
    """Report the faults of one user partition; *offsets* are those of its log, where known."""
    segments = shard.segments(partition)
    finished = finished_of(segments)
    lineage = lineage_of(finished)
    told = None if offsets is None else offsets.earliest
    log_start = max((told or 0, *(began_behind(one) or 0 for one in finished)))
    shadowed = shadowed_in(shard, partition, finished, is_front_judged=told is not None)
    found = [
        *_lacking(LOOKUP_HOLE, partition, gaps_in(lineage, finished), log_start),
        *_lacking(STOCK_LOOKUP_EMPTY, partition, shadowed, log_start),
        *_hidden(shard, partition, lineage, finished),
        *_overlaps(partition, finished),
        *_superseded(partition, lineage, finished),
        *epoch_order(partition, segments, told),
    ]
    if offsets is not None:
        found += _against_log(partition, lineage, finished, offsets)
    return found


def verify_places(
    summaries: Iterable[PartitionSummary], place_of: Mapping[TopicIdPartition, int]
) -> list[Finding]:
    """Report partitions in a wrong place by *place_of*, and names with several ids."""
    found = []
    ids: dict[str, set[str]] = {}
    for one in summaries:
        partition, right = one.partition, place_of[one.partition]
        if one.segments > one.being_deleted:  # else it is on its way; `stuck` minds the time
            ids.setdefault(partition.topic, set()).add(str(partition.topic_id))
        if right != one.metadata_partition:
            found.append(
                of_partition(
                    WRONG_PLACE, partition,
                    f"its events are in metadata partition {one.metadata_partition}, brokers look "
                    f"in {right}",
                    metadata_partition=one.metadata_partition, expected=right,
                )
            )  # fmt: skip
    for topic, those in sorted(ids.items()):
        if len(those) > 1:
            named = ", ".join(sorted(those))
            fields = {"topic": topic, "topic_ids": sorted(those)}
            found.append(Finding(TOPIC_RECREATED, topic, f"topic ids {named}", fields=fields))
    return found


def verify_heads(heads: Iterable[PartitionStart]) -> list[Finding]:
    return [
        Finding(
            HISTORY_TRIMMED,
            f"__remote_log_metadata-{head.metadata_partition}",
            f"it begins at offset {head.log_start}; {head.updates_without_base} updates are of "
            "segments whose first record is gone",
            fields={
                "metadata_partition": head.metadata_partition,
                "log_start": head.log_start,
                "updates_without_base": head.updates_without_base,
            },
        )
        for head in heads
        if head.log_start > 0
    ]


def _lacking(
    kind: FindingKind, partition: TopicIdPartition, parts: Iterable[EpochStretch], log_start: int
) -> list[Finding]:
    return [
        of_partition(
            kind, partition,
            f"offsets {part.first} to {part.last} of leader epoch {part.epoch}",
            epoch=part.epoch, first_offset=part.first, last_offset=part.last,
        )
        for part in wanted_of(parts, log_start)
    ]  # fmt: skip


def hidden_of(shard: Shard, partition: TopicIdPartition) -> list[SegmentMetadata]:
    finished = finished_of(shard.segments(partition))
    lineage = lineage_of(finished)
    shown: set[object] = set()
    for epoch in {epoch for one in finished for epoch, _ in one.epochs}:
        view = shard.epoch_view(partition, epoch)
        if view is not None:
            shown.update(view.slots.values())
    return [
        one
        for one in finished
        if one.id.uuid not in shown and any(e not in lineage.superseded for e, _ in one.epochs)
    ]


def _hidden(
    shard: Shard, partition: TopicIdPartition, lineage: Lineage, finished: Sequence[SegmentMetadata]
) -> list[Finding]:
    """Report segments that stock brokers forget; a change of leaders displaces segments, too."""
    return [
        of_partition(
            HIDDEN_SEGMENT, partition,
            f"segment {one.id.uuid}, offsets {one.start_offset} to {one.last_offset}",
            segment_id=str(one.id.uuid), first_offset=one.start_offset,
            last_offset=one.last_offset, size_bytes=one.size_bytes,
        )
        for one in forgotten_of(hidden_of(shard, partition), finished, lineage.superseded)
    ]  # fmt: skip


def _overlaps(partition: TopicIdPartition, finished: Sequence[SegmentMetadata]) -> list[Finding]:
    return [
        of_partition(
            OVERLAP, partition,
            f"offsets {both.first} to {both.last} of leader epoch {both.epoch} are in "
            f"{one.id.uuid} and in {other.id.uuid}",
            epoch=both.epoch, first_offset=both.first, last_offset=both.last,
            segment_ids=[str(one.id.uuid), str(other.id.uuid)],
        )
        for one, other, both in overlaps_in(finished)
    ]  # fmt: skip


def _superseded(
    partition: TopicIdPartition, lineage: Lineage, finished: Sequence[SegmentMetadata]
) -> list[Finding]:
    found = []
    for epoch in sorted(lineage.superseded):
        those = [one for one in finished if any(e == epoch for e, _ in one.epochs)]
        size = sum(one.size_bytes for one in those)
        found.append(
            of_partition(
                SUPERSEDED_EPOCH, partition,
                f"leader epoch {epoch}: {len(those)} segments, {size} bytes",
                epoch=epoch, segments=len(those), size_bytes=size,
            )
        )  # fmt: skip
    return found


def _against_log(
    partition: TopicIdPartition,
    lineage: Lineage,
    finished: Sequence[SegmentMetadata],
    offsets: PartitionOffsets,
) -> list[Finding]:
    found = []
    start, local, end = offsets.earliest, offsets.earliest_local, offsets.latest
    tier_start = lineage.begins[0][1] if lineage.begins else None
    if start is not None and local is not None and start < local:
        lacking = []
        if tier_start is None or lineage.end is None:
            lacking.append((start, local - 1))
        else:
            lacking += [(start, min(tier_start, local) - 1)] if tier_start > start else []
            lacking += [(lineage.end + 1, local - 1)] if lineage.end + 1 < local else []
        found += [
            of_partition(
                NOWHERE, partition,
                f"offsets {first} to {last}: the log begins at {start}, its local part at {local}",
                first_offset=first, last_offset=last,
            )
            for first, last in lacking
        ]  # fmt: skip
    below = [one for one in finished if start is not None and one.last_offset < start]
    if below:
        size = sum(one.size_bytes for one in below)
        found.append(
            of_partition(
                BELOW_LOG_START, partition,
                f"{len(below)} segments, {size} bytes, end before offset {start}",
                segments=len(below), size_bytes=size, log_start=start,
            )
        )  # fmt: skip
    if end is not None and lineage.end is not None and lineage.end >= end:
        found.append(
            of_partition(
                BEYOND_LOG_END, partition,
                f"the tier ends at offset {lineage.end}, the log at {end - 1}",
                tier_end=lineage.end, log_end=end,
            )
        )  # fmt: skip
    return found


def broken_rules(shard: Shard) -> list[Finding]:
    """Report the rules that the state machine's own checker finds broken in *shard*."""
    place = shard.partition
    return [
        Finding(
            BROKEN_RULE, f"__remote_log_metadata-{place}", said,
            fields={"metadata_partition": place},
        )
        for said in shard.validate()
    ]  # fmt: skip
