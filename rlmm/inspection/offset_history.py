"""The history of one offset: its copies, refused events, and the partition's deletion. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from rlmm.inspection.history import HistoryPart
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Rejected, RejectReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.inspection.history import HistoryLine
    from rlmm.metadata.ids import SegmentId, Uuid

LINES_MAX = 40
"""Events that are kept of one segment: half of them the first, half of them the last."""
COPIES_MAX = 200
"""Segments that are kept; those that came first are forgotten first."""
REFUSED_MAX = 1_000
"""Refused updates of segments that are not there whose ids are kept."""


class BoundedEvents:
    """Keeps the first and the last events of one segment."""

    def __init__(self) -> None:
        self._first: list[HistoryLine] = []
        self._last: deque[HistoryLine] = deque(maxlen=LINES_MAX // 2)
        self.count = 0

    def add(self, line: HistoryLine) -> None:
        self.count += 1
        if len(self._first) < LINES_MAX // 2:
            self._first.append(line)
        else:
            self._last.append(line)

    def __iter__(self) -> Iterator[HistoryLine]:
        return chain(self._first, self._last)

    @property
    def left_out(self) -> int:
        return self.count - len(self._first) - len(self._last)


@dataclass(slots=True)
class SegmentCopy:
    started: SegmentMetadata
    """Its first record, as it was last repeated."""
    events: BoundedEvents = field(default_factory=BoundedEvents)
    is_there: bool = True

    @property
    def refused_finish(self) -> HistoryLine | None:
        """Return the finish that came before the first record of its copy and was refused."""
        for line in self.events:
            verdict = line.happened.verdict
            if (
                isinstance(verdict, Rejected)
                and verdict.reason is RejectReason.UNKNOWN_SEGMENT
                and verdict.requested is SegmentState.COPY_SEGMENT_FINISHED
            ):
                return line
        return None

    def last_to(self, state: SegmentState) -> HistoryLine | None:
        """Return the last event that brought the copy to *state*, or ended it with that state."""
        found = None
        for line in self.events:
            event = line.happened.event
            is_own = line.part is HistoryPart.OWN and isinstance(
                event, SegmentMetadata | SegmentUpdate
            )
            if is_own and not isinstance(line.happened.verdict, Rejected) and event is not None:
                found = line if event.state is state else found
        return found


class OffsetHistory:
    """The story of *offset*, as the lines of its partition's history go by."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self.copies: dict[Uuid, SegmentCopy] = {}
        """By id, in the order in which they were started."""
        self.deletes: deque[HistoryLine] = deque(maxlen=LINES_MAX)
        self.without_base = 0
        """Updates of segments that were not there when they came."""
        self.events = 0
        self._refused: dict[SegmentId, list[HistoryLine]] = {}

    def hear(self, line: HistoryLine) -> None:
        self.events += 1
        event = line.happened.event
        if isinstance(event, PartitionDelete):
            self._hear_delete(line, event)
        elif isinstance(event, SegmentMetadata):
            self._hear_start(line, event)
        elif isinstance(event, SegmentUpdate):
            self._hear_update(line, event)

    def _hear_delete(self, line: HistoryLine, event: PartitionDelete) -> None:
        self.deletes.append(line)
        if event.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            for copy in self.copies.values():
                if copy.is_there:
                    copy.is_there = False
                    copy.events.add(line)

    def _hear_start(self, line: HistoryLine, event: SegmentMetadata) -> None:
        uuid = event.id.uuid
        copy = self.copies.get(uuid)
        if copy is None:
            if not event.start_offset <= self._offset <= event.last_offset:
                self._refused.pop(event.id, None)
                return
            while len(self.copies) >= COPIES_MAX:
                del self.copies[next(iter(self.copies))]
            copy = self.copies[uuid] = SegmentCopy(event)
            for before in self._refused.pop(event.id, ()):
                copy.events.add(before)
        elif not isinstance(line.happened.verdict, Rejected):
            copy.started = event
        copy.events.add(line)
        copy.is_there = line.after is not None

    def _hear_update(self, line: HistoryLine, event: SegmentUpdate) -> None:
        verdict = line.happened.verdict
        is_of_nobody = (
            isinstance(verdict, Rejected) and verdict.reason is RejectReason.UNKNOWN_SEGMENT
        )
        self.without_base += is_of_nobody
        copy = self.copies.get(event.id.uuid)
        if copy is not None:
            copy.events.add(line)
            copy.is_there = line.after is not None
        elif is_of_nobody:
            kept = self._refused.setdefault(event.id, [])
            if len(kept) < LINES_MAX:
                kept.append(line)
            if len(self._refused) > REFUSED_MAX:
                del self._refused[next(iter(self._refused))]
        for uuid in line.displaced or {}:
            loser = self.copies.get(uuid)
            if loser is not None:
                loser.events.add(replace(line, part=HistoryPart.DISPLACED))
