"""
Storage of tiered segments for programs: copy one, read ranges and indexes of it, delete it.

    with open_storage("s3://bucket/kafka/") as storage:
        copied = storage.copy(segment, {SegmentPart.LOG: path, ...})
        for piece in storage.fetch(segment, first_byte, last_byte):
            ...

A broker in Python can use it as its remote storage; brokers in Java read its objects, and it
theirs. Faults of one segment are values (`ObjectAbsent`, `ObjectArchived`, `LayoutFinding`), those
of the store as a whole errors of `spark_tiering.stores.protocol`. A storage is used by one thread
at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.base.closing import ClosedByWith
from rlmm.errors import InvalidArgument
from spark_tiering.executor.limited_io import UnitEnd
from spark_tiering.executor.object_check import read_manifest
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.executor.segment_writer import (
    LogToWrite,
    PartSource,
    SegmentWriter,
    read_indexes,
)
from spark_tiering.executor.tasks import CopyOptions, UnitOutcome
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.digests import StreamDigest
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.key_ring import cipher_of
from spark_tiering.layout.manifest import Manifest
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.layout.range_reading import plan_index_fetch, plan_log_fetches
from spark_tiering.segments.companions import PART_BYTES_MAX
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.segment_parts import REQUIRED
from spark_tiering.stores.content import PIECE_BYTES
from spark_tiering.stores.opening import open_store, parse_store
from spark_tiering.stores.results import ObjectAbsent, ObjectArchived, RangeBeyondObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.executor.object_deletion import ObjectDeletion
    from spark_tiering.layout.key_ring import KeyRing
    from spark_tiering.layout.range_reading import ObjectRangeRead
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.s3_settings import S3Settings

    Piece = bytes | memoryview

MANIFESTS_KEPT = 100
"""Of segments that were read last: a range costs one request then."""
CHUNKS_KEPT_MAX = 10_000
"""Manifests of more chunks are read each time."""

Unreadable = ObjectAbsent | ObjectArchived | LayoutFinding
"""Why something cannot be read: it is not there, not before it is restored, or not as it is."""


@dataclass(frozen=True, slots=True)
class CopiedSegment:
    """All three objects are there, verified; *is_new* says whether this call wrote any of them."""

    stored_bytes: int
    """What `CustomMetadata.remote_size_bytes` is for."""
    is_new: bool
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyFailure:
    """The segment is not in the store as a whole, and no manifest says that it were."""

    outcome: UnitOutcome
    detail: str


class TierStorage(ClosedByWith):
    """Reads the segments in one store under one prefix. The opener of the store closes it."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str = "",
        *,
        options: CopyOptions | None = None,
        writer: str = "storage",
        ring: KeyRing | None = None,
    ) -> None:
        """*writer* stands in the manifests of new copies; *ring* opens encrypted segments."""
        self._store = store
        self._prefix = prefix
        self._options = options or CopyOptions()
        self._writer = writer
        self._ring = ring
        self._manifests: dict[str, Manifest] = {}

    def close(self) -> None:
        self._store.close()

    def copy(
        self, segment: SegmentMetadata, parts: Mapping[SegmentPart, Path | bytes]
    ) -> CopiedSegment | CopyFailure:
        """
        Write a segment from all its parts; a repeat finds the objects. Raises `InvalidArgument`
        where a part is lacking, and where the metadata disagrees about transactions or size.
        """
        writer = SegmentWriter(
            self._store,
            segment,
            self._prefix_of(segment),
            self._options,
            self._writer,
            looks_first=True,
        )
        try:
            _require_parts(segment, parts)
            digest = StreamDigest()
            for piece in _pieces(parts[SegmentPart.LOG]):
                digest.add(piece)
            if digest.size_bytes != segment.size_bytes:
                told = f"the metadata says {segment.size_bytes}"
                msg = f"a log of {digest.size_bytes} bytes, {told}"
                raise InvalidArgument(msg)
            indexes = read_indexes(
                {part: _source(parts[part]) for part in parts if part is not SegmentPart.LOG}
            )
            writer.put_log(LogToWrite(digest.digest(), lambda: _pieces(parts[SegmentPart.LOG])))
            writer.put_indexes(indexes)
            done = writer.put_manifest()
        except UnitEnd as ended:
            return CopyFailure(ended.outcome, ended.detail)
        except OSError as error:
            return CopyFailure(UnitOutcome.SOURCE_FAILED, str(error))
        return CopiedSegment(done.stored_bytes, done.is_new, done.findings)

    def fetch(
        self, segment: SegmentMetadata, first_byte: int = 0, last_byte: int | None = None
    ) -> Iterator[Piece | Unreadable] | Unreadable:
        """
        Return the bytes [first_byte, last_byte] of a log, in pieces; None is the log's end. Raises
        `InvalidArgument` for an impossible range. A log that cannot be read from its beginning
        returns the reason at once; a read that fails in the middle ends with it as the last item.
        """
        if first_byte < 0 or (last_byte is not None and last_byte < first_byte):
            msg = f"bytes {first_byte} to {last_byte}: the end lies before the start"
            raise InvalidArgument(msg)
        manifest = self._manifest(segment)
        if not isinstance(manifest, Manifest):
            return manifest
        cipher = cipher_of(manifest, self._ring)
        if isinstance(cipher, LayoutFinding):
            return cipher
        planned = plan_log_fetches(manifest, first_byte, last_byte, cipher=cipher)
        if isinstance(planned, LayoutFinding):
            return planned
        contents = self._contents(segment, planned)
        first = next(contents)
        return first if isinstance(first, Unreadable) else chain((first,), contents)

    def fetch_index(self, segment: SegmentMetadata, part: SegmentPart) -> bytes | Unreadable | None:
        """Return one index, whole; `None` where the segment has no transaction index."""
        manifest = self._manifest(segment)
        if not isinstance(manifest, Manifest):
            return manifest
        if manifest.indexes.place(part) is None:
            return None
        cipher = cipher_of(manifest, self._ring)
        if isinstance(cipher, LayoutFinding):
            return cipher
        fetch = plan_index_fetch(manifest, part, cipher=cipher)
        if fetch is None or isinstance(fetch, LayoutFinding):
            return b"" if fetch is None else fetch
        if fetch.size_bytes > PART_BYTES_MAX:
            detail = f"{part} of {fetch.size_bytes} bytes, at most {PART_BYTES_MAX} are read"
            return LayoutFinding(LayoutFault.TOO_LARGE, detail)
        found = next(self._got(segment, ObjectKind.INDEXES, fetch))
        return found if isinstance(found, Unreadable) else bytes(found)

    def delete(self, segment: SegmentMetadata) -> ObjectDeletion:
        """Delete all objects of a segment; absent ones are no error."""
        self._manifests.pop(str(segment.id), None)
        return delete_objects(
            self._store, segment.id, segment.start_offset, self._prefix_of(segment)
        )

    def _prefix_of(self, segment: SegmentMetadata) -> str:
        """Return the prefix in the segment's metadata, if any: prefixes change, objects stay."""
        custom = parse_custom_metadata(segment.custom_metadata)
        if isinstance(custom, CustomMetadata) and custom.prefix is not None:
            return custom.prefix
        return self._prefix

    def _key(self, segment: SegmentMetadata, kind: ObjectKind) -> str:
        keys = object_keys(segment.id, segment.start_offset, self._prefix_of(segment))
        return keys[kind]

    def _manifest(self, segment: SegmentMetadata) -> Manifest | Unreadable:
        name = str(segment.id)
        kept = self._manifests.pop(name, None)
        if kept is None:
            found = read_manifest(self._store, self._key(segment, ObjectKind.MANIFEST))
            if not isinstance(found, Manifest):
                return found
            kept = found
        if kept.chunks.count <= CHUNKS_KEPT_MAX:
            self._manifests[name] = kept
        if len(self._manifests) > MANIFESTS_KEPT:
            del self._manifests[next(iter(self._manifests))]
        return kept

    def _contents(
        self, segment: SegmentMetadata, planned: Iterator[ObjectRangeRead]
    ) -> Iterator[Piece | Unreadable]:
        for fetch in planned:
            for found in self._got(segment, ObjectKind.LOG, fetch):
                yield found
                if isinstance(found, Unreadable):
                    return

    def _got(
        self, segment: SegmentMetadata, kind: ObjectKind, fetch: ObjectRangeRead
    ) -> Iterator[Piece | Unreadable]:
        key = self._key(segment, kind)
        got = self._store.get(key, fetch.first_byte, fetch.last_byte)
        if isinstance(got, bytes):
            yield from fetch.contents(got)
            return
        # Whoever took the object away took the manifest as well.
        self._manifests.pop(str(segment.id), None)
        if isinstance(got, RangeBeyondObject):
            yield LayoutFinding(LayoutFault.LENGTH, f"{key}: no byte {got.first_byte}")
        else:
            yield got


