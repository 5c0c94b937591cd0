"""The copies of segments that a metadata topic names. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.ids import Uuid
    from tests.kafka.tiered import MetadataEvent


class Range(NamedTuple):
    partition: int
    first: int
    last: int


class Begun(NamedTuple):
    range: Range
    at_ms: int


class Copies:
    def __init__(self, events: Iterable[MetadataEvent]) -> None:
        self.begun: dict[Uuid, Begun] = {}
        self.finished: set[Uuid] = set()
        for found in events:
            event = found.event
            if isinstance(event, SegmentMetadata):
                where = event.id.partition.partition
                what = Range(where, event.start_offset, event.last_offset)
                self.begun[event.id.uuid] = Begun(what, event.event_timestamp_ms)
            elif event.state is SegmentState.COPY_SEGMENT_FINISHED:
                assert isinstance(event, SegmentUpdate)
                self.finished.add(event.id.uuid)

    @property
    def open(self) -> set[Uuid]:
        return self.begun.keys() - self.finished

    def repeated(self, besides: Iterable[Uuid] = ()) -> dict[Range, list[Uuid]]:
        """Return ranges that were begun more than once, without the copies *besides*."""
        by_range: dict[Range, list[Uuid]] = defaultdict(list)
        for name in self.begun.keys() - set(besides):
            by_range[self.begun[name].range].append(name)
        return {one: names for one, names in by_range.items() if len(names) > 1}

    def end(self, partition: int) -> int:
        """Return the offset behind all that is copied without a gap from offset 0 on."""
        done = sorted(one.range for name, one in self.begun.items() if name in self.finished)
        behind = 0
        for one in done:
            if one.partition == partition and one.first <= behind:
                behind = max(behind, one.last + 1)
        return behind
