"""
What Kafka's log cleaner keeps of a metadata partition, and by which keys. Pure.

The cleaner goes by keys alone: of the records below its bound it keeps the last one of each key,
and none without a key. What lies above the bound stays, and shadows nothing below it. Tombstones
are kept for a while and then go; here they are gone, as they will be.

Brokers write no keys so far. Two proposals say which ones to write; both can be played through on
records that have none.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata

if TYPE_CHECKING:
    from rlmm.inspection.event_record import EventRecord
    from rlmm.metadata.ids import SegmentId

_NO_LEADER_EPOCH = -1
"""Version 0 of the records does not say it."""


class RecordKeys(StrEnum):
    """Which keys the records are taken to have."""

    AS_WRITTEN = "as-written"
    """Those that they have: none, of every broker that there is."""
    PER_OFFSET = "per-offset"
    """As in apache/kafka pull request 22459: topic, partition, end offset, leader epoch; updates
    have a key of their own."""
    PER_STATE = "per-state"
    """As in apache/kafka pull request 22774: topic id, partition, segment id, state."""


class KeyMaker:
    """The key of each record, in the order of the log; remembers where segments end."""

    def __init__(self, keys: RecordKeys) -> None:
        self._keys = keys
        self._ends: dict[SegmentId, int] = {}

    def key_of(self, happened: EventRecord) -> bytes | None:
        """Return the key of that record; None where it has none."""
        if self._keys is RecordKeys.AS_WRITTEN:
            return happened.key
        event = happened.event
        if isinstance(event, SegmentMetadata | SegmentUpdate):
            if self._keys is RecordKeys.PER_STATE:
                return _per_state(event)
            return self._per_offset(event)
        if isinstance(event, PartitionDelete):
            return f"{event.partition.topic_id}:{event.partition}:{event.state.name}".encode()
        return happened.key  # what nobody understands keeps what it has

    def _per_offset(self, event: SegmentMetadata | SegmentUpdate) -> bytes | None:
        """
        Return a key with the offset; an update has the offset of the segment that was started
        before it.
        """
        is_update = isinstance(event, SegmentUpdate)
        if isinstance(event, SegmentMetadata):
            self._ends[event.id] = event.last_offset
        end = self._ends.get(event.id)
        if end is None:
            return None
        partition = event.id.partition
        text = (
            f"{partition.topic_id}:{partition.topic}:{partition.partition}:{end}:{_NO_LEADER_EPOCH}"
        )
        return f"{text}{':UPDATE' if is_update else ''}".encode()


def _per_state(event: SegmentMetadata | SegmentUpdate) -> bytes:
    partition = event.id.partition
    return b"".join(
        (
            b"\x00",
            bytes(partition.topic_id),
            partition.partition.to_bytes(4),
            bytes(event.id.uuid),
            event.state.value.to_bytes(1),
        )
    )


class LogCleaner:
    """What is kept below an offset. First everything is `seen`, in order, then `keeps` is asked."""

    def __init__(self, bound: int) -> None:
        """*bound* is the first offset that the cleaner leaves alone."""
        self._bound = bound
        self._last: dict[bytes, int] = {}
        self.without_key = 0
        """Records below the bound that have no key."""
        self.last_without_key_ms: int | None = None
        """The time of the youngest of these."""

    def see(self, happened: EventRecord, key: bytes | None) -> None:
        if happened.offset >= self._bound:
            return
        if key is not None:
            self._last[key] = happened.offset
            return
        self.without_key += 1
        self.last_without_key_ms = max(self.last_without_key_ms or -1, happened.timestamp_ms)

    def keeps(self, happened: EventRecord, key: bytes | None) -> bool:
        if happened.offset >= self._bound:
            return True
        if key is None or self._last.get(key) != happened.offset:
            return False
        return happened.value is not None