def open_storage(
    address: str,
    template: S3Settings | None = None,
    *,
    options: CopyOptions | None = None,
    ring: KeyRing | None = None,
) -> TierStorage:
    """Open the storage at `s3://bucket/prefix`, set up as *template*, or in a folder."""
    settings, prefix = parse_store(address, template)
    return TierStorage(open_store(settings), prefix, options=options, ring=ring)


def _require_parts(segment: SegmentMetadata, parts: Mapping[SegmentPart, Path | bytes]) -> None:
    lacking = [part for part in REQUIRED if part not in parts]
    if lacking:
        msg = f"a segment cannot be tiered without {', '.join(lacking)}"
        raise InvalidArgument(msg)
    aborted = parts.get(SegmentPart.TXN_INDEX)
    has_entries = aborted is not None and _size_bytes(aborted) > 0
    if segment.txn_index_empty is has_entries:
        # Readers of committed records would be given aborted ones.
        there = "with" if has_entries else "without"
        told = "empty" if segment.txn_index_empty else "not empty"
        msg = f"a transaction index {there} entries, and the metadata says that it is {told}"
        raise InvalidArgument(msg)


def _source(content: Path | bytes) -> PartSource:
    return PartSource(_size_bytes(content), lambda: _pieces(content))


def _size_bytes(content: Path | bytes) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


def _pieces(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
