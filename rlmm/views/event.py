"""Events of the metadata topic as they are shown: what each says, and what became of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.inspection.event_filter import kind_of, words_of
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata
from rlmm.metadata.verdicts import Rejected, Undecodable
from rlmm.views.values import View, base64_text, iso_time

if TYPE_CHECKING:
    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.history import HistoryLine

HEX_BYTES_MAX = 4_096
"""Bytes of a record that are shown; of a damaged batch there may be megabytes."""


def event_view(happened: EventRecord, *, knows_verdict: bool = True) -> View:
    """
    One record, or the offsets [offset, next_offset) that were lost. Every field is always there.
    Where it is not known what became of an event its verdict is None.
    """
    event, partition = happened.event, happened.partition
    word: str | None
    word, why = words_of(happened)
    if not knows_verdict and event is not None:
        word = None
    value = happened.value if event is None else None
    return {
        "metadata_partition": happened.metadata_partition,
        "offset": happened.offset,
        "next_offset": happened.next_offset,
        "timestamp_ms": happened.timestamp_ms if happened.timestamp_ms >= 0 else None,
        "timestamp": iso_time(happened.timestamp_ms),
        "kind": str(kind_of(happened)),
        "topic_id": None if partition is None else str(partition.topic_id),
        "topic": None if partition is None else partition.topic,
        "partition": None if partition is None else partition.partition,
        "segment_id": None if happened.segment is None else str(happened.segment),
        "state": None if event is None else event.state.name,
        "broker_id": None if event is None else event.broker_id,
        "event_timestamp_ms": None if event is None else event.event_timestamp_ms,
        "event_timestamp": None if event is None else iso_time(event.event_timestamp_ms),
        **_segment_fields(event),
        "custom_metadata": None
        if event is None or isinstance(event, PartitionDelete)
        else base64_text(event.custom_metadata),
        "verdict": word,
        "reason": why,
        "detail": _detail(happened),
        "value_bytes": None if value is None else len(value),
        "value_hex": None if value is None else value[:HEX_BYTES_MAX].hex(),
    }


def _segment_fields(
    event: SegmentMetadata | SegmentUpdate | PartitionDelete | SegmentSnapshot | None,
) -> View:
    """What only a segment's first record says."""
    if not isinstance(event, SegmentMetadata | SegmentSnapshot):
        return {
            "start_offset": None, "last_offset": None, "epochs": None, "size_bytes": None,
            "max_timestamp_ms": None, "txn_index_empty": None,
        }  # fmt: skip
    return {
        "start_offset": event.start_offset,
        "last_offset": event.last_offset,
        "epochs": [{"epoch": epoch, "start_offset": offset} for epoch, offset in event.epochs],
        "size_bytes": event.size_bytes,
        "max_timestamp_ms": event.max_timestamp_ms,
        "txn_index_empty": event.txn_index_empty,
    }


def _detail(happened: EventRecord) -> str:
    """Why, in words; empty where there is nothing to say."""
    match happened.verdict:
        case Rejected(current=current, requested=requested):
            now = "absent" if current is None else current.name
            then = "absent" if requested is None else requested.name
            return f"{now} -> {then}"
        case Undecodable(detail=detail):
            return detail
    return ""


def line_view(line: HistoryLine) -> View:
    """One line of a history: the event, and what it changed."""
    displaced = line.displaced
    return {
        **event_view(line.happened),
        "part": str(line.part),
        "state_before": None if line.before is None else line.before.name,
        "state_after": None if line.after is None else line.after.name,
        "displaced": None
        if displaced is None
        else [
            {"segment_id": str(uuid), "epochs": list(epochs)} for uuid, epochs in displaced.items()
        ],
    }
