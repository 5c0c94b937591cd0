"""The plans of writers for the tier: copies, deletions, lost leaderships, repeated events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState

if TYPE_CHECKING:
    from random import Random

COPY_STARTED, COPY_FINISHED, DELETE_STARTED, DELETE_FINISHED = SegmentState
Written = SegmentMetadata | SegmentUpdate | PartitionDelete
_DELETES = tuple(PartitionDeleteState)
_RETRIES_MAX = 8


@dataclass(slots=True)
class Tier:
    partition: TopicIdPartition
    epoch: int = 0
    epoch_start: int = 0
    broker: int = 1
    next_start: int = 0
    segments: dict[Uuid, SegmentMetadata] = field(default_factory=dict)
    """Those in work, with the state that was reached last."""
    deletes: int = 0
    """How many steps the deletion of the whole partition has done."""
    retries: list[Written] = field(default_factory=list)

    def propose(self, random: Random, now_ms: int) -> Written:
        if self.retries and random.random() < 0.4:
            return self.retries.pop(random.randrange(len(self.retries)))
        if self.deletes or random.random() < 0.02:
            if self.deletes and random.random() < 0.5 and self.segments:
                return self._progress(random, now_ms)
            return self._delete(random, now_ms)
        if random.random() < 0.08:
            self._change_leader(random)
        if self.segments and random.random() < 0.62:
            return self._progress(random, now_ms)
        return self._start(random, now_ms)

    def propose_nonsense(self, random: Random, now_ms: int) -> Written:
        segment = random.choice(list(self.segments.values())) if self.segments else None
        kind = random.randrange(4)
        if segment is None or kind == 0:
            lost = SegmentId(self.partition, Uuid(random.randbytes(16)))
            return SegmentUpdate(lost, self.broker, now_ms, None, COPY_FINISHED)
        if kind == 1:
            return replace(segment, state=COPY_STARTED, size_bytes=segment.size_bytes + 1)
        if kind == 2:
            state = random.choice((COPY_FINISHED, DELETE_FINISHED))
            return SegmentUpdate(segment.id, 9, now_ms, None, state)
        return PartitionDelete(self.partition, self.broker, now_ms, random.choice(_DELETES))

    def applied(self, event: Written) -> None:
        match event:
            case SegmentMetadata():
                self.segments[event.id.uuid] = event
            case SegmentUpdate(state=SegmentState.DELETE_SEGMENT_FINISHED):
                self.segments.pop(event.id.uuid, None)
            case SegmentUpdate():
                found = self.segments.get(event.id.uuid)
                if found is not None:
                    self.segments[event.id.uuid] = replace(found, state=event.state)
            case PartitionDelete():
                self.deletes = event.state + 1

    def refused(self, event: Written) -> None:
        if not isinstance(event, PartitionDelete):
            self.segments.pop(event.id.uuid, None)

    def unknown(self, event: Written) -> None:
        """Note that the outcome of *event* is unknown: a writer repeats it unchanged."""
        if len(self.retries) < _RETRIES_MAX:
            self.retries.append(event)

    @property
    def is_deleted(self) -> bool:
        return self.deletes > len(_DELETES) - 1

    def _start(self, random: Random, now_ms: int) -> SegmentMetadata:
        start = self.next_start
        last = start + random.randrange(4, 30)
        self.next_start = last + 1
        epochs: tuple[tuple[int, int], ...] = ((self.epoch, start),)
        if start < self.epoch_start <= last:
            epochs = ((self.epoch - 1, start), (self.epoch, self.epoch_start))
        return SegmentMetadata(
            SegmentId(self.partition, Uuid(random.randbytes(16))),
            start,
            last,
            self.broker,
            now_ms,
            now_ms,
            epochs,
            random.randrange(100),
            random.choice((None, None, b"k")),
            COPY_STARTED,
            random.random() < 0.5,
        )

    def _progress(self, random: Random, now_ms: int) -> SegmentUpdate:
        segment = random.choice(list(self.segments.values()))
        following = {
            COPY_STARTED: (COPY_FINISHED, COPY_FINISHED, COPY_FINISHED, DELETE_STARTED),
            COPY_FINISHED: (DELETE_STARTED, DELETE_STARTED, COPY_FINISHED),
            DELETE_STARTED: (DELETE_FINISHED,),
        }
        state = random.choice(following[segment.state])
        custom = segment.custom_metadata
        if state > COPY_FINISHED and random.random() < 0.2:
            custom = None  # forgotten: whoever publishes it has to repeat it
        return SegmentUpdate(segment.id, segment.broker_id, now_ms, custom, state)

    def _delete(self, random: Random, now_ms: int) -> PartitionDelete:
        state = _DELETES[min(self.deletes, len(_DELETES) - 1)]
        return PartitionDelete(self.partition, random.randrange(1, 4), now_ms, state)

    def _change_leader(self, random: Random) -> None:
        """Let another broker lead, in a new epoch; it copies segments that are not copied."""
        self.epoch += 1
        self.broker = self.broker % 3 + 1
        self.epoch_start = self.next_start
        self.next_start = max(0, self.next_start - random.randrange(40))


def new_tiers(random: Random, count: int) -> list[Tier]:
    ids = [Uuid(random.randbytes(16)) for _ in range(2)]
    return [
        Tier(TopicIdPartition(ids[number % 2], ("orders", "clicks")[number % 2], number // 2))
        for number in range(count)
    ]
