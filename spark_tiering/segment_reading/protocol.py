"""The protocol of reading one segment: its bytes, the part of a store they need, the faults."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from rlmm.findings import tier_findings as tier_kinds
from spark_tiering.layout.findings import LayoutFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlmm.findings.finding import FindingKind
    from spark_tiering.layout.findings import LayoutFinding
    from spark_tiering.segments.findings import SegmentPart
    from spark_tiering.stores.results import GetOutcome, ObjectAbsent, ObjectArchived, ObjectFacts


class ReadFault(StrEnum):
    """Tells why bytes of a segment cannot be read. The list is closed."""

    MISSING = "missing"
    LENGTH = "length"
    DAMAGED = "damaged"
    MANIFEST = "manifest"
    """The manifest is none that a broker could read."""
    MISMATCH = "mismatch"
    """The metadata of the segment contradict themselves: its key can be none, its sizes differ."""
    ARCHIVED = "archived"
    """It lies in a storage class that must be restored first."""
    ENCRYPTED = "encrypted"
    """No key ring was named, or it lacks the key."""
    KEY_WRONG = "key-wrong"
    """The ring has a key of that name, and it is another one."""
    TOO_LARGE = "too-large"
    CHANGED = "changed"
    """The file is another one than when it was looked at."""


class SegmentUnreadable(Exception):
    """Ends a read with its fault; *where* is a key or a file. Never leaves `spark_tiering`."""

    def __init__(self, fault: ReadFault, where: str, detail: str) -> None:
        super().__init__(f"{where}: {detail}")
        self.fault = fault
        self.where = where
        self.detail = detail

    def __reduce__(self) -> tuple[type[SegmentUnreadable], tuple[ReadFault, str, str]]:
        return SegmentUnreadable, (self.fault, self.where, self.detail)


_OF_LAYOUT: Final[Mapping[LayoutFault, ReadFault]] = {
    LayoutFault.TOO_LARGE: ReadFault.TOO_LARGE,
    LayoutFault.NOT_JSON: ReadFault.MANIFEST,
    LayoutFault.UNSUPPORTED: ReadFault.MANIFEST,
    LayoutFault.FIELD_MISSING: ReadFault.MANIFEST,
    LayoutFault.FIELD_UNKNOWN: ReadFault.MANIFEST,
    LayoutFault.FIELD_WRONG: ReadFault.MANIFEST,
    LayoutFault.INCONSISTENT: ReadFault.MISMATCH,
    LayoutFault.ENCRYPTED: ReadFault.ENCRYPTED,
    LayoutFault.KEY_WRONG: ReadFault.KEY_WRONG,
    LayoutFault.MISSING: ReadFault.MISSING,
    LayoutFault.LENGTH: ReadFault.LENGTH,
    LayoutFault.DAMAGED: ReadFault.DAMAGED,
}

_KINDS: Final[Mapping[ReadFault, FindingKind]] = {
    ReadFault.MISSING: tier_kinds.OBJECT_MISSING,
    ReadFault.LENGTH: tier_kinds.OBJECT_LENGTH,
    ReadFault.DAMAGED: tier_kinds.OBJECT_DAMAGED,
    ReadFault.MANIFEST: tier_kinds.MANIFEST_MALFORMED,
    ReadFault.MISMATCH: tier_kinds.MANIFEST_MISMATCH,
    ReadFault.ARCHIVED: tier_kinds.OBJECT_ARCHIVED,
    ReadFault.ENCRYPTED: tier_kinds.OBJECT_ENCRYPTED,
    ReadFault.KEY_WRONG: tier_kinds.KEY_WRONG,
    ReadFault.TOO_LARGE: tier_kinds.UNREADABLE,
    ReadFault.CHANGED: tier_kinds.UNREADABLE,
}


def finding_kind(fault: ReadFault) -> FindingKind:
    return _KINDS[fault]


def of_finding(where: str, found: LayoutFinding) -> SegmentUnreadable:
    return SegmentUnreadable(_OF_LAYOUT[found.kind], where, found.detail)


def missing(where: str) -> SegmentUnreadable:
    return SegmentUnreadable(ReadFault.MISSING, where, "there is no such object")


def archived(found: ObjectArchived) -> SegmentUnreadable:
    detail = f"it lies in {found.storage_class}, and must be restored to be read"
    return SegmentUnreadable(ReadFault.ARCHIVED, found.key, detail)


Piece = bytes | memoryview


class SegmentBytes(Protocol):
    """Reads one segment. Every method may raise `SegmentUnreadable`."""

    @property
    def where(self) -> str: ...

    @property
    def log_bytes(self) -> int: ...

    def pieces(self, first_byte: int = 0, last_byte: int | None = None) -> Iterator[Piece]:
        """Yield the bytes [first_byte, last_byte], cut to the log; raises `InvalidArgument`."""

    def index(self, part: SegmentPart) -> bytes | None:
        """Return one of its indexes, whole; `None` where it has none."""


class ObjectReader(Protocol):
    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent: ...

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome: ...
