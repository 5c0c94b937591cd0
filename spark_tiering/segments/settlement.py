"""
The settlement of each part once the log was read: the file as it is, or one made anew. Pure. Where
log and state do not suffice, the finding `UNKNOWN` names the unknown fact and the part is lacking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.partition_log.checkpoints import format_epochs
from rlmm.partition_log.names import EPOCH_CHECKPOINT, OFFSET_INDEX, TIME_INDEX, segment_file
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.leader_epochs import epochs_until, epochs_within
from spark_tiering.segments.producer_snapshots import judge_snapshot
from spark_tiering.segments.producer_state import format_snapshot
from spark_tiering.segments.segment_listing import SNAPSHOT, TXN_INDEX
from spark_tiering.segments.segment_parts import RebuiltPart, StoredPart
from spark_tiering.segments.transactions import TXN_INDEX_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.segments.companions import StoredFiles
    from spark_tiering.segments.leader_epochs import Epochs
    from spark_tiering.segments.log_pass import SegmentPass
    from spark_tiering.segments.segment_listing import ListedSegment


class PartSettlement:
    """Settles the parts of a sound log. *is_whole*: the producers at its start were known."""

    def __init__(
        self,
        stored: StoredFiles,
        segment: ListedSegment,
        next_offset: int,
        passed: SegmentPass,
        epochs_on_file: Epochs | SegmentFinding,
        *,
        is_whole: bool,
    ) -> None:
        self.parts: dict[SegmentPart, StoredPart | RebuiltPart] = {}
        self.findings: list[SegmentFinding] = []
        self._stored = stored
        self._segment = segment
        self._next_offset = next_offset
        self._passed = passed
        self._made = passed.made
        self._is_whole = is_whole
        self._settle_index(SegmentPart.OFFSET_INDEX, OFFSET_INDEX, self._made.index.offset_bytes)
        self._settle_index(SegmentPart.TIME_INDEX, TIME_INDEX, self._made.index.time_bytes)
        self._settle_transactions(segment.file(TXN_INDEX))
        self._settle_snapshot(segment_file(next_offset, SNAPSHOT))
        self.epochs = self._settle_epochs(epochs_on_file)

    @property
    def own_epochs(self) -> Epochs:
        """Return the epochs of the segment's own offsets; none where they are not known."""
        if self.epochs is None:
            return ()
        return epochs_within(self.epochs, self._segment.base_offset, self._next_offset) or ()

    def _wrong(self, part: SegmentPart) -> list[SegmentFinding]:
        return [found for found in self._passed.findings if found.part is part]

    def _found(self, part: SegmentPart, kind: SegmentFindingKind, detail: str) -> None:
        self.findings.append(SegmentFinding(part, kind, detail))

    def _settle_index(self, part: SegmentPart, suffix: str, content: Callable[[], bytes]) -> None:
        name = self._segment.file(suffix)
        facts, wrong = self._stored.facts.get(name), self._wrong(part)
        if facts is not None and not wrong:
            self.parts[part] = StoredPart(name, facts.size_bytes)
            return
        self.findings += wrong
        if facts is None:
            self._found(part, SegmentFindingKind.MISSING, f"{name}: no such file")
        if self._made.is_index_full:
            detail = f"{name}: one that is made anew has too many entries"
            self._found(part, SegmentFindingKind.TOO_LARGE, detail)
        else:
            self.parts[part] = RebuiltPart(content())

    def _settle_transactions(self, name: str) -> None:
        part, made = SegmentPart.TXN_INDEX, self._made
        facts, wrong = self._stored.facts.get(name), self._wrong(part)
        size = 0 if facts is None else facts.size_bytes
        aborts = len(made.aborted) + (0 if self._is_whole else made.aborts_unexplained)
        if not size and aborts and not wrong:
            detail = f"{name}: the log has abort markers, and there are no entries"
            wrong = [SegmentFinding(part, SegmentFindingKind.MISSING, detail)]
        self.findings += wrong
        unknown = made.producers.fault
        if unknown is None and wrong:
            unknown = self._why_no_transactions()
        if unknown is not None:
            self._found(part, SegmentFindingKind.UNKNOWN, f"{name}: {unknown}")
        elif wrong and made.aborted:
            self.parts[part] = RebuiltPart(bytes(made.aborted))
        elif size and not wrong:
            self.parts[part] = StoredPart(name, size)

    def _why_no_transactions(self) -> str | None:
        if not self._is_whole:
            return f"the transactions open at {self._segment.base_offset} are not known"
        if len(self._made.aborted) > TXN_INDEX_BYTES_MAX:
            return f"more than {TXN_INDEX_BYTES_MAX} bytes of aborted transactions"
        return None

    def _settle_snapshot(self, name: str) -> None:
        part, producers = SegmentPart.PRODUCER_SNAPSHOT, self._made.producers
        base_offset = self._segment.base_offset
        found = self._stored.snapshot(self._next_offset)
        if not isinstance(found, SegmentFinding) and producers.fault is None:
            expected, is_whole = producers.entries, self._is_whole
            judged = judge_snapshot(name, found, expected, base_offset, is_whole=is_whole)
            if judged is None:
                self.parts[part] = StoredPart(name, self._stored.facts[name].size_bytes)
                return
            found = judged
        if isinstance(found, SegmentFinding):
            self.findings.append(found)
        if producers.fault is not None or not self._is_whole:
            reason = producers.fault or f"the state at {base_offset} is not known"
            self._found(part, SegmentFindingKind.UNKNOWN, f"{name}: {reason}")
        else:
            self.parts[part] = RebuiltPart(format_snapshot(producers.entries))

    def _settle_epochs(self, on_file: Epochs | SegmentFinding) -> Epochs | None:
        part, name = SegmentPart.LEADER_EPOCHS, EPOCH_CHECKPOINT
        wrong = [on_file] if isinstance(on_file, SegmentFinding) else self._wrong(part)
        self.findings += wrong
        history = self._made.epochs if wrong or isinstance(on_file, SegmentFinding) else on_file
        base_offset = self._segment.base_offset
        if history is None or epochs_within(history, base_offset, self._next_offset) is None:
            detail = f"{name}: the epoch at {base_offset} is not known"
            self._found(part, SegmentFindingKind.UNKNOWN, detail)
            return None
        cut = epochs_until(history, self._next_offset)
        self.parts[part] = RebuiltPart(format_epochs(cut))
        return cut
