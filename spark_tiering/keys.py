"""
Names of the objects of one tiered segment, in the layout that the Aiven plugin reads and writes.

    <prefix><topic>-<topic id>/<partition>/<start offset, 20 digits>-<segment id>.<suffix>

Names depend on nothing but the segment, so a copy that is repeated finds what is there. Topic names
and ids both may contain dashes: a name is read from the right, by the fixed length of an id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid

_ID = r"[A-Za-z0-9_-]{22}"
_KEY = re.compile(
    rf"(?P<topic>[^/]+)-(?P<topic_id>{_ID})/(?P<partition>0|[1-9][0-9]*)/"
    rf"(?P<start>[0-9]{{20}})-(?P<segment>{_ID})\.(?P<kind>log|indexes|rsm-manifest)"
)


class ObjectKind(StrEnum):
    """The three objects of a segment, in the order in which they are written."""

    LOG = "log"
    INDEXES = "indexes"
    MANIFEST = "rsm-manifest"
    """Written last: where it is, the other two are whole."""


@dataclass(frozen=True, slots=True)
class ObjectName:
    """What the name of an object says."""

    segment_id: SegmentId
    start_offset: int
    kind: ObjectKind


def object_key(segment_id: SegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
    """The key of one object; *prefix* is put before it as it is, so it brings its own slash."""
    if start_offset < 0:
        msg = f"start offset must not be negative, got {start_offset}"
        raise InvalidArgument(msg)
    partition = segment_id.partition
    return (
        f"{prefix}{partition.topic}-{partition.topic_id}/{partition.partition}/"
        f"{start_offset:020d}-{segment_id.uuid}.{kind}"
    )


def parse_object_key(key: str, prefix: str = "") -> ObjectName | None:
    """What *key* names, `None` where it is not the key of a segment's object under *prefix*."""
    if not key.startswith(prefix):
        return None
    found = _KEY.fullmatch(key, len(prefix))
    if found is None:
        return None
    try:
        partition = TopicIdPartition(
            Uuid.parse(found["topic_id"]), found["topic"], int(found["partition"])
        )
        segment_id = SegmentId(partition, Uuid.parse(found["segment"]))
    except InvalidArgument:
        return None
    name = ObjectName(segment_id, int(found["start"]), ObjectKind(found["kind"]))
    # An id's last character carries two unused bits: only the form that we would write is a name.
    return name if object_key(segment_id, name.start_offset, name.kind, prefix) == key else None
