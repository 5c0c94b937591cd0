"""A producer snapshot, judged against the state that the log leads to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segments.producer_state import ProducerEntry


def judge_snapshot(
    name: str,
    found: Mapping[int, ProducerEntry],
    expected: Mapping[int, ProducerEntry],
    base_offset: int,
    *,
    is_whole: bool,
) -> SegmentFinding | None:
    """Compare with *expected*, without *is_whole* with what it says of this segment alone."""
    for producer_id, known in expected.items():
        other = found.get(producer_id)
        if other is None:
            if known.txn_first_offset >= 0:
                detail = f"open since {known.txn_first_offset}, and not there"
                return _wrong(name, producer_id, detail)
            continue
        entry = known if is_whole else _as_far_as_seen(known, other, base_offset)
        if _meaning(entry) != _meaning(other):
            detail = f"{_meaning(other)}, the log says {_meaning(entry)}"
            return _wrong(name, producer_id, detail)
    for producer_id, other in found.items():
        is_open = other.txn_first_offset >= (0 if is_whole else base_offset)
        if producer_id not in expected and is_open:
            detail = f"open since {other.txn_first_offset}, the log knows nothing of it"
            return _wrong(name, producer_id, detail)
    return None


def _as_far_as_seen(entry: ProducerEntry, other: ProducerEntry, base_offset: int) -> ProducerEntry:
    if entry.last_offset < base_offset:
        entry = entry._replace(
            last_sequence=other.last_sequence,
            last_offset=other.last_offset,
            offset_delta=other.offset_delta,
        )
    if entry.coordinator_epoch < 0:
        entry = entry._replace(coordinator_epoch=other.coordinator_epoch)
    if 0 <= other.txn_first_offset < base_offset <= entry.txn_first_offset:
        entry = entry._replace(txn_first_offset=other.txn_first_offset)
    return entry


def _meaning(entry: ProducerEntry) -> tuple[int, ...]:
    """Times are left out: brokers only forget producers by them."""
    return (
        entry.producer_epoch,
        entry.last_sequence,
        entry.last_offset,
        entry.offset_delta,
        entry.coordinator_epoch,
        entry.txn_first_offset,
    )


def _wrong(name: str, producer_id: int, detail: str) -> SegmentFinding:
    text = f"{name}: producer {producer_id}: {detail}"
    return SegmentFinding(SegmentPart.PRODUCER_SNAPSHOT, SegmentFindingKind.WRONG, text)
