"""
A manifest from its bytes, whoever wrote them. Pure.

Read is what the plugin reads, and nothing more lenient: what it cannot read is a finding that names
the field, since the brokers that the manifest is for cannot read the segment either. Stricter than
the plugin in this: repeated names, numbers with fractions, texts for flags, bytes behind the end,
and sizes that contradict each other are findings too; no writer writes them. As the plugin, it does
not judge `remoteLogSegmentMetadata`: what is wrong there is kept beside the rest.

Memory is bounded by `MANIFEST_BYTES_MAX`, `VALUES_MAX` and the limit of the list of chunks,
whatever the bytes are.
"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MIN, SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.chunk_index import FixedChunks, VariableChunks, is_stored_plain
from spark_tiering.layout.chunk_sizes import TEXT_CHARACTERS_MAX, parse_sizes
from spark_tiering.layout.digests import SHA256_BYTES, ContentDigest, parse_crc64nvme
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.json_fields import JsonFault, JsonFields, parse_object
from spark_tiering.layout.manifest import (
    NOTE_FIELD,
    VERSION,
    CopyNote,
    Manifest,
    SegmentDescription,
    SegmentEncryption,
)
from spark_tiering.layout.segment_indexes import IndexPlace, SegmentIndexes

if TYPE_CHECKING:
    from spark_tiering.layout.chunk_index import ChunkIndex

MANIFEST_BYTES_MAX = TEXT_CHARACTERS_MAX + 1024 * 1024
"""Longer ones are not looked at: the longest list of chunks, and 1 MiB for all else."""

_TOP = {
    "version",
    "chunkIndex",
    "segmentIndexes",
    "compression",
    "encryption",
    "remoteLogSegmentMetadata",
}
_COMMON = {"type", "originalChunkSize", "originalFileSize"}
_FIXED = _COMMON | {"transformedChunkSize", "finalTransformedChunkSize"}
_VARIABLE = _COMMON | {"transformedChunks"}
_INDEXES = {"offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction"}
_EPOCH = re.compile(r"0|[1-9][0-9]{0,9}")


def parse_manifest(content: bytes) -> Manifest | LayoutFinding:
    """What a manifest says, or why an unmodified broker could not read the segment by it."""
    try:
        return _manifest(JsonFields(parse_object(content, MANIFEST_BYTES_MAX)))
    except JsonFault as refused:
        return refused.finding


def _manifest(fields: JsonFields) -> Manifest:
    version = fields.value("version")
    # The plugin takes a number as well.
    if version != VERSION and (type(version) is not int or version != int(VERSION)):
        detail = f"version: {repr(version)[:80]}, expected {VERSION!r}"
        raise JsonFault(LayoutFault.UNSUPPORTED, detail)
    fields.require_only(_TOP)
    encryption = None
    if fields.has("encryption"):
        encryption = _encryption(fields.object("encryption"))
    is_compressed = fields.flag("compression")
    chunks = _chunks(fields.object("chunkIndex"))
    if not is_compressed and encryption is None and not is_stored_plain(chunks):
        detail = f"{chunks.original_bytes} bytes, stored as they are in {chunks.stored_bytes}"
        raise JsonFault(LayoutFault.INCONSISTENT, f"chunkIndex: {detail}")
    return Manifest(
        chunks,
        _indexes(fields.object("segmentIndexes")),
        is_compressed,
        _described(fields),
        encryption,
    )


def _encryption(fields: JsonFields) -> SegmentEncryption:
    fields.require_only({"dataKey", "aad"})
    key_id, _, sealed = fields.text("dataKey").partition(":")
    try:
        # What stands there is the key's id and the sealed key, which is no secret; it is not shown
        # all the same, as nobody can make anything of it.
        sealed_key = base64.b64decode(sealed, validate=True)
        return SegmentEncryption(key_id, sealed_key, _bytes_of(fields, "aad"))
    except (binascii.Error, ValueError, InvalidArgument) as error:
        detail = f"encryption.dataKey: expected ID:BASE64: {error}"
        raise JsonFault(LayoutFault.FIELD_WRONG, detail[:300]) from error


def _bytes_of(fields: JsonFields, name: str) -> bytes:
    try:
        return base64.b64decode(fields.text(name), validate=True)
    except (binascii.Error, ValueError):
        fields.wrong(name, "base64")


def _chunks(fields: JsonFields) -> ChunkIndex:
    kind = fields.text("type")
    if kind not in ("fixed", "variable"):
        raise JsonFault(LayoutFault.UNSUPPORTED, f"chunkIndex.type: {kind[:80]!r}")
    fields.require_only(_FIXED if kind == "fixed" else _VARIABLE)
    chunk_bytes = fields.number("originalChunkSize", 1)
    original_bytes = fields.number("originalFileSize")
    try:
        if kind == "fixed":
            stored_bytes = fields.number("transformedChunkSize")
            last_bytes = fields.number("finalTransformedChunkSize")
            return FixedChunks(chunk_bytes, original_bytes, stored_bytes, last_bytes)
        sizes = parse_sizes(fields.text("transformedChunks"))
        if isinstance(sizes, LayoutFinding):
            raise JsonFault(sizes.kind, f"chunkIndex.{sizes.detail}")
        return VariableChunks(chunk_bytes, original_bytes, sizes)
    except InvalidArgument as error:
        raise JsonFault(LayoutFault.INCONSISTENT, f"chunkIndex: {error}") from error


def _indexes(fields: JsonFields) -> SegmentIndexes:
    fields.require_only(_INDEXES)
    transaction = None
    # The name must be there, even where there is nothing.
    if fields.value("transaction") is not None:
        transaction = _place(fields.object("transaction"))
    return SegmentIndexes(
        _place(fields.object("offset")),
        _place(fields.object("timestamp")),
        _place(fields.object("producerSnapshot")),
        _place(fields.object("leaderEpoch")),
        transaction,
    )


def _place(fields: JsonFields) -> IndexPlace:
    fields.require_only({"position", "size"})
    place = IndexPlace(fields.number("position"), fields.number("size"))
    if place.next_position > INT32_MAX:
        fields.wrong("size", f"at most {INT32_MAX - place.position}, it begins at {place.position}")
    return place


def _described(fields: JsonFields) -> SegmentDescription | LayoutFinding | None:
    if not fields.has("remoteLogSegmentMetadata"):
        return None
    try:
        return _description(fields.object("remoteLogSegmentMetadata"))
    except JsonFault as refused:
        return refused.finding


def _description(fields: JsonFields) -> SegmentDescription:
    start_offset = fields.long("startOffset")
    return SegmentDescription(
        _segment_id(fields.object("remoteLogSegmentId")),
        start_offset,
        fields.long("endOffset", start_offset),
        fields.long("maxTimestampMs", INT64_MIN),
        fields.number("brokerId", INT32_MIN),
        fields.long("eventTimestampMs", INT64_MIN),
        _epochs(fields),
        _note(fields.object(NOTE_FIELD)) if fields.has(NOTE_FIELD) else None,
    )


def _segment_id(fields: JsonFields) -> SegmentId:
    partition = fields.object("topicIdPartition")
    named = partition.object("topicPartition")
    try:
        return SegmentId(
            TopicIdPartition(
                Uuid.parse(partition.text("topicId")),
                named.text("topic"),
                named.number("partition"),
            ),
            Uuid.parse(fields.text("id")),
        )
    except InvalidArgument as error:
        detail = f"remoteLogSegmentMetadata.remoteLogSegmentId: {str(error)[:200]}"
        raise JsonFault(LayoutFault.FIELD_WRONG, detail) from error


def _epochs(fields: JsonFields) -> tuple[tuple[int, int], ...]:
    starts: dict[str, Any] = dict(fields.mapping("segmentLeaderEpochs"))
    epochs = []
    within = fields.object("segmentLeaderEpochs")
    for text in starts:
        if _EPOCH.fullmatch(text) is None or int(text) > INT32_MAX:
            detail = f"remoteLogSegmentMetadata.segmentLeaderEpochs: {text[:80]!r} is no epoch"
            raise JsonFault(LayoutFault.FIELD_WRONG, detail)
        epochs.append((int(text), within.long(text)))
    epochs.sort()
    if not epochs or any(later[1] <= earlier[1] for earlier, later in pairwise(epochs)):
        fields.wrong("segmentLeaderEpochs", "one or more epochs whose first offsets rise")
    return tuple(epochs)


def _note(fields: JsonFields) -> CopyNote:
    try:
        return CopyNote(
            fields.text("writer"),
            fields.text("jobId"),
            _digest(fields.object("source")),
            _digest(fields.object("log")),
            _digest(fields.object("indexes")),
        )
    except InvalidArgument as error:
        detail = f"remoteLogSegmentMetadata.{NOTE_FIELD}: {str(error)[:200]}"
        raise JsonFault(LayoutFault.FIELD_WRONG, detail) from error


def _digest(fields: JsonFields) -> ContentDigest:
    text = fields.text("sha256")
    if re.fullmatch(rf"[0-9a-f]{{{2 * SHA256_BYTES}}}", text) is None:
        fields.wrong("sha256", f"{2 * SHA256_BYTES} hexadecimal digits")
    crc64nvme = parse_crc64nvme(fields.text("crc64nvme"))
    if crc64nvme is None:
        fields.wrong("crc64nvme", "base64 of 8 bytes")
    return ContentDigest(fields.number("size"), bytes.fromhex(text), crc64nvme)
