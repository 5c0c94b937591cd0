"""Results of calls on a store; `rlmm.errors.StoreError` is for the whole store. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from spark_tiering.layout.object_verification import StoredObject


class ContentSum(NamedTuple):
    size_bytes: int
    crc64nvme: int

    def __str__(self) -> str:
        return f"{self.size_bytes} bytes with CRC-64/NVME {self.crc64nvme:016x}"


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    size_bytes: int
    crc64nvme: int | None
    """`None`: the store does not tell, or was not asked."""
    modified_ms: int
    storage_class: str = ""
    is_archived: bool = False
    """The object must be restored before a broker or a job can read it."""

    @property
    def stored(self) -> StoredObject:
        return StoredObject(self.size_bytes, self.crc64nvme)


class ObjectAbsent(NamedTuple):
    key: str


class ObjectArchived(NamedTuple):
    """The object is there, in a class that cannot be read until it is restored."""

    key: str
    storage_class: str

    def __str__(self) -> str:
        return f"{self.key}: archived ({self.storage_class}), it must be restored to be read"


class RangeBeyondObject(NamedTuple):
    key: str
    first_byte: int


@dataclass(frozen=True, slots=True)
class ObjectWritten:
    """The object is there, and this call wrote it."""

    size_bytes: int
    crc64nvme: int


@dataclass(frozen=True, slots=True)
class ObjectIdentical:
    """An object of the same length and checksum is there; this call, or one before it, wrote it."""

    facts: ObjectFacts


@dataclass(frozen=True, slots=True)
class ObjectConflict:
    """Another object is there under this key. The store left it as it is."""

    facts: ObjectFacts
    detail: str


@dataclass(frozen=True, slots=True)
class PutUnknown:
    """It is unknown whether the object was written, or will still be: look before repeating."""

    detail: str


class PutRefusal(StrEnum):
    """Tells why an object was surely not written. The list is closed."""

    SOURCE = "source"
    """The source failed, or gave other bytes than announced."""
    CHECKSUM = "checksum"
    """What arrived at the store, again and again, was not what was sent."""
    NO_ROOM = "no-room"
    TOO_LARGE = "too-large"
    """More than the store takes in one object."""
    KEY = "key"
    """The store cannot have such a key, or not beside the keys that it has."""
    SWEPT = "swept"
    """Another process ended the unfinished upload."""


@dataclass(frozen=True, slots=True)
class PutRefused:
    """The object was not written, and nothing of it is left."""

    reason: PutRefusal
    detail: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


PutOutcome = ObjectWritten | ObjectIdentical | ObjectConflict | PutUnknown | PutRefused
Found = ObjectIdentical | ObjectConflict | PutUnknown | ObjectAbsent
"""How what is there compares with what should be."""
GetOutcome = bytes | ObjectAbsent | ObjectArchived | RangeBeyondObject


class ListedObject(NamedTuple):
    key: str
    size_bytes: int
    modified_ms: int
    storage_class: str = ""


class ListedFolder(NamedTuple):
    """The common start of some keys of a level up to their next slash, its last character."""

    key: str


class OpenUpload(NamedTuple):
    """A write that was begun and neither completed nor ended; it takes room, and is no object."""

    key: str
    upload_id: str
    began_ms: int


class StoreTraits(NamedTuple):
    refuses_second_put: bool
    """A key that exists is not written anew, also by two writers at once."""
    refuses_second_upload: bool
    checks_sums: bool
    """Bytes that do not have the checksum that they came with are refused."""
    tells_sums: bool
    """The checksum can be asked for without reading the object."""

    @property
    def findings(self) -> tuple[str, ...]:
        missing = {
            "conditional puts are ignored: two writers may overwrite each other": (
                self.refuses_second_put
            ),
            "conditional completion of uploads is ignored: two writers may overwrite each other": (
                self.refuses_second_upload
            ),
            "wrong checksums are accepted: only reading back tells what was stored": (
                self.checks_sums
            ),
            "checksums are not told: comparing reads the whole object": self.tells_sums,
        }
        return tuple(text for text, is_fine in missing.items() if not is_fine)
