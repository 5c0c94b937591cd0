"""Findings of faults, and the offsets that no whole segment of the same epoch holds. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.findings import tier_findings as tier_kinds
from rlmm.findings.finding import of_partition
from rlmm.inspection.epoch_order import EPOCH_ORDER, epoch_order
from rlmm.retention.segment_lineage import (
    EpochStretch,
    began_behind,
    covered_by,
    gaps_in,
    lineage_of,
    not_in,
    overlaps_in,
    wanted_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlmm.findings.finding import Finding, FindingKind
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.verify.values import Offsets, SegmentFault


class ExtentFault(NamedTuple):
    code: str
    detail: str
    lost: tuple[tuple[int, int], ...] = ()
    segment_ids: tuple[str, ...] = ()


def judge_extents(
    partition: TopicIdPartition, finished: Sequence[SegmentMetadata], earliest: int | None = None
) -> Iterator[ExtentFault]:
    """Return gaps and overlaps from the log start *earliest* on, by epoch as brokers look up."""
    lineage = lineage_of(finished)
    log_start = max((earliest or 0, *(began_behind(one) or 0 for one in finished)))
    for gap in wanted_of(gaps_in(lineage, finished), log_start):
        detail = f"offsets {gap.first} to {gap.last} of leader epoch {gap.epoch} are in no segment"
        yield ExtentFault(tier_kinds.EXTENT_GAP.code, detail, ((gap.first, gap.last),))
    for one, other, both in overlaps_in(finished):
        if both.last < log_start:
            continue
        where = f"offsets {both.first} to {both.last} of leader epoch {both.epoch}"
        ids = (str(one.id.uuid), str(other.id.uuid))
        detail = f"{where} are in {ids[0]} and in {ids[1]}"
        yield ExtentFault(tier_kinds.EXTENT_OVERLAP.code, detail, (), ids)
    for found in epoch_order(partition, finished, earliest):
        if found.kind is EPOCH_ORDER:
            name = str(found.fields["segment_id"])
            yield ExtentFault(tier_kinds.EPOCH_ORDER.code, found.detail, (), (name,))


KINDS: Final[Mapping[str, FindingKind]] = {
    kind.code: kind for kind in tier_kinds.KINDS_BY_COMMAND["tier verify"]
}


def finding_of(segment: SegmentMetadata, fault: SegmentFault) -> Finding:
    where = f"segment {segment.id.uuid}, offsets {segment.start_offset} to {segment.last_offset}"
    text = f"{where}: {fault.detail}"
    if fault.lost and fault.lost != ((segment.start_offset, segment.last_offset),):
        text += f" (lost: {ranges_text(fault.lost)})"
    return of_partition(
        KINDS[fault.code],
        segment.id.partition,
        text,
        segment_id=str(segment.id.uuid),
        first_offset=segment.start_offset,
        last_offset=segment.last_offset,
        part=fault.part,
        key=fault.where,
        lost=[list(one) for one in fault.lost],
    )


def extent_finding_of(partition: TopicIdPartition, fault: ExtentFault) -> Finding:
    return of_partition(
        KINDS[fault.code],
        partition,
        fault.detail,
        segment_ids=list(fault.segment_ids),
        lost=[list(one) for one in fault.lost],
    )


def ranges_text(ranges: Offsets) -> str:
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:8]]
    more = len(ranges) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def lost_of(
    broken: Sequence[tuple[SegmentMetadata, Offsets]], finished: Iterable[SegmentMetadata]
) -> Offsets:
    """Return the offsets lost in *broken* segments that no other *finished* one holds."""
    names = {segment.id.uuid for segment, _ in broken}
    others = (one for one in finished if one.id.uuid not in names)
    whole = [stretch for one in others for stretch in covered_by(one)]
    lost: set[tuple[int, int]] = set()
    for segment, ranges in broken:
        for epoch, first, last in covered_by(segment):
            for start, end in ranges:
                wanted = EpochStretch(epoch, max(first, start), min(last, end))
                if wanted.first <= wanted.last:
                    parts = [one for one in whole if one.epoch == epoch]
                    lost |= {(gap.first, gap.last) for gap in not_in(wanted, parts)}
    return _joined(sorted(lost))


def _joined(ranges: Iterable[tuple[int, int]]) -> Offsets:
    """Join ranges that touch; they rise."""
    joined: list[tuple[int, int]] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
