"""
The file of events, line by line, both ways. Pure.

    {"format": "rlmm-tier-rebuild", "version": 1, "source": {...}, "counts": {...}, ...}
    {"event": "COPY_SEGMENT_STARTED", "topic": "orders", "partition": 3, "start_offset": 0, ...}
    {"event": "COPY_SEGMENT_FINISHED", "topic": "orders", "partition": 3, "start_offset": 0, ...}
    {"end": true, "events": 2, "sha256": "..."}

A line has the fields of its event for people, the key of its manifest, and, as `value`, the record
to publish. The reader refuses a line whose fields and record differ, and a changed file.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from rlmm.errors import InvalidArgument, NotPublishable
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.views.values import iso_time
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.layout.strict_json import plain_values
from spark_tiering.maintenance.json_lines import (
    LineFault,
    PartitionCount,
    Sha256,
    require_format,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = "rlmm-tier-rebuild"
VERSION: Final = 1
LINE_BYTES_MAX: Final = 1024 * 1024


class RestoredSegment(NamedTuple):
    start: SegmentMetadata
    finish: SegmentUpdate

    @property
    def finished(self) -> SegmentMetadata:
        return self.start.updated(self.finish)


@dataclass(frozen=True, slots=True)
class EventsFileHeader:
    store: str
    """For people; it holds no credential."""
    prefix: str
    custom_metadata: str
    identity: LogIdentity | None
    """The log that the store was compared with; None where there was none."""
    made_ms: int
    counts: Mapping[str, int] = field(default_factory=dict)


def entry_of(segment: SegmentMetadata) -> RestoredSegment:
    """Return the events that make the finished *segment*."""
    start = SegmentMetadata(
        segment.id,
        segment.start_offset,
        segment.last_offset,
        segment.broker_id,
        segment.max_timestamp_ms,
        segment.event_timestamp_ms,
        segment.epochs,
        segment.size_bytes,
        None,
        SegmentState.COPY_SEGMENT_STARTED,
        segment.txn_index_empty,
    )
    finish = SegmentUpdate(
        segment.id,
        segment.broker_id,
        segment.event_timestamp_ms,
        segment.custom_metadata,
        SegmentState.COPY_SEGMENT_FINISHED,
    )
    return RestoredSegment(start, finish)


class _Identity(msgspec.Struct):
    cluster_id: str
    topic_id: Uuid
    partition_count: PartitionCount


class _Source(msgspec.Struct):
    store: str
    prefix: str
    custom_metadata: str


class _HeadLine(msgspec.Struct, kw_only=True):
    format: str = FORMAT
    version: int = VERSION
    made: Any = None
    made_ms: int
    source: _Source
    identity: _Identity | None = None
    counts: dict[str, Any]


def head_fields(head: EventsFileHeader) -> dict[str, Any]:
    identity = head.identity
    line = _HeadLine(
        made=iso_time(head.made_ms),
        made_ms=head.made_ms,
        source=_Source(head.store, head.prefix, head.custom_metadata),
        identity=None if identity is None else _Identity(*astuple(identity)),
        counts=dict(head.counts),
    )
    fields: dict[str, Any] = plain_values(line)
    return fields


def entry_fields(entry: RestoredSegment, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both lines of a segment. Raise `NotPublishable` for undecodable events."""
    start, finish = entry
    partition = start.id.partition
    where = {
        "topic": partition.topic,
        "topic_id": str(partition.topic_id),
        "partition": partition.partition,
        "segment_id": str(start.id.uuid),
        "start_offset": start.start_offset,
        "last_offset": start.last_offset,
    }
    said = {
        "time": iso_time(start.event_timestamp_ms),
        "time_ms": start.event_timestamp_ms,
        "broker_id": start.broker_id,
    }
    first = {
        "event": start.state.name,
        **where,
        **said,
        "max_time": iso_time(start.max_timestamp_ms),
        "max_time_ms": start.max_timestamp_ms,
        "size_bytes": start.size_bytes,
        "leader_epochs": {str(epoch): offset for epoch, offset in start.epochs},
        "txn_index_empty": start.txn_index_empty,
        "object": object_key(start.id, start.start_offset, ObjectKind.MANIFEST, prefix),
        "value": _text(encode(start)),
    }
    custom = finish.custom_metadata
    second = {
        "event": finish.state.name,
        **where,
        **said,
        "custom_metadata": None if custom is None else _text(custom),
        "value": _text(encode(finish)),
    }
    return first, second


def end_fields(events: int, sha256: str) -> dict[str, Any]:
    """The digest is of all lines before."""
    return {"end": True, "events": events, "sha256": sha256}


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def parse_head(found: Mapping[str, Any]) -> EventsFileHeader:
    require_format(found, FORMAT, VERSION, "file of `rlmm tier rebuild`")
    line = typed(found, _HeadLine)
    of, source = line.identity, line.source
    identity = None if of is None else LogIdentity(of.cluster_id, of.topic_id, of.partition_count)
    return EventsFileHeader(
        source.store, source.prefix, source.custom_metadata, identity, line.made_ms, line.counts
    )


def parse_entry(
    first: Mapping[str, Any], second: Mapping[str, Any], prefix: str
) -> RestoredSegment:
    """Return the segment of two lines. Raise `LineFault`."""
    start, finish = _event(first), _event(second)
    if (
        not isinstance(start, SegmentMetadata)
        or not isinstance(finish, SegmentUpdate)
        or start.id != finish.id
        or finish.state is not SegmentState.COPY_SEGMENT_FINISHED
    ):
        raise LineFault("a start and the finish of the same copy are expected in two lines")
    entry = RestoredSegment(start, finish)
    try:
        expected = entry_fields(entry, prefix)
    except (NotPublishable, InvalidArgument) as error:
        raise LineFault(str(error)[:300]) from error
    for line, should in zip((first, second), expected, strict=True):
        wrong = [name for name in {**line, **should} if line.get(name) != should.get(name)]
        if wrong:
            msg = f"{', '.join(sorted(wrong))[:200]}: not what the record in `value` says"
            raise LineFault(msg)
    return entry


class EventsFileEnd(msgspec.Struct):
    events: int
    sha256: Sha256


def _event(found: Mapping[str, Any]) -> object:
    value = found.get("value")
    try:
        if isinstance(value, str):
            return decode(base64.b64decode(value, validate=True))
    except (ValueError, binascii.Error) as error:
        raise LineFault("value: no base64") from error
    raise LineFault("value: the record is missing")
