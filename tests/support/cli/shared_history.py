"""One history with every outcome of an event, at the same times and offsets wherever it lies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.partition_log.registry import LogRegistry
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlmm.metadata.events import Event

PLACES = 3
START_MS = 1_700_000_000_000
STEP_MS = 1_000
NOW_MS = START_MS + 48 * 3_600_000


class Written(NamedTuple):
    place: int
    timestamp_ms: int
    value: bytes | None


@dataclass
class WrittenEvents:
    """Records of a metadata topic, each a second after the one before it."""

    partition_count: int = PLACES
    records: list[Written] = field(default_factory=list)

    @property
    def now_ms(self) -> int:
        return START_MS + STEP_MS * len(self.records)

    def put(self, *events: Event) -> None:
        for event in events:
            assert not isinstance(event, SegmentSnapshot), "it does not say where"
            about = event.partition if isinstance(event, PartitionDelete) else event.id.partition
            self.put_bytes(encode_any(event), place_of(about, self.partition_count))

    def put_bytes(self, value: bytes | None, place: int) -> None:
        self.records.append(Written(place, self.now_ms, value))


@dataclass(frozen=True, slots=True)
class TopicIds:
    orders: Uuid
    payments: Uuid
    old_orders: Uuid
    gone: Uuid

    @classmethod
    def made_up(cls) -> Self:
        return cls(*(Uuid.of(0x5EED, number) for number in range(1, 5)))

    def of_orders(self, number: int) -> TopicIdPartition:
        return TopicIdPartition(self.orders, "orders", number)

    @property
    def of_payments(self) -> TopicIdPartition:
        return TopicIdPartition(self.payments, "payments", 0)


class SharedHistory(WrittenEvents):
    def __init__(self, ids: TopicIds | None = None) -> None:
        super().__init__()
        self.ids = ids or TopicIds.made_up()
        self._fill()

    @property
    def half_way_ms(self) -> int:
        return START_MS + STEP_MS * (len(self.records) // 2)

    def values_of(self, place: int) -> list[Written]:
        return [one for one in self.records if one.place == place]

    def _copy(
        self, label: str, partition: TopicIdPartition, start: int, last: int,
        epochs: dict[int, int] | None = None, *, broker_id: int = 1, custom: bytes | None = None,
    ) -> None:  # fmt: skip
        one = segment_id(label, partition)
        self.put(
            started(
                one, start, last, epochs, broker_id=broker_id, event_timestamp_ms=self.now_ms,
                max_timestamp_ms=self.now_ms - 60_000, size_bytes=1_000 + last - start,
            )
        )  # fmt: skip
        self.put(
            finished(
                one, broker_id=broker_id, event_timestamp_ms=self.now_ms, custom_metadata=custom
            )
        )

    def _begin(
        self, label: str, partition: TopicIdPartition, start: int, last: int, epoch: int = 0
    ) -> None:
        one, at = segment_id(label, partition), self.now_ms
        self.put(
            started(one, start, last, {epoch: start}, event_timestamp_ms=at, max_timestamp_ms=at)
        )

    def _fill(self) -> None:
        self._of_orders()
        self._refused()
        self._of_payments()
        self._deleted()
        self._poison()

    def _of_orders(self) -> None:
        first, second, third, fourth = (self.ids.of_orders(number) for number in range(4))
        self._copy("o0-a", first, 0, 99, {0: 0}, custom=b"\x01\xfe")
        self._copy("o0-b", first, 100, 199, {0: 100, 1: 150})
        self._copy("o0-c", first, 200, 299, {1: 200, 2: 250}, broker_id=2)
        again = segment_id("o0-c", first)
        self.put(finished(again, broker_id=2, event_timestamp_ms=self.now_ms - STEP_MS))
        self._copy("o1-a", second, 0, 99)
        self._copy("o1-b", second, 150, 249)  # nothing has 100 to 149
        self._begin("o1-open", second, 250, 349)
        # The old leader was slow: what it finishes late displaces the new leader's copy.
        late = segment_id("o2-late", third)
        self._begin("o2-late", third, 0, 49)
        self._copy("o2-new", third, 0, 99, broker_id=2)
        self.put(finished(late, event_timestamp_ms=self.now_ms))
        self._copy("o3-a", fourth, 0, 99)
        self.put(delete_started(segment_id("o3-a", fourth), event_timestamp_ms=self.now_ms))
        self.put(delete_finished(segment_id("o3-a", fourth), event_timestamp_ms=self.now_ms))
        self._copy("o3-b", fourth, 100, 199)
        self.put(delete_started(segment_id("o3-b", fourth), event_timestamp_ms=self.now_ms))

    def _refused(self) -> None:
        first, fourth = self.ids.of_orders(0), self.ids.of_orders(3)
        early = segment_id("o0-early", first)
        for one in (segment_id("nobody", first), early):
            self.put(finished(one, event_timestamp_ms=self.now_ms))
        self._begin("o0-early", first, 300, 399)
        self.put(delete_finished(early, event_timestamp_ms=self.now_ms))
        self.put(update(early, SegmentState.COPY_SEGMENT_STARTED))
        finished_at_once = SegmentState.COPY_SEGMENT_FINISHED
        self.put(started(segment_id("o3-c", fourth), 200, 299, state=finished_at_once))
        snapshot = SegmentSnapshot(
            segment_id("o0-a", first).uuid, 0, 99, 1, -1, self.now_ms, ((0, 0),), 1024, None,
            SegmentState.COPY_SEGMENT_FINISHED,
        )  # fmt: skip
        self.put_bytes(encode_any(snapshot), place_of(first, PLACES))

    def _of_payments(self) -> None:
        partition = self.ids.of_payments
        self._copy("p-a", partition, 0, 999, {3: 0}, custom=b"")
        self._begin("p-other", partition, 1_000, 1_999, epoch=3)
        # Finished by another broker than the one that began.
        one = segment_id("p-other", partition)
        self.put(finished(one, broker_id=7, event_timestamp_ms=self.now_ms))

    def _deleted(self) -> None:
        old = TopicIdPartition(self.ids.old_orders, "orders", 0)
        self._copy("old-a", old, 0, 99)
        self._copy("old-b", old, 100, 199)
        self._mark(old, PartitionDeleteState.DELETE_PARTITION_MARKED)
        self._begin("old-c", old, 200, 299)
        self._mark(old, PartitionDeleteState.DELETE_PARTITION_STARTED)
        for label in ("old-a", "old-b"):
            self.put(delete_started(segment_id(label, old), event_timestamp_ms=self.now_ms))
        self.put(delete_finished(segment_id("old-a", old), event_timestamp_ms=self.now_ms))
        gone = TopicIdPartition(self.ids.gone, "gone", 5)
        self._copy("gone-a", gone, 0, 9)
        for state in PartitionDeleteState:
            self._mark(gone, state)
        self.put(delete_started(segment_id("gone-a", gone), event_timestamp_ms=self.now_ms))
        self.put(delete_finished(segment_id("gone-a", gone), event_timestamp_ms=self.now_ms))
        self._mark(gone, PartitionDeleteState.DELETE_PARTITION_STARTED)
        other = TopicIdPartition(self.ids.gone, "gone", 6)
        self._mark(other, PartitionDeleteState.DELETE_PARTITION_STARTED)

    def _mark(self, partition: TopicIdPartition, state: PartitionDeleteState) -> None:
        self.put(partition_delete(state, partition, event_timestamp_ms=self.now_ms))

    def _poison(self) -> None:
        beside = self.ids.of_payments
        for value in (None, b"", b"\x01\xff", encode_any(started("cut"))[:30], b"junk"):
            self.put_bytes(value, place_of(beside, PLACES))
        self._copy("p-last", beside, 2_000, 2_999, {3: 2_000, 4: 2_500})


async def write_folder(folder: Path, history: SharedHistory) -> None:
    await write_records(folder, history.records)


async def write_records(
    folder: Path,
    records: Sequence[Written],
    partition_count: int = PLACES,
    log_starts: Mapping[int, int] | None = None,
) -> None:
    log = await FilesLog.open(folder, partition_count=partition_count)
    await log.close()
    registry = await LogRegistry.open(folder)
    try:
        ends = dict.fromkeys(range(partition_count), 0)
        for one in records:
            held = await registry.partition(TOPIC, one.place)
            offset = ends[one.place]
            record = Record(offset, one.timestamp_ms, None, one.value)
            await held.append(build_batch([record], offset), leader_epoch=0)
            ends[one.place] += 1
        for place, log_start in (log_starts or {}).items():
            await (await registry.partition(TOPIC, place)).advance_log_start(log_start)
    finally:
        await registry.close()
