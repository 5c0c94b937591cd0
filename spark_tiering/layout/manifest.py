"""
The manifest of a tiered segment, version 1: what it says, and its bytes as the plugin writes them.
Pure.

The manifest is written last: where it is, log and indexes are whole. The plugin refuses a manifest
with a field that it does not know, everywhere but inside `remoteLogSegmentMetadata`, which it
writes for people and for recovery and ignores when it reads. So what is ours (who copied, and the
digests of what was read and written) stands there, under one name, and an unmodified broker reads
the segment. Equal manifests have equal bytes.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from spark_tiering.layout.chunk_index import FixedChunks, is_stored_plain
from spark_tiering.layout.chunk_sizes import format_sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.chunk_index import ChunkIndex
    from spark_tiering.layout.digests import ContentDigest
    from spark_tiering.layout.findings import LayoutFinding
    from spark_tiering.layout.segment_indexes import IndexPlace, SegmentIndexes

VERSION = "1"
NOTE_FIELD = "rlmm"
"""What is ours stands under this name, inside `remoteLogSegmentMetadata`."""
LABEL_CHARACTERS_MAX = 200

_LABEL = re.compile(rf"[A-Za-z0-9 ._:@/+=-]{{1,{LABEL_CHARACTERS_MAX}}}")


@dataclass(frozen=True, slots=True)
class CopyNote:
    """Who wrote a segment's objects, and what went in and out; digests of the whole of each."""

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
    """
    What a manifest repeats of a segment's metadata: all but its size and its custom metadata.

    *epochs* are (leader epoch, first offset), rising.
    """

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
    """
    What a segment is encrypted with: its own key, which only the private key *key_id* opens, and
    bytes that go into the authentication of every part. None of it is a secret.
    """

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
    """
    What a manifest says.

    *described* may be absent, or a finding: the plugin does not read it. The sizes of an encrypted
    segment can be read by everybody, what is in it with a key ring alone.
    """

    chunks: ChunkIndex
    indexes: SegmentIndexes
    is_compressed: bool
    described: SegmentDescription | LayoutFinding | None = None
    encryption: SegmentEncryption | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether a key is needed for more than its sizes."""
        return self.encryption is not None


def describe(segment: SegmentMetadata, note: CopyNote | None = None) -> SegmentDescription:
    """What a manifest says of *segment*."""
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


def format_manifest(manifest: Manifest) -> bytes:
    """The bytes of the manifest object; raises `InvalidArgument` for one that we do not write."""
    is_plain = not manifest.is_compressed and manifest.encryption is None
    if is_plain and not is_stored_plain(manifest.chunks):
        msg = f"{manifest.chunks.original_bytes} bytes that are not compressed take as many"
        raise InvalidArgument(msg)
    fields: dict[str, Any] = {
        "version": VERSION,
        "chunkIndex": _chunk_fields(manifest.chunks),
        "segmentIndexes": _index_fields(manifest.indexes),
        "compression": manifest.is_compressed,
    }
    if manifest.encryption is not None:
        fields["encryption"] = _encryption_fields(manifest.encryption)
    if isinstance(manifest.described, SegmentDescription):
        fields["remoteLogSegmentMetadata"] = _description_fields(manifest.described)
    elif manifest.described is not None:
        msg = f"a description that could not be read: {manifest.described}"
        raise InvalidArgument(msg)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def _chunk_fields(chunks: ChunkIndex) -> Mapping[str, Any]:
    if isinstance(chunks, FixedChunks):
        return {
            "type": "fixed",
            "originalChunkSize": chunks.original_chunk_bytes,
            "originalFileSize": chunks.original_bytes,
            "transformedChunkSize": chunks.stored_chunk_bytes,
            "finalTransformedChunkSize": chunks.last_stored_chunk_bytes,
        }
    return {
        "type": "variable",
        "originalChunkSize": chunks.original_chunk_bytes,
        "originalFileSize": chunks.original_bytes,
        "transformedChunks": format_sizes(chunks.stored_sizes),
    }


def _index_fields(indexes: SegmentIndexes) -> Mapping[str, Any]:
    return {
        "offset": _place_fields(indexes.offset),
        "timestamp": _place_fields(indexes.timestamp),
        "producerSnapshot": _place_fields(indexes.producer_snapshot),
        "leaderEpoch": _place_fields(indexes.leader_epoch),
        # The plugin asks for the name even where there is nothing.
        "transaction": None if indexes.transaction is None else _place_fields(indexes.transaction),
    }


def _place_fields(place: IndexPlace) -> Mapping[str, int]:
    return {"position": place.position, "size": place.size_bytes}


def _encryption_fields(encryption: SegmentEncryption) -> Mapping[str, str]:
    sealed = base64.b64encode(encryption.sealed_key).decode("ascii")
    return {
        "dataKey": f"{encryption.key_id}:{sealed}",
        "aad": base64.b64encode(encryption.aad).decode("ascii"),
    }


def _description_fields(described: SegmentDescription) -> Mapping[str, Any]:
    partition = described.segment_id.partition
    fields: dict[str, Any] = {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "topicId": str(partition.topic_id),
                "topicPartition": {"topic": partition.topic, "partition": partition.partition},
            },
            "id": str(described.segment_id.uuid),
        },
        "startOffset": described.start_offset,
        "endOffset": described.last_offset,
        "maxTimestampMs": described.max_timestamp_ms,
        "brokerId": described.broker_id,
        "eventTimestampMs": described.event_timestamp_ms,
        "segmentLeaderEpochs": {str(epoch): start for epoch, start in described.epochs},
    }
    if described.note is not None:
        fields[NOTE_FIELD] = _note_fields(described.note)
    return fields


def _note_fields(note: CopyNote) -> Mapping[str, Any]:
    return {
        "writer": note.writer,
        "jobId": note.job_id,
        "source": _digest_fields(note.source_log),
        "log": _digest_fields(note.log_object),
        "indexes": _digest_fields(note.indexes_object),
    }


def _digest_fields(digest: ContentDigest) -> Mapping[str, Any]:
    return {
        "size": digest.size_bytes,
        "sha256": digest.sha256.hex(),
        "crc64nvme": digest.crc64nvme_text,
    }
