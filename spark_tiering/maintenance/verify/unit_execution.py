"""The execution of one unit; a failure of the store is reported of its segment, if it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError, InvalidArgument, StoreError
from rlmm.findings import tier_findings as tier_kinds
from spark_tiering.executor.throttle import throttle_of
from spark_tiering.layout.object_names import ObjectKind, parse_object_key
from spark_tiering.maintenance.verify.content_checks import check_content
from spark_tiering.maintenance.verify.object_checks import OBJECTS, examine_objects
from spark_tiering.maintenance.verify.values import (
    SegmentFault,
    SegmentFaults,
    UnitVerdict,
    VerifyWork,
    plain,
)
from spark_tiering.segment_reading.key_files import process_key_ring
from spark_tiering.segment_reading.tiered import KeyPlaces, TieredSegment
from spark_tiering.stores.opening import process_store

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.executor.throttle import Throttle
    from spark_tiering.layout.key_ring import KeyRing
    from spark_tiering.layout.manifest import Manifest
    from spark_tiering.maintenance.verify.object_checks import ObjectChecks
    from spark_tiering.maintenance.verify.values import VerifyUnit
    from spark_tiering.segment_reading.protocol import ObjectReader
    from spark_tiering.stores.results import GetOutcome, ObjectAbsent, ObjectFacts

REFUSALS_MAX: Final = 5
"""Failures of the store in a row after which the rest of the unit is skipped."""


def verify_unit(unit: VerifyUnit) -> UnitVerdict:
    try:
        store = process_store(unit.store)
        ring = process_key_ring(unit.key_ring)
    except (StoreError, ConfigError) as error:
        return UnitVerdict(unit.number, (), VerifyWork(), plain(str(error)))
    return carry_out(unit, store, ring, throttle_of(unit.job_id, unit.pace))


def carry_out(
    unit: VerifyUnit, store: ObjectReader, ring: KeyRing | None, throttle: Throttle
) -> UnitVerdict:
    looking = _Looking(unit, ThrottledReader(store, throttle), ring)
    found = []
    for at, segment in enumerate(unit.segments):
        faults = looking.at(segment)
        if faults:
            found.append(SegmentFaults(at, faults))
    return UnitVerdict(unit.number, tuple(found), looking.work)


class ThrottledReader:
    """Counts and paces requests; the next one waits for the bytes of the last one."""

    def __init__(self, store: ObjectReader, throttle: Throttle) -> None:
        self.requests = 0
        self._store = store
        self._throttle = throttle

    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent:
        self._ask()
        return self._store.head(key, is_sum_wanted=is_sum_wanted)

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome:
        self._ask()
        got = self._store.get(key, first_byte, last_byte)
        if isinstance(got, bytes):
            self._throttle.wait(len(got))
        return got

    def _ask(self) -> None:
        self.requests += 1
        self._throttle.wait(0, 1)


class _Looking:
    def __init__(self, unit: VerifyUnit, store: ThrottledReader, ring: KeyRing | None) -> None:
        self._unit = unit
        self._store = store
        self._ring = ring
        self._places = KeyPlaces(unit.prefixes)
        self._refused = 0
        self._why = ""
        self._segments = self._read_bytes = self._elsewhere = self._opened = 0
        self._snapshot: tuple[SegmentMetadata, bytes] | None = None

    @property
    def work(self) -> VerifyWork:
        objects = OBJECTS * self._segments
        requests = self._store.requests
        return VerifyWork(
            self._segments, objects, requests, self._read_bytes, self._elsewhere, self._opened
        )

    def at(self, segment: SegmentMetadata) -> tuple[SegmentFault, ...]:
        if self._refused >= REFUSALS_MAX:
            return (_not_looked_at(f"left alone after {self._refused} failures: {self._why}"),)
        try:
            faults = self._look(segment)
        except (StoreError, InvalidArgument) as error:
            self._refused += 1
            self._why = plain(str(error))
            return (_not_looked_at(self._why),)
        self._refused = 0
        self._segments += 1
        return faults

    def _look(self, segment: SegmentMetadata) -> tuple[SegmentFault, ...]:
        seen = examine_objects(self._store, segment, self._places)
        keys, manifest = seen.keys, seen.manifest
        if keys is None or manifest is None:
            return seen.faults
        if parse_object_key(keys[ObjectKind.MANIFEST], self._unit.prefixes[0]) is None:
            self._elsewhere += 1
        if not self._unit.is_deep or ObjectKind.LOG not in seen.stored_bytes:
            return seen.faults
        if manifest.chunks.original_bytes != segment.size_bytes:
            # Read by its manifest it would be judged as something that it is not said to be.
            return seen.faults
        source = TieredSegment(self._store, keys, manifest, self._ring)
        readable = readable_bytes(manifest, seen.stored_bytes[ObjectKind.LOG])
        content = check_content(
            segment,
            source,
            readable,
            self._snapshot_below(segment),
            allows_holes=self._unit.allows_holes,
        )
        self._snapshot = None if content.snapshot is None else (segment, content.snapshot)
        if not content.is_closed:
            self._read_bytes += readable
            self._opened += manifest.is_encrypted
        return merged(seen, content.faults)

    def _snapshot_below(self, segment: SegmentMetadata) -> bytes | None:
        """Return the producers below a segment, where the segment before ends there."""
        if self._snapshot is None:
            return None
        before, content = self._snapshot
        is_next = before.id.partition == segment.id.partition
        return content if is_next and before.last_offset + 1 == segment.start_offset else None


def readable_bytes(manifest: Manifest, stored_bytes: int) -> int:
    """Return how much of a log can be read of an object with so many bytes."""
    chunks = manifest.chunks
    if stored_bytes >= chunks.stored_bytes:
        return chunks.original_bytes
    if not manifest.is_compressed and not manifest.is_encrypted:
        return min(stored_bytes, chunks.original_bytes)
    whole = 0
    for number in range(chunks.count):
        chunk = chunks.chunk(number)
        if chunk.stored_start + chunk.stored_bytes > stored_bytes:
            break
        whole = chunk.original_start + chunk.original_bytes
    return whole


def merged(seen: ObjectChecks, content: tuple[SegmentFault, ...]) -> tuple[SegmentFault, ...]:
    """Join both checks; faults of reading say nothing new of an object that is missing or cut."""
    read = [one for one in content if one.part == ObjectKind.LOG]
    is_closed = any(one.part == ObjectKind.MANIFEST for one in content)
    known = {(one.code, one.where) for one in seen.faults if one.part != ObjectKind.LOG}
    exact = {one.code for one in read}
    faults = []
    for one in seen.faults:
        if one.part != ObjectKind.LOG or is_closed:
            faults.append(one)
        elif one.code not in exact:
            # What can be read of it was read: what is lost is told by that.
            faults.append(one._replace(lost=()))
    return (*faults, *(one for one in content if (one.code, one.where) not in known))


def _not_looked_at(why: str) -> SegmentFault:
    return SegmentFault(tier_kinds.UNREADABLE.code, "", "", plain(why))
