"""
The manifest of a tiered segment, version 1, as values. Pure. It is written last: where it is, log
and indexes are whole. Our fields stand inside `remoteLogSegmentMetadata`, because the plugin
refuses unknown fields everywhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.chunk_index import ChunkIndex
    from spark_tiering.layout.digests import ContentDigest
    from spark_tiering.layout.findings import LayoutFinding
    from spark_tiering.layout.segment_indexes import SegmentIndexes

LABEL_CHARACTERS_MAX = 200

_LABEL = re.compile(rf"[A-Za-z0-9 ._:@/+=-]{{1,{LABEL_CHARACTERS_MAX}}}")


@dataclass(frozen=True, slots=True)
class CopyNote:
    """Names the writer of a segment's objects, with digests of each whole input and output."""

    writer: str
    """Name and version of the program."""
    job_id: str
    source_log: ContentDigest
    """Of the log as the broker has it; the same as that of the object where it is stored plain."""
    log_object: ContentDigest
    indexes_object: ContentDigest

    def __post_init__(self) -> None:
        for label in (self.writer, self.job_id):
            if _LABEL.fullmatch(label) is None:
                msg = f"a label has 1 to {LABEL_CHARACTERS_MAX} plain characters, got {label!r}"
                raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True)
class SegmentDescription:
    """Repeats a segment's metadata in its manifest: all but its size and its custom metadata."""

    segment_id: SegmentId
    start_offset: int
    last_offset: int
    max_timestamp_ms: int
    broker_id: int
    event_timestamp_ms: int
    epochs: tuple[tuple[int, int], ...]
    note: CopyNote | None = None


@dataclass(frozen=True, slots=True)
class SegmentEncryption:
    """Holds a segment's sealed key, which private key *key_id* opens, and the aad; no secret."""

    key_id: str
    sealed_key: bytes = field(repr=False)
    aad: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not self.key_id.strip() or ":" in self.key_id:
            msg = f"no key is called {self.key_id[:80]!r}"
            raise InvalidArgument(msg)
        if not self.sealed_key:
            msg = f"a data key of no bytes, sealed by {self.key_id[:80]!r}"
            raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Holds the fields of a manifest. *described* may be absent, or a finding."""

    chunks: ChunkIndex
    indexes: SegmentIndexes
    is_compressed: bool
    described: SegmentDescription | LayoutFinding | None = None
    encryption: SegmentEncryption | None = None

    @property
    def is_encrypted(self) -> bool:
        return self.encryption is not None


def describe(segment: SegmentMetadata, note: CopyNote | None = None) -> SegmentDescription:
    return SegmentDescription(
        segment.id,
        segment.start_offset,
        segment.last_offset,
        segment.max_timestamp_ms,
        segment.broker_id,
        segment.event_timestamp_ms,
        tuple(segment.epochs),
        note,
    )
