"""
The JSON document of a manifest: its bytes as the plugin writes them, and manifests read back. Pure.
A document that the plugin cannot read is a finding, and one of no writer, too: repeated names,
fractions, texts for flags, contradicting sizes. A fault of `remoteLogSegmentMetadata`, which the
plugin ignores, is kept beside the rest.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.chunk_index import (
    ChunkIndex,
    FixedChunks,
    VariableChunks,
    is_stored_plain,
)
from spark_tiering.layout.chunk_sizes import TEXT_CHARACTERS_MAX, format_sizes, parse_sizes
from spark_tiering.layout.digests import SHA256_BYTES, ContentDigest, parse_crc64nvme
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import CopyNote, Manifest, SegmentDescription, SegmentEncryption
from spark_tiering.layout.segment_indexes import IndexPlace, SegmentIndexes
from spark_tiering.layout.strict_json import (
    Count32,
    Count64,
    Int32,
    Int64,
    JsonFault,
    load_json,
    plain_values,
    typed_value,
)

VERSION = "1"
MANIFEST_BYTES_MAX = TEXT_CHARACTERS_MAX + 1024 * 1024
"""Longer ones are not read: the longest list of chunks, and 1 MiB for all else."""

_EPOCH = re.compile(r"0|[1-9][0-9]{0,9}")
_DIGITS = re.compile(r"-?[0-9]{1,20}")
_SHA256 = re.compile(rf"[0-9a-f]{{{2 * SHA256_BYTES}}}")
_DESCRIBED = "remoteLogSegmentMetadata"
_DEPTH_OF_NUMBERS = 5
_TEXTS = frozenset(
    {"version", "type", "transformedChunks", "dataKey", "aad", "topicId", "topic", "id"}
    | {"writer", "jobId", "sha256", "crc64nvme"}
)


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part in which the plugin, or a later writer, may have more fields."""


class _Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part in which the plugin refuses a field that it does not know."""


class _FixedChunks(_Strict, frozen=True):
    type: str
    original_chunk_size: Annotated[int, msgspec.Meta(ge=1, le=INT32_MAX)]
    original_file_size: Count32
    transformed_chunk_size: Count32
    final_transformed_chunk_size: Count32


class _VariableChunks(_Strict, frozen=True):
    type: str
    original_chunk_size: Annotated[int, msgspec.Meta(ge=1, le=INT32_MAX)]
    original_file_size: Count32
    transformed_chunks: str


class _ChunksKind(_Part, frozen=True):
    type: str


class _Place(_Strict, frozen=True):
    position: Count32
    size: Count32


class _Indexes(_Strict, frozen=True):
    offset: _Place
    timestamp: _Place
    producer_snapshot: _Place
    leader_epoch: _Place
    transaction: _Place | None
    """The plugin asks for the name even where there is nothing."""


class _Encryption(_Strict, frozen=True):
    data_key: str
    aad: str


class _TopicPartition(_Part, frozen=True):
    topic: str
    partition: Count32


class _TopicIdPartition(_Part, frozen=True):
    topic_id: str
    topic_partition: _TopicPartition


class _SegmentId(_Part, frozen=True):
    topic_id_partition: _TopicIdPartition
    id: str


class _Digest(_Part, frozen=True):
    size: Count32
    sha256: str
    crc64nvme: str


class _Note(_Part, frozen=True):
    writer: str
    job_id: str
    source: _Digest
    log: _Digest
    indexes: _Digest


class _Description(_Part, frozen=True):
    remote_log_segment_id: _SegmentId
    start_offset: Count64
    end_offset: Count64
    max_timestamp_ms: Int64
    broker_id: Int32
    event_timestamp_ms: Int64
    segment_leader_epochs: dict[str, Count64]
    rlmm: _Note | None = None
    """The fields that are ours; the plugin ignores them here, and nowhere else."""


class _Manifest(_Strict, frozen=True, omit_defaults=True):
    version: Any
    chunk_index: Any
    segment_indexes: _Indexes
    compression: bool
    encryption: _Encryption | None = None
    remote_log_segment_metadata: Any = None


# ------------------------------------------------------------------------------------- writing


def format_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of the object. Raise `InvalidArgument` for one that we do not write."""
    is_plain = not manifest.is_compressed and manifest.encryption is None
    if is_plain and not is_stored_plain(manifest.chunks):
        msg = f"{manifest.chunks.original_bytes} bytes that are not compressed take as many"
        raise InvalidArgument(msg)
    if isinstance(manifest.described, LayoutFinding):
        msg = f"a description that could not be read: {manifest.described}"
        raise InvalidArgument(msg)
    places: Any = (None if place is None else _Place(*place) for place in manifest.indexes)
    document = _Manifest(
        VERSION,
        _chunk_fields(manifest.chunks),
        _Indexes(*places),
        manifest.is_compressed,
        None if manifest.encryption is None else _encryption_fields(manifest.encryption),
        None if manifest.described is None else _description_fields(manifest.described),
    )
    return json.dumps(plain_values(document), separators=(",", ":"), ensure_ascii=False).encode()


