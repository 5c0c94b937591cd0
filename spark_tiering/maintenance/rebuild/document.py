"""
The file of events, line by line, both ways. Pure.

    {"format": "rlmm-tier-rebuild", "version": 1, "source": {...}, "counts": {...}, ...}
    {"event": "COPY_SEGMENT_STARTED", "topic": "orders", "partition": 3, "start_offset": 0, ...}
    {"event": "COPY_SEGMENT_FINISHED", "topic": "orders", "partition": 3, "start_offset": 0, ...}
    ...
    {"end": true, "events": 2, "sha256": "..."}

Each event is a line that says what a person wants to know of it, the key of the manifest that it is
from, and, as `value`, the record that is published. A line whose words and whose record say two
things is refused, and so is a file of which any byte was changed: what is not wanted is left out by
`--topic`, or by making the file anew.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rlmm.errors import InvalidArgument, NotPublishable
from rlmm.log.protocol import LogIdentity
from rlmm.log.request_checks import PARTITION_COUNT_MAX
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.views.values import iso_time
from spark_tiering.layout.object_names import ObjectKind, object_key

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = "rlmm-tier-rebuild"
VERSION: Final = 1
LINE_BYTES_MAX: Final = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")


class EventsFileFault(Exception):
    """Says in a line what is wrong with one; whoever reads the file says where."""


class RestoredSegment(NamedTuple):
    """A segment that is brought back: the two events of its copy."""

    start: SegmentMetadata
    finish: SegmentUpdate

    @property
    def finished(self) -> SegmentMetadata:
        return self.start.updated(self.finish)


@dataclass(frozen=True, slots=True)
class EventsFileHeader:
    """What stands before the events."""

    store: str
    """For people; no credential is in it."""
    prefix: str
    custom_metadata: str
    identity: LogIdentity | None
    """Of the log that the difference is to; None where there was none."""
    made_ms: int
    counts: Mapping[str, int] = field(default_factory=dict)
    """Segments by what they are, see `deciding.Fate`."""


def entry_of(segment: SegmentMetadata) -> RestoredSegment:
    """The events that make *segment*, which is finished."""
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


# ------------------------------------------------------------------------------------- writing


def head_fields(head: EventsFileHeader) -> dict[str, Any]:
    identity = head.identity
    return {
        "format": FORMAT,
        "version": VERSION,
        "made": iso_time(head.made_ms),
        "made_ms": head.made_ms,
        "source": {
            "store": head.store,
            "prefix": head.prefix,
            "custom_metadata": head.custom_metadata,
        },
        "identity": None
        if identity is None
        else {
            "cluster_id": identity.cluster_id,
            "topic_id": str(identity.topic_id),
            "partition_count": identity.partition_count,
        },
        "counts": dict(head.counts),
    }


def entry_fields(entry: RestoredSegment, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both lines of a segment. Raises `NotPublishable` for what no broker could digest."""
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
    """The last line; the digest is of all lines before."""
    return {"end": True, "events": events, "sha256": sha256}


def line_of(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(", ", ": ")).encode() + b"\n"


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


# ------------------------------------------------------------------------------------- reading


def parse_line(line: bytes) -> dict[str, Any]:
    """The object that a line is; raises `EventsFileFault`."""
    if not line.endswith(b"\n"):
        raise EventsFileFault("the file ends in the middle of this line")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        msg = f"no JSON: {str(error)[:100]}"
        raise EventsFileFault(msg) from error
    if not isinstance(found, dict):
        raise EventsFileFault("no object of JSON")
    return found


def parse_head(found: Mapping[str, Any]) -> EventsFileHeader:
    """The first line; raises `EventsFileFault`."""
    if found.get("format") != FORMAT:
        raise EventsFileFault("no file of `rlmm tier rebuild`: its first line is another one's")
    if type(found.get("version")) is not int or found["version"] != VERSION:
        msg = f"version {str(found.get('version'))[:40]!r}, this build reads {VERSION}"
        raise EventsFileFault(msg)
    source = found.get("source")
    if not isinstance(source, dict) or not all(
        isinstance(source.get(name), str) for name in ("store", "prefix", "custom_metadata")
    ):
        raise EventsFileFault("source: store, prefix and custom_metadata are missing")
    counts = found.get("counts")
    if not isinstance(counts, dict) or type(found.get("made_ms")) is not int:
        raise EventsFileFault("counts, or made_ms, is missing")
    return EventsFileHeader(
        source["store"],
        source["prefix"],
        source["custom_metadata"],
        _identity(found.get("identity")),
        found["made_ms"],
        counts,
    )


def _identity(found: object) -> LogIdentity | None:
    if found is None:
        return None
    if not isinstance(found, dict):
        raise EventsFileFault("identity: an object, or null")
    count = found.get("partition_count")
    if type(count) is not int or not 1 <= count <= PARTITION_COUNT_MAX:
        raise EventsFileFault("identity: a number of partitions is missing")
    try:
        return LogIdentity(
            str(found.get("cluster_id")), Uuid.parse(str(found.get("topic_id"))), count
        )
    except InvalidArgument as error:
        raise EventsFileFault(f"identity: {str(error)[:200]}") from error


def parse_entry(
    first: Mapping[str, Any], second: Mapping[str, Any], prefix: str
) -> RestoredSegment:
    """The segment that two lines are of; raises `EventsFileFault`."""
    start, finish = _event(first), _event(second)
    if (
        not isinstance(start, SegmentMetadata)
        or not isinstance(finish, SegmentUpdate)
        or start.id != finish.id
        or finish.state is not SegmentState.COPY_SEGMENT_FINISHED
    ):
        raise EventsFileFault("a start and the finish of the same copy are expected in two lines")
    entry = RestoredSegment(start, finish)
    try:
        expected = entry_fields(entry, prefix)
    except (NotPublishable, InvalidArgument) as error:
        raise EventsFileFault(str(error)[:300]) from error
    for line, should in zip((first, second), expected, strict=True):
        wrong = [name for name in {**line, **should} if line.get(name) != should.get(name)]
        if wrong:
            msg = f"{', '.join(sorted(wrong))[:200]}: not what the record in `value` says"
            raise EventsFileFault(msg)
    return entry


def parse_end(found: Mapping[str, Any]) -> tuple[int, str]:
    """Events and digest of the last line; raises `EventsFileFault`."""
    events, sha256 = found.get("events"), found.get("sha256")
    if type(events) is not int or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise EventsFileFault("the last line has neither a count nor a digest")
    return events, sha256


def _event(found: Mapping[str, Any]) -> object:
    value = found.get("value")
    try:
        if isinstance(value, str):
            return decode(base64.b64decode(value, validate=True))
    except (ValueError, binascii.Error) as error:
        raise EventsFileFault("value: no base64") from error
    raise EventsFileFault("value: the record is missing")
