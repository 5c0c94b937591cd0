"""The probe of conditional puts: whether a store keeps the first of two writers' objects."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.results import ObjectConflict, ObjectWritten

if TYPE_CHECKING:
    from spark_tiering.stores.protocol import ObjectStore

FIRST = BytesContent(b"rlmm writes this to see whether a second writer is refused: the first\n")
SECOND = BytesContent(b"rlmm writes this to see whether a second writer is refused: the 2nd..\n")


def probe_key(prefix: str) -> str:
    return f"{prefix}rlmm-probe-{uuid.uuid4().hex}"


def refuses_second_put(store: ObjectStore, prefix: str) -> bool:
    key = probe_key(prefix)
    try:
        first = store.put(key, FIRST)
        second = store.put(key, SECOND)
    finally:
        store.delete(key)
    return isinstance(first, ObjectWritten) and isinstance(second, ObjectConflict)
