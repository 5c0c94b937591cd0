"""Control records, which brokers write: the record's key holds the kind (version, type: int16)."""

from __future__ import annotations

import struct
from enum import StrEnum

_KEY = struct.Struct(">hh")


class ControlType(StrEnum):
    """Kinds of control records, as far as a reader of ordinary topics must tell them apart."""

    ABORT = "abort"
    COMMIT = "commit"
    OTHER = "other"
    """Kinds of Kafka's own metadata log, kinds of later releases, and keys that cannot be read."""


_TYPES = {0: ControlType.ABORT, 1: ControlType.COMMIT}


def control_type(key: bytes | None) -> ControlType:
    """Name the kind that *key* tells; later versions of the key keep its first two fields."""
    if key is None or len(key) < _KEY.size:
        return ControlType.OTHER
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        return ControlType.OTHER
    return _TYPES.get(kind, ControlType.OTHER)


def control_key(kind: ControlType) -> bytes:
    types = {name: number for number, name in _TYPES.items()}
    return _KEY.pack(0, types[kind])