def _chunk_fields(chunks: ChunkIndex) -> _FixedChunks | _VariableChunks:
    sizes = (chunks.original_chunk_bytes, chunks.original_bytes)
    if isinstance(chunks, FixedChunks):
        stored = (chunks.stored_chunk_bytes, chunks.last_stored_chunk_bytes)
        return _FixedChunks("fixed", *sizes, *stored)
    return _VariableChunks("variable", *sizes, format_sizes(chunks.stored_sizes))


def _encryption_fields(encryption: SegmentEncryption) -> _Encryption:
    sealed = base64.b64encode(encryption.sealed_key).decode("ascii")
    aad = base64.b64encode(encryption.aad).decode("ascii")
    return _Encryption(f"{encryption.key_id}:{sealed}", aad)


def _description_fields(described: SegmentDescription) -> _Description:
    partition = described.segment_id.partition
    named = _TopicPartition(partition.topic, partition.partition)
    note = described.note
    return _Description(
        _SegmentId(
            _TopicIdPartition(str(partition.topic_id), named), str(described.segment_id.uuid)
        ),
        described.start_offset,
        described.last_offset,
        described.max_timestamp_ms,
        described.broker_id,
        described.event_timestamp_ms,
        {str(epoch): start for epoch, start in described.epochs},
        None
        if note is None
        else _Note(
            note.writer,
            note.job_id,
            *(
                _Digest(one.size_bytes, one.sha256.hex(), one.crc64nvme_text)
                for one in (note.source_log, note.log_object, note.indexes_object)
            ),
        ),
    )


# ------------------------------------------------------------------------------------- reading


class _Refused(Exception):
    def __init__(self, kind: LayoutFault, detail: str) -> None:
        super().__init__(detail)
        self.finding = LayoutFinding(kind, detail)


def parse_manifest(content: bytes) -> Manifest | LayoutFinding:
    try:
        loaded = load_json(content, bytes_max=MANIFEST_BYTES_MAX)
        return _manifest(_with_numbers(loaded, _DEPTH_OF_NUMBERS))
    except JsonFault as fault:
        return LayoutFinding(LayoutFault(fault.kind), fault.detail)
    except _Refused as refused:
        return refused.finding


def _with_numbers(value: Any, depth: int) -> Any:
    if not isinstance(value, dict) or not depth:
        return value
    return {
        name: int(inner)
        if isinstance(inner, str) and name not in _TEXTS and _DIGITS.fullmatch(inner)
        else _with_numbers(inner, depth - 1)
        for name, inner in value.items()
    }


def _manifest(loaded: Any) -> Manifest:
    if not isinstance(loaded, dict):
        raise _Refused(LayoutFault.NOT_JSON, f"{type(loaded).__name__}, expected an object")
    version = loaded.get("version", VERSION)
    if version != VERSION and (type(version) is not int or version != int(VERSION)):
        detail = f"version: {repr(version)[:80]}, expected {VERSION!r}"
        raise _Refused(LayoutFault.UNSUPPORTED, detail)
    fields = typed_value(loaded, _Manifest)
    encryption = None if fields.encryption is None else _encryption(fields.encryption)
    chunks = _chunks(fields.chunk_index)
    if not fields.compression and encryption is None and not is_stored_plain(chunks):
        detail = f"{chunks.original_bytes} bytes, stored as they are in {chunks.stored_bytes}"
        raise _Refused(LayoutFault.INCONSISTENT, f"chunkIndex: {detail}")
    described: SegmentDescription | LayoutFinding | None = None
    if fields.remote_log_segment_metadata is not None:
        try:
            described = _description(
                typed_value(fields.remote_log_segment_metadata, _Description, _DESCRIBED)
            )
        except JsonFault as fault:
            described = LayoutFinding(LayoutFault(fault.kind), fault.detail)
        except InvalidArgument as error:
            described = LayoutFinding(LayoutFault.FIELD_WRONG, f"{_DESCRIBED}: {str(error)[:200]}")
    return Manifest(
        chunks, _indexes(fields.segment_indexes), fields.compression, described, encryption
    )


