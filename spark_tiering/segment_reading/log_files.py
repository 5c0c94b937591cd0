"""A segment of a broker's log folder, read as one of a tier is; indexes without padding zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.partition_log.checkpoints import format_epochs
from rlmm.partition_log.names import EPOCH_CHECKPOINT, LOG, OFFSET_INDEX, TIME_INDEX, segment_file
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable
from spark_tiering.segment_reading.tiered import require_range
from spark_tiering.segments.companions import PART_BYTES_MAX
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.leader_epochs import epochs_of_file, epochs_until
from spark_tiering.segments.partition_files import piece_bytes_of, read_whole
from spark_tiering.segments.segment_listing import SNAPSHOT, TXN_INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spark_tiering.segment_reading.protocol import Piece
    from spark_tiering.segments.partition_files import PartitionFiles, SourceFileFacts
    from spark_tiering.segments.segment_listing import ListedSegment

_ENTRY_BYTES: Final = {SegmentPart.OFFSET_INDEX: 8, SegmentPart.TIME_INDEX: 12}
_FAULTS: Final = {
    SegmentFindingKind.MISSING: ReadFault.MISSING,
    SegmentFindingKind.CHANGED: ReadFault.CHANGED,
    SegmentFindingKind.TOO_LARGE: ReadFault.TOO_LARGE,
}


class FolderSegment:
    """Reads one segment of a folder; *facts* are those of one look at the folder."""

    def __init__(
        self,
        files: PartitionFiles,
        listed: ListedSegment,
        facts: Mapping[str, SourceFileFacts] | None = None,
    ) -> None:
        self.listed = listed
        self._files = files
        self._facts = files.facts() if facts is None else facts
        log = self._facts.get(self.where)
        if log is None:
            raise SegmentUnreadable(ReadFault.MISSING, self.where, "there is no such file")
        self._log_bytes = log.size_bytes

    @property
    def where(self) -> str:
        return self.listed.file(LOG)

    @property
    def log_bytes(self) -> int:
        return self._log_bytes

    def pieces(self, first_byte: int = 0, last_byte: int | None = None) -> Iterator[Piece]:
        require_range(first_byte, last_byte)
        behind = self._log_bytes if last_byte is None else min(last_byte + 1, self._log_bytes)
        position, piece_bytes = first_byte, piece_bytes_of(self._files)
        while position < behind:
            asked = min(piece_bytes, behind - position)
            piece = self._files.read(self.where, position, asked)
            if len(piece) != asked:
                detail = f"{len(piece)} of {asked} bytes at byte {position} of {self._log_bytes}"
                raise SegmentUnreadable(ReadFault.CHANGED, self.where, detail)
            yield piece
            position += asked

    def index(self, part: SegmentPart) -> bytes | None:
        name = self._name_of(part)
        facts = None if name is None else self._facts.get(name)
        if name is None or facts is None:
            return None
        found = read_whole(self._files, name, facts.size_bytes, part, PART_BYTES_MAX)
        if isinstance(found, SegmentFinding):
            fault = _FAULTS.get(found.kind, ReadFault.DAMAGED)
            raise SegmentUnreadable(fault, name, found.detail)
        if part is SegmentPart.LEADER_EPOCHS:
            return self._cut(name, found)
        if part in _ENTRY_BYTES and not self.listed.is_rolled:
            return _trimmed(found, _ENTRY_BYTES[part])
        return found

    def _name_of(self, part: SegmentPart) -> str | None:
        """Return the file of a part; an active segment has no state behind it yet."""
        if part is SegmentPart.LEADER_EPOCHS:
            return EPOCH_CHECKPOINT
        if part is SegmentPart.PRODUCER_SNAPSHOT:
            behind = self.listed.next_offset
            return None if behind is None else segment_file(behind, SNAPSHOT)
        suffixes = {
            SegmentPart.OFFSET_INDEX: OFFSET_INDEX,
            SegmentPart.TIME_INDEX: TIME_INDEX,
            SegmentPart.TXN_INDEX: TXN_INDEX,
            SegmentPart.LOG: LOG,
        }
        return self.listed.file(suffixes[part])

    def _cut(self, name: str, content: bytes) -> bytes:
        found = epochs_of_file(name, content)
        if isinstance(found, SegmentFinding):
            raise SegmentUnreadable(ReadFault.DAMAGED, name, found.detail)
        behind = self.listed.next_offset
        return format_epochs(found if behind is None else epochs_until(found, behind))


def _trimmed(content: bytes, entry_bytes: int) -> bytes:
    used = len(content.rstrip(b"\0"))
    return content[: -(-used // entry_bytes) * entry_bytes]
