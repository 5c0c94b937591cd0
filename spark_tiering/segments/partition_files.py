"""The protocol of a partition's files, with nothing open, and streams of them. No I/O here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PIECE_BYTES = 512 * 1024
"""Read at once from a disk: what processor caches hold; eight times as much is slower."""
REMOTE_PIECE_BYTES = 4 * 1024 * 1024
"""Read at once from another machine: few requests, and little memory."""


class SourceFileFacts(NamedTuple):
    size_bytes: int
    modified_ms: int


class PartitionFiles(Protocol):
    """
    Files of one partition, which may change and vanish. Raises `LogUnavailable` when waiting may
    help, `LogNotPermitted` when only an operator can.
    """

    def facts(self) -> Mapping[str, SourceFileFacts]: ...

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return the bytes [start, start + size); fewer only where the file ends or is gone."""
        ...


class FileStream:
    """Reads one file once, up to the size that its source told; `finding` has other bytes."""

    def __init__(
        self,
        files: PartitionFiles,
        name: str,
        size: int,
        part: SegmentPart,
        *,
        piece_bytes: int | None = None,
        on_piece: Callable[[bytes], object] | None = None,
    ) -> None:
        self.name = name
        self.size = max(size, 0)
        self.part = part
        self.position = 0
        self.piece_bytes = piece_bytes or piece_bytes_of(files)
        self.finding: SegmentFinding | None = None
        self._files = files
        self._on_piece = on_piece

    @property
    def left(self) -> int:
        return self.size - self.position

    def next_piece(self) -> bytes:
        """Return the next bytes; none at the end, and none after a finding."""
        if self.finding is not None:
            return b""
        asked = min(self.piece_bytes, self.left)
        if asked == 0:
            if self._files.read(self.name, self.size, 1):
                self._changed(f"more than the {self.size} bytes that were told")
            return b""
        piece = self._files.read(self.name, self.position, asked)
        if len(piece) != asked:
            self._changed(f"{len(piece)} of {asked} bytes at byte {self.position} of {self.size}")
            return b""
        self.position += asked
        if self._on_piece is not None:
            self._on_piece(piece)
        return piece

    def _changed(self, detail: str) -> None:
        self.finding = SegmentFinding(
            self.part, SegmentFindingKind.CHANGED, f"{self.name}: {detail}"
        )


def piece_bytes_of(files: PartitionFiles) -> int:
    piece_bytes: int = getattr(files, "piece_bytes", PIECE_BYTES)
    return piece_bytes


def read_whole(
    files: PartitionFiles, name: str, size: int, part: SegmentPart, bytes_max: int
) -> bytes | SegmentFinding:
    """Return a small file at once; one that is larger than *bytes_max* is not read."""
    if size > bytes_max:
        detail = f"{name}: {size} bytes, at most {bytes_max} are read"
        return SegmentFinding(part, SegmentFindingKind.TOO_LARGE, detail)
    stream = FileStream(files, name, size, part, piece_bytes=bytes_max)
    content = stream.next_piece()
    if content and stream.finding is None:
        stream.next_piece()
    return content if stream.finding is None else stream.finding