def _encryption(fields: _Encryption) -> SegmentEncryption:
    key_id, _, sealed = fields.data_key.partition(":")
    try:
        # The sealed key is no secret; the detail does not show it all the same.
        sealed_key = base64.b64decode(sealed, validate=True)
        return SegmentEncryption(key_id, sealed_key, base64.b64decode(fields.aad, validate=True))
    except (binascii.Error, ValueError, InvalidArgument) as error:
        detail = f"encryption: expected dataKey ID:BASE64 and aad BASE64: {error}"
        raise _Refused(LayoutFault.FIELD_WRONG, detail[:300]) from error


def _chunks(loaded: Any) -> ChunkIndex:
    kind = typed_value(loaded, _ChunksKind, "chunkIndex").type
    try:
        if kind == "fixed":
            fixed = typed_value(loaded, _FixedChunks, "chunkIndex")
            return FixedChunks(*msgspec.structs.astuple(fixed)[1:])
        if kind != "variable":
            raise _Refused(LayoutFault.UNSUPPORTED, f"chunkIndex.type: {kind[:80]!r}")
        variable = typed_value(loaded, _VariableChunks, "chunkIndex")
        sizes = parse_sizes(variable.transformed_chunks)
        if isinstance(sizes, LayoutFinding):
            raise _Refused(sizes.kind, f"chunkIndex.{sizes.detail}")
        return VariableChunks(variable.original_chunk_size, variable.original_file_size, sizes)
    except InvalidArgument as error:
        raise _Refused(LayoutFault.INCONSISTENT, f"chunkIndex: {error}") from error


def _indexes(fields: _Indexes) -> SegmentIndexes:
    for name in fields.__struct_fields__:
        place = getattr(fields, name)
        if place is not None and place.position + place.size > INT32_MAX:
            detail = f"segmentIndexes.{name}.size: {place.size}, it begins at {place.position}"
            raise _Refused(LayoutFault.FIELD_WRONG, detail)
    places = msgspec.structs.astuple(fields)
    return SegmentIndexes._make(
        None if place is None else IndexPlace(place.position, place.size) for place in places
    )


def _description(fields: _Description) -> SegmentDescription:
    identity = fields.remote_log_segment_id.topic_id_partition
    named, note = identity.topic_partition, fields.rlmm
    if fields.end_offset < fields.start_offset:
        msg = f"endOffset: {fields.end_offset}, it begins at {fields.start_offset}"
        raise InvalidArgument(msg)
    return SegmentDescription(
        SegmentId(
            TopicIdPartition(Uuid.parse(identity.topic_id), named.topic, named.partition),
            Uuid.parse(fields.remote_log_segment_id.id),
        ),
        fields.start_offset,
        fields.end_offset,
        fields.max_timestamp_ms,
        fields.broker_id,
        fields.event_timestamp_ms,
        _epochs(fields.segment_leader_epochs),
        None if note is None else _note(note),
    )


def _note(note: _Note) -> CopyNote:
    digests = map(_digest, (note.source, note.log, note.indexes))
    return CopyNote(note.writer, note.job_id, *digests)


def _epochs(starts: dict[str, int]) -> tuple[tuple[int, int], ...]:
    for text in starts:
        if _EPOCH.fullmatch(text) is None or int(text) > INT32_MAX:
            msg = f"segmentLeaderEpochs: {text[:80]!r} is no epoch"
            raise InvalidArgument(msg)
    epochs = sorted((int(text), start) for text, start in starts.items())
    if not epochs or any(later[1] <= earlier[1] for earlier, later in pairwise(epochs)):
        msg = "segmentLeaderEpochs: expected one or more epochs whose first offsets rise"
        raise InvalidArgument(msg)
    return tuple(epochs)


def _digest(fields: _Digest) -> ContentDigest:
    crc64nvme = parse_crc64nvme(fields.crc64nvme)
    if _SHA256.fullmatch(fields.sha256) is None or crc64nvme is None:
        msg = "rlmm: expected sha256 in hexadecimal digits and crc64nvme in base64 of 8 bytes"
        raise InvalidArgument(msg)
    return ContentDigest(fields.size, bytes.fromhex(fields.sha256), crc64nvme)
