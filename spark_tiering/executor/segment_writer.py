"""
The writer of a segment's three objects, in their order and each verified: the manifest is last. An
interruption is `UnitEnd` before the manifest: no reader takes these objects for a segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.base.version import __version__
from spark_tiering.executor.limited_io import UnitEnd
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.layout.chunk_index import chunk_bytes_for, plain_chunks
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import CopyNote, Manifest, describe
from spark_tiering.layout.manifest_document import format_manifest
from spark_tiering.layout.object_making import IndexesObject, LogObject, MadeLog
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.stores.content import BytesContent, ContentStream
from spark_tiering.stores.object_reading import compare
from spark_tiering.stores.results import (
    ContentSum,
    ObjectAbsent,
    ObjectArchived,
    ObjectConflict,
    ObjectIdentical,
    ObjectWritten,
    PutRefusal,
    PutRefused,
    PutUnknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.executor.tasks import CopyOptions
    from spark_tiering.layout.digests import ContentDigest
    from spark_tiering.layout.object_making import MadeIndexes
    from spark_tiering.segments.findings import SegmentPart
    from spark_tiering.stores.content import ObjectContent
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import ObjectFacts, PutOutcome

WRITER = f"rlmm {__version__}"

OUTCOMES: Mapping[PutRefusal, UnitOutcome] = {
    PutRefusal.SOURCE: UnitOutcome.SOURCE_CHANGED,
    PutRefusal.CHECKSUM: UnitOutcome.REFUSED,
    PutRefusal.NO_ROOM: UnitOutcome.REFUSED,
    PutRefusal.TOO_LARGE: UnitOutcome.REFUSED,
    PutRefusal.KEY: UnitOutcome.REFUSED,
    PutRefusal.SWEPT: UnitOutcome.STORE_FAILED,
}
"""What a refusal means for a unit; one whose upload was swept may write it again."""


class PartSource(NamedTuple):
    """Bytes that can be walked as often as needed, and how many there should be."""

    size_bytes: int
    pieces: Callable[[], Iterable[bytes]]


class LogToWrite(NamedTuple):
    digest: ContentDigest
    pieces: Callable[[], Iterator[bytes]]


class IndexesToWrite(NamedTuple):
    made: MadeIndexes
    parts: Mapping[SegmentPart, PartSource]


class StoredSegment(NamedTuple):
    stored_bytes: int
    log_crc64nvme: int | None
    is_new: bool
    """Some of it was written now."""
    findings: tuple[str, ...] = ()


class _Walkable:
    """A content whose sum is known, walked anew each time it is sent."""

    def __init__(self, expected: ContentSum, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.sum = expected
        self.pieces = pieces


def read_indexes(parts: Mapping[SegmentPart, PartSource]) -> IndexesToWrite:
    whole = _indexes_object(parts)
    for _ in whole:
        pass
    if whole.made is None:
        raise UnitEnd(UnitOutcome.SOURCE_FAILED, str(whole.finding))
    return IndexesToWrite(whole.made, parts)


class SegmentWriter:
    """Writes log, indexes, manifest in this order; *looks_first* for objects already there."""

    def __init__(
        self,
        store: ObjectStore,
        segment: SegmentMetadata,
        prefix: str,
        options: CopyOptions,
        job_id: str,
        *,
        looks_first: bool = False,
    ) -> None:
        self._store = store
        self._segment = segment
        self._keys = object_keys(segment.id, segment.start_offset, prefix)
        self._options = options
        self._job_id = job_id
        self._looks_first = looks_first
        self._log: MadeLog | None = None
        self._indexes: MadeIndexes | None = None
        self._stored_bytes = 0
        self._is_new = False
        self._findings: list[str] = []

    def put_log(self, log: LogToWrite) -> None:
        chunk_bytes = chunk_bytes_for(log.digest.size_bytes, self._options.chunk_bytes)
        if isinstance(chunk_bytes, LayoutFinding):
            raise UnitEnd(UnitOutcome.BLOCKED, str(chunk_bytes))
        if self._options.is_compressed:
            self._log = self._put_compressed(log)
            return
        chunks = plain_chunks(log.digest.size_bytes, chunk_bytes)
        content = _Walkable(_sum(log.digest), log.pieces)
        self._settle(ObjectKind.LOG, content.sum, self._put(ObjectKind.LOG, content))
        self._log = MadeLog(chunks, log.digest, log.digest)

    def put_indexes(self, indexes: IndexesToWrite) -> None:
        expected = _sum(indexes.made.stored)
        content = _Walkable(expected, lambda: _indexes_object(indexes.parts))
        outcome = self._put(ObjectKind.INDEXES, content)
        if isinstance(outcome, PutRefused) and outcome.reason is PutRefusal.SOURCE:
            # The log is what it was: a repeat reads the other files as they are then.
            raise UnitEnd(UnitOutcome.SOURCE_FAILED, str(outcome))
        self._settle(ObjectKind.INDEXES, expected, outcome)
        self._indexes = indexes.made

    def put_manifest(self) -> StoredSegment:
        assert self._log is not None
        assert self._indexes is not None
        log, indexes = self._log, self._indexes
        note = CopyNote(WRITER, self._job_id, log.source, log.stored, indexes.stored)
        described = describe(self._segment, note)
        manifest = Manifest(log.chunks, indexes.places, self._options.is_compressed, described)
        content = BytesContent(format_manifest(manifest))
        self._settle(ObjectKind.MANIFEST, content.sum, self._put(ObjectKind.MANIFEST, content))
        return StoredSegment(
            self._stored_bytes, log.stored.crc64nvme, self._is_new, tuple(self._findings)
        )

    def _put_compressed(self, log: LogToWrite) -> MadeLog:
        options = self._options
        made = LogObject(
            log.pieces(),
            log.digest.size_bytes,
            is_compressed=True,
            chunk_bytes=options.chunk_bytes,
            level=options.level,
        )

        def told() -> ContentSum | None:
            is_whole = made.made is not None and made.made.source == log.digest
            return _sum(made.made.stored) if made.made is not None and is_whole else None

        outcome = self._store.put_stream(self._keys[ObjectKind.LOG], ContentStream(made, told))
        if made.finding is not None and made.finding.kind is LayoutFault.TOO_LARGE:
            raise UnitEnd(UnitOutcome.BLOCKED, str(made.finding))
        expected = told()
        if expected is None or made.made is None:
            detail = made.finding or f"the log is not {log.digest.size_bytes} bytes as before"
            refused = PutRefused(PutRefusal.SOURCE, str(detail))
            raise _ended(outcome if isinstance(outcome, PutRefused | PutUnknown) else refused)
        self._settle(ObjectKind.LOG, expected, outcome)
        return made.made

    def _put(self, kind: ObjectKind, content: ObjectContent) -> PutOutcome:
        key = self._keys[kind]
        if self._looks_first:
            found = compare(self._store, key, content.sum)
            if not isinstance(found, ObjectAbsent):
                return found
        return self._store.put(key, content)

    def _settle(self, kind: ObjectKind, expected: ContentSum, outcome: PutOutcome) -> None:
        if isinstance(outcome, ObjectWritten):
            self._is_new = True
            facts = self._verified(self._keys[kind], expected)
        elif isinstance(outcome, ObjectIdentical):
            facts = outcome.facts
        else:
            raise _ended(outcome)
        self._stored_bytes += facts.size_bytes
        if facts.is_archived:
            self._findings.append(str(ObjectArchived(self._keys[kind], facts.storage_class)))

    def _verified(self, key: str, expected: ContentSum) -> ObjectFacts:
        facts = self._store.head(key)
        if isinstance(facts, ObjectAbsent):
            raise UnitEnd(UnitOutcome.UNKNOWN, f"{key}: it was written, and is not there")
        told = ContentSum(
            facts.size_bytes, expected.crc64nvme if facts.crc64nvme is None else facts.crc64nvme
        )
        if told != expected:
            raise UnitEnd(UnitOutcome.CONFLICT, f"{key}: {told} are there, {expected} were written")
        return facts


def _ended(outcome: ObjectConflict | PutUnknown | PutRefused) -> UnitEnd:
    if isinstance(outcome, PutRefused):
        return UnitEnd(OUTCOMES[outcome.reason], str(outcome))
    is_other = isinstance(outcome, ObjectConflict)
    return UnitEnd(UnitOutcome.CONFLICT if is_other else UnitOutcome.UNKNOWN, outcome.detail)


def _indexes_object(parts: Mapping[SegmentPart, PartSource]) -> IndexesObject:
    return IndexesObject(
        {part: source.pieces() for part, source in parts.items()},
        {part: source.size_bytes for part, source in parts.items()},
    )


def _sum(digest: ContentDigest) -> ContentSum:
    return ContentSum(digest.size_bytes, digest.crc64nvme)
