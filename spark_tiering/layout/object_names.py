"""
Names of the objects of one tiered segment, in the layout that the Aiven plugin reads and writes.

    <prefix><topic>-<topic id>/<partition>/<start offset, 20 digits>-<segment id>.<suffix>

Topic names and ids may contain dashes: a name is read from the right, by the fixed length of an id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from rlmm.base.topic_names import TOPIC_NAME
from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX, SegmentId, TopicIdPartition, Uuid, require_possible

_ID = r"[A-Za-z0-9_-]{22}"
_KEY = re.compile(
    rf"(?P<topic>{TOPIC_NAME})-(?P<topic_id>{_ID})/(?P<partition>0|[1-9][0-9]{{0,9}})/"
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
    segment_id: SegmentId
    start_offset: int
    kind: ObjectKind


def main_key(segment_id: SegmentId, start_offset: int) -> str:
    """Return the common part of a segment's keys; raises `InvalidArgument` where it has none."""
    partition = segment_id.partition
    require_possible(partition)
    if start_offset < 0:
        raise InvalidArgument(f"a segment of {partition} begins at offset {start_offset}")
    return f"{partition_folder(partition)}{start_offset:020d}-{segment_id.uuid}"


def object_key(segment_id: SegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
    """Return the key of one object; *prefix* brings its own slash."""
    return f"{prefix}{main_key(segment_id, start_offset)}.{kind}"


def object_keys(
    segment_id: SegmentId, start_offset: int, prefix: str = ""
) -> dict[ObjectKind, str]:
    main = main_key(segment_id, start_offset)
    return {kind: f"{prefix}{main}.{kind}" for kind in ObjectKind}


def partition_folder(partition: TopicIdPartition, prefix: str = "") -> str:
    return f"{prefix}{partition.topic}-{partition.topic_id}/{partition.partition}/"


def parse_object_key(key: str, prefix: str = "") -> ObjectName | None:
    """Return the name in *key*; `None` where it is no object of a segment under *prefix*."""
    if not key.startswith(prefix):
        return None
    found = _KEY.fullmatch(key, len(prefix))
    if found is None or int(found["start"]) > INT64_MAX:
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


def find_object_name(key: str) -> tuple[str, ObjectName] | None:
    """Return the prefix, which ends with a slash or is empty, and the name in a key, or None."""
    folders = key.split("/")
    prefix = "".join(f"{folder}/" for folder in folders[:-3])
    name = parse_object_key(key, prefix)
    return None if name is None else (prefix, name)
