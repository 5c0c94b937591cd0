"""
A tiered segment: ranges of its log and its indexes, by its manifest, at one of several places. A
log range takes few requests, of up to 16 MiB each. A small object of indexes is requested whole.
The manifest is looked for under the prefix in the segment's own metadata, then under today's and
older ones; the prefix that had it is tried first for the next segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.key_ring import cipher_of
from spark_tiering.layout.manifest_document import MANIFEST_BYTES_MAX, parse_manifest
from spark_tiering.layout.object_names import ObjectKind, main_key, parse_object_key
from spark_tiering.layout.range_reading import FETCH_BYTES, plan_index_fetch, plan_log_fetches
from spark_tiering.segment_reading.protocol import (
    ReadFault,
    SegmentUnreadable,
    archived,
    missing,
    of_finding,
)
from spark_tiering.segments.companions import PART_BYTES_MAX
from spark_tiering.stores.protocol import check_key
from spark_tiering.stores.results import ObjectAbsent, ObjectArchived, RangeBeyondObject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.encryption import SegmentCipher
    from spark_tiering.layout.key_ring import KeyRing
    from spark_tiering.layout.manifest import Manifest
    from spark_tiering.layout.range_reading import ObjectRangeRead
    from spark_tiering.segment_reading.protocol import ObjectReader, Piece
    from spark_tiering.segments.findings import SegmentPart

Keys = dict[ObjectKind, str]


class KeyPlaces:
    """Lists the prefixes of objects: first that of today, then older ones."""

    def __init__(self, prefixes: Sequence[str] = ("",)) -> None:
        self._prefixes = list(dict.fromkeys(prefixes)) or [""]

    @property
    def count(self) -> int:
        return len(self._prefixes)

    def candidates(
        self, segment_id: SegmentId, start_offset: int, custom_metadata: bytes | None = None
    ) -> list[Keys]:
        """Return the keys of all objects, likeliest first; `SegmentUnreadable` for none."""
        try:
            main = main_key(segment_id, start_offset)
            named = [f"{prefix}{main}" for prefix in self._prefixes]
            custom = parse_custom_metadata(custom_metadata)
            own: list[str] = []
            if isinstance(custom, CustomMetadata) and _names_a_place(custom):
                prefixes = self._prefixes if custom.prefix is None else [custom.prefix]
                own = [f"{prefix}{custom.main_key or main}" for prefix in prefixes]
            # Where their prefix is known, log and indexes are nowhere else.
            content = own[0] if len(own) == 1 else None
            found = [_keys(content or one, one) for one in dict.fromkeys([*own, *named])]
            for keys in found:
                for key in keys.values():
                    check_key(key)
        except InvalidArgument as error:
            where = str(segment_id.uuid)
            raise SegmentUnreadable(ReadFault.MISMATCH, where, str(error)[:400]) from error
        return found

    def found(self, keys: Keys) -> None:
        for prefix in self._prefixes:
            if parse_object_key(keys[ObjectKind.MANIFEST], prefix) is not None:
                self._prefixes.remove(prefix)
                self._prefixes.insert(0, prefix)
                return


def _keys(content: str, manifest: str) -> Keys:
    return {
        kind: f"{manifest if kind is ObjectKind.MANIFEST else content}.{kind}"
        for kind in ObjectKind
    }


def _names_a_place(custom: CustomMetadata) -> bool:
    return custom.prefix is not None or custom.main_key is not None


INDEXES_AT_ONCE_BYTES = 4 * 1024 * 1024
"""Objects of indexes up to here are asked for in one request; 512 KiB is usual for 1 GiB of log."""


def open_tiered(
    store: ObjectReader,
    segment: SegmentMetadata,
    prefixes: Sequence[str] | KeyPlaces = ("",),
    ring: KeyRing | None = None,
) -> TieredSegment:
    """Return the segment by its manifest; raises `SegmentUnreadable` for none that fits."""
    places = prefixes if isinstance(prefixes, KeyPlaces) else KeyPlaces(prefixes)
    keys, manifest = find_manifest(store, segment, places)
    if manifest.chunks.original_bytes != segment.size_bytes:
        told = f"a log of {manifest.chunks.original_bytes} bytes"
        detail = f"{told}, the metadata says {segment.size_bytes}"
        raise SegmentUnreadable(ReadFault.MISMATCH, keys[ObjectKind.MANIFEST], detail)
    return TieredSegment(store, keys, manifest, ring)


def find_manifest(
    store: ObjectReader, segment: SegmentMetadata, places: KeyPlaces
) -> tuple[Keys, Manifest]:
    """Find a segment's objects and its manifest. Raise `SegmentUnreadable`."""
    candidates = places.candidates(segment.id, segment.start_offset, segment.custom_metadata)
    by_manifest = {keys[ObjectKind.MANIFEST]: keys for keys in candidates}
    key, found = first_manifest(store, by_manifest)
    places.found(by_manifest[key])
    return by_manifest[key], found


