"""The reading of a whole object in pieces, and its comparison with the expected object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.stores.content import sum_of
from spark_tiering.stores.results import (
    ContentSum,
    ObjectAbsent,
    ObjectArchived,
    ObjectConflict,
    ObjectIdentical,
    PutUnknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import Found

WINDOW_BYTES = 8 * 1024 * 1024


def read_whole(
    store: ObjectStore, key: str, size_bytes: int, *, window_bytes: int = WINDOW_BYTES
) -> Iterator[bytes]:
    """Return an object's *size_bytes* bytes by windows; raises `OSError` where some lack."""
    position = 0
    while position < size_bytes:
        got = store.get(key, position, min(position + window_bytes, size_bytes) - 1)
        if not isinstance(got, bytes):
            msg = f"{key}: {type(got).__name__} at byte {position} of {size_bytes}"
            raise OSError(msg)
        yield got
        position += len(got)


def compare(store: ObjectStore, key: str, expected: ContentSum) -> Found:
    """Return whether *key* has the expected object, by reading if need be; `PutUnknown` if not."""
    facts = store.head(key)
    if isinstance(facts, ObjectAbsent):
        return facts
    if facts.size_bytes != expected.size_bytes:
        detail = f"{key}: {facts.size_bytes} bytes are there, not {expected}"
        return ObjectConflict(facts, detail)
    crc64nvme = facts.crc64nvme
    if crc64nvme is None:
        if facts.is_archived:
            return PutUnknown(str(ObjectArchived(key, facts.storage_class)))
        try:
            crc64nvme = sum_of(read_whole(store, key, facts.size_bytes)).crc64nvme
        except OSError as error:
            return PutUnknown(str(error))
    if crc64nvme != expected.crc64nvme:
        found = ContentSum(facts.size_bytes, crc64nvme)
        return ObjectConflict(facts, f"{key}: {found} are there, not {expected}")
    return ObjectIdentical(facts)
