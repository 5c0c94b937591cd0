"""The bytes of one segment, and as much of a store as it takes to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.segments.findings import SegmentPart
    from spark_tiering.stores.results import GetOutcome, ObjectAbsent, ObjectFacts

Piece = bytes | memoryview


class SegmentBytes(Protocol):
    """Reads one segment. Every method may raise `SegmentUnreadable`."""

    @property
    def where(self) -> str: ...

    @property
    def log_bytes(self) -> int: ...

    def pieces(self, first_byte: int = 0, last_byte: int | None = None) -> Iterator[Piece]:
        """
        Yield the bytes [first_byte, last_byte] of the log in order, cut to its end.

        Raises `InvalidArgument` for an end before the start.
        """

    def index(self, part: SegmentPart) -> bytes | None:
        """Return one of its indexes, whole; `None` where it has none."""


class ObjectReader(Protocol):
    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent: ...

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome: ...