def first_manifest(store: ObjectReader, candidates: Collection[str]) -> tuple[str, Manifest]:
    """Return the first key that has an object, and its manifest. Raise `SegmentUnreadable`."""
    for key in candidates:
        got = store.get(key, 0, MANIFEST_BYTES_MAX)
        if isinstance(got, ObjectAbsent):
            continue
        if isinstance(got, ObjectArchived):
            raise archived(got)
        # An object of no bytes has no first one.
        found = parse_manifest(got if isinstance(got, bytes) else b"")
        if isinstance(found, LayoutFinding):
            raise SegmentUnreadable(ReadFault.MANIFEST, key, str(found))
        return key, found
    raise missing(next(iter(candidates)))


class TieredSegment:
    """Reads one segment of a tier, see `SegmentBytes`; used by one thread at a time."""

    def __init__(
        self,
        store: ObjectReader,
        keys: Keys,
        manifest: Manifest,
        ring: KeyRing | None = None,
        *,
        fetch_bytes: int = FETCH_BYTES,
    ) -> None:
        self.keys = keys
        self.manifest = manifest
        self._store = store
        self._ring = ring
        self._fetch_bytes = fetch_bytes
        self._cipher: SegmentCipher | None = None
        self._is_cipher_known = not manifest.is_encrypted
        self._indexes: bytes | None = None

    @property
    def where(self) -> str:
        return self.keys[ObjectKind.LOG]

    @property
    def log_bytes(self) -> int:
        return self.manifest.chunks.original_bytes

    @property
    def cipher(self) -> SegmentCipher | None:
        if not self._is_cipher_known:
            found = cipher_of(self.manifest, self._ring)
            if isinstance(found, LayoutFinding):
                raise of_finding(self.keys[ObjectKind.MANIFEST], found)
            self._cipher, self._is_cipher_known = found, True
        return self._cipher

    def pieces(self, first_byte: int = 0, last_byte: int | None = None) -> Iterator[Piece]:
        require_range(first_byte, last_byte)
        if first_byte >= self.log_bytes:
            return
        planned = plan_log_fetches(
            self.manifest, first_byte, last_byte, cipher=self.cipher, fetch_bytes=self._fetch_bytes
        )
        if isinstance(planned, LayoutFinding):
            raise of_finding(self.keys[ObjectKind.MANIFEST], planned)
        for fetch in planned:
            yield from self._contents(self.where, fetch)

    def index(self, part: SegmentPart) -> bytes | None:
        place = self.manifest.indexes.place(part)
        if place is None:
            return None
        key = self.keys[ObjectKind.INDEXES]
        fetch = plan_index_fetch(self.manifest, part, cipher=self.cipher)
        if fetch is None:
            return b""
        if isinstance(fetch, LayoutFinding):
            raise of_finding(self.keys[ObjectKind.MANIFEST], fetch)
        if fetch.size_bytes > PART_BYTES_MAX:
            detail = f"{part} of {fetch.size_bytes} bytes, at most {PART_BYTES_MAX} are read"
            raise SegmentUnreadable(ReadFault.TOO_LARGE, key, detail)
        if self.manifest.indexes.size_bytes <= INDEXES_AT_ONCE_BYTES:
            if self._indexes is None:
                last_byte = self.manifest.indexes.size_bytes - 1
                self._indexes = self._got(key, 0, last_byte)
            body = self._indexes[fetch.first_byte : fetch.last_byte + 1]
        else:
            body = self._got(key, fetch.first_byte, fetch.last_byte)
        (found,) = fetch.contents(body)
        if isinstance(found, LayoutFinding):
            raise of_finding(key, LayoutFinding(found.kind, f"{part}: {found.detail}"))
        return bytes(found)

    def _contents(self, key: str, fetch: ObjectRangeRead) -> Iterator[Piece]:
        for found in fetch.contents(self._got(key, fetch.first_byte, fetch.last_byte)):
            if isinstance(found, LayoutFinding):
                raise of_finding(key, found)
            yield found

    def _got(self, key: str, first_byte: int, last_byte: int) -> bytes:
        got = self._store.get(key, first_byte, last_byte)
        if isinstance(got, bytes):
            return got
        if isinstance(got, ObjectArchived):
            raise archived(got)
        if isinstance(got, RangeBeyondObject):
            found = LayoutFinding(LayoutFault.LENGTH, f"it has no byte {got.first_byte}")
            raise of_finding(key, found)
        raise missing(key)


def require_range(first_byte: int, last_byte: int | None) -> None:
    if first_byte < 0 or (last_byte is not None and last_byte < first_byte):
        msg = f"bytes {first_byte} to {last_byte}: the end lies before the start"
        raise InvalidArgument(msg)
