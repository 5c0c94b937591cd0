"""Segment facts: the fields of segments and partitions that an audit needs, in few bytes. Pure."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.store_listing.rows import NumberedNames, RowBlob, make_blob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

_SEGMENT = struct.Struct(">IQQ16sBqIq")
_STATES = tuple(SegmentState)
NOT_TOLD = -1


class TopicStanding(IntEnum):
    NOT_ASKED = 0
    """No cluster was asked, or the metadata is not that of the cluster."""
    KNOWN = 1
    UNKNOWN = 2


class AuditPartitionFacts(NamedTuple):
    is_topic_known: bool = False
    delete_state: int | None = None
    cluster: TopicStanding = TopicStanding.NOT_ASKED
    log_start: int | None = None

    @property
    def is_ending(self) -> bool:
        """Return whether the rest of the partition is to be deleted."""
        return self.delete_state is not None or self.cluster is TopicStanding.UNKNOWN


class SegmentFact(NamedTuple):
    partition: TopicIdPartition
    uuid: bytes
    start_offset: int
    last_offset: int
    state: SegmentState
    event_ms: int
    size_bytes: int
    stored_bytes: int
    """The bytes of all three objects by the writer's custom metadata, else `NOT_TOLD`."""

    @property
    def id(self) -> SegmentId:
        return SegmentId(self.partition, Uuid(self.uuid))


def fact_of(segment: SegmentMetadata) -> SegmentFact:
    custom = parse_custom_metadata(segment.custom_metadata)
    stored = custom.remote_size_bytes if isinstance(custom, CustomMetadata) else None
    return SegmentFact(
        segment.id.partition,
        bytes(segment.id.uuid),
        segment.start_offset,
        segment.last_offset,
        segment.state,
        segment.event_timestamp_ms,
        segment.size_bytes,
        NOT_TOLD if stored is None or stored < 0 else stored,
    )


class SegmentRows:
    def __init__(self) -> None:
        self._partitions = NumberedNames()
        self._rows = bytearray()

    def add(self, fact: SegmentFact) -> None:
        self._rows += _SEGMENT.pack(
            self._partitions(fact.partition),
            fact.start_offset,
            fact.last_offset,
            fact.uuid,
            fact.state,
            fact.event_ms,
            max(0, fact.size_bytes),
            fact.stored_bytes,
        )

    def blob(self) -> bytes:
        return make_blob(self._partitions, self._rows)


def read_facts(blob: bytes) -> Iterator[SegmentFact]:
    opened = RowBlob(blob)
    for partition, start, last, uuid, state, event_ms, size, stored in _SEGMENT.iter_unpack(
        opened.rows()
    ):
        yield SegmentFact(
            opened.partitions[partition], uuid, start, last, _STATES[state], event_ms, size, stored
        )
