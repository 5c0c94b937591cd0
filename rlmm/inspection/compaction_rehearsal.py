"""
The records that the log cleaner leaves at each feature level of KIP-1266, by simulation. The log is
read twice for each level; only the last offset of each key and the two states are held. Segments
that are not yet rolled and tombstones that are not yet gone are taken as in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.inspection.moment import ReplayEnd
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.replay import EventLog, PartitionReplay, Progress
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.shard import Shard

_NO_LEADER_EPOCH = -1
"""Version 0 of the records does not say it."""


class RecordKeys(StrEnum):
    AS_WRITTEN = "as-written"
    PER_OFFSET = "per-offset"
    """Apache Kafka pull request 22459: topic, partition, end offset, leader epoch."""
    PER_STATE = "per-state"
    """Apache Kafka pull request 22774: topic id, partition, segment id, state."""


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
        return happened.key  # a record that cannot be decoded keeps its key

    def _per_offset(self, event: SegmentMetadata | SegmentUpdate) -> bytes | None:
        """Return a key with the offset; an update has that of its segment's start."""
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
    """Decides which records below an offset are kept: `see` all of them in order, then `keeps`."""

    def __init__(self, bound: int) -> None:
        """*bound* is the first offset that the cleaner leaves alone."""
        self._bound = bound
        self._last: dict[bytes, int] = {}
        self.without_key = 0
        self.last_without_key_ms: int | None = None

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


FOR_EVER = -1


class CleaningEffect(StrEnum):
    """Tells the state of a segment after the cleaner has run."""

    LOST = "lost"
    """It is there, and would not be known any more."""
    CHANGED = "changed"
    """It would be known in another state, or with other fields."""
    RESURRECTED = "resurrected"
    """It is deleted, and would be there again."""


class CompactionOutlook(StrEnum):
    """Advises an operator about a level."""

    SAFE = "safe"
    WAIT = "wait"
    """Safe once the records that stand in the way are too old to matter; `wait_until_ms`."""
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """Names a feature level, and the keys that the records are taken to have."""

    number: int
    keys: RecordKeys
    policy: str
    """`cleanup.policy`, as that level sets it."""


LEVELS = (
    FeatureLevel(0, RecordKeys.AS_WRITTEN, "delete"),
    FeatureLevel(1, RecordKeys.AS_WRITTEN, "compact,delete"),
    FeatureLevel(2, RecordKeys.AS_WRITTEN, "compact"),
    FeatureLevel(2, RecordKeys.PER_OFFSET, "compact"),
    FeatureLevel(2, RecordKeys.PER_STATE, "compact"),
)
"""The three levels on the topic as it is, and the last with the keys of each proposal."""


@dataclass(frozen=True, slots=True)
class CompactionHarm:
    metadata_partition: int
    segment: SegmentMetadata
    """As it is now; where it is resurrected, as it would be."""
    effect: CleaningEffect


@dataclass(frozen=True, slots=True)
class CleaningRehearsal:
    """Tells what a level would leave of one metadata partition."""

    metadata_partition: int
    level: FeatureLevel
    records: int
    kept: int
    without_key: int
    """Records without a key that the cleaner would take."""
    harms: tuple[CompactionHarm, ...]
    outlook: CompactionOutlook
    wait_until_ms: int | None = None

    @property
    def lost(self) -> int:
        return sum(harm.effect is CleaningEffect.LOST for harm in self.harms)


@dataclass(frozen=True, slots=True)
class RehearsalTopic:
    """Holds the facts of the metadata topic and the clock that the rehearsal uses."""

    now_ms: int
    retention_ms: int = FOR_EVER
    bound: ReplayEnd = field(default_factory=ReplayEnd)


async def rehearse(
    log: EventLog,
    place: int,
    level: FeatureLevel,
    topic: RehearsalTopic,
    *,
    timeout_s: float,
    progress: Progress | None = None,
) -> CleaningRehearsal:
    from rlmm.inspection.replay import PartitionReplay  # noqa: PLC0415  # not for --help
    from rlmm.metadata.engines import shard_type  # noqa: PLC0415

    maker = KeyMaker(level.keys)
    first = PartitionReplay(log, place, topic.bound, timeout_s=timeout_s)
    cleaner, records = LogCleaner(_INT64_MAX if level.number else 0), 0
    reach_ms = _reach_ms(level, topic)
    async for happened in _all(first, progress):
        records += happened.next_offset - happened.offset
        if level.number and _is_reached(happened, reach_ms):
            cleaner.see(happened, maker.key_of(happened))
    left, kept = shard_type()(place), 0
    maker = KeyMaker(level.keys)
    second = PartitionReplay(log, place, ReplayEnd({place: first.end - 1}), timeout_s=timeout_s)
    async for happened in _all(second, progress):
        if _is_kept(happened, level, topic, cleaner, maker, reach_ms):
            kept += happened.next_offset - happened.offset
            if happened.event is not None:
                left.apply_event(happened.event, happened.offset)
    harms = tuple(_harms(first.shard, left))
    until_ms = _wait_until_ms(level, topic, cleaner)
    outlook = CompactionOutlook.SAFE if not harms else CompactionOutlook.UNSAFE
    if harms and until_ms is not None:
        outlook = CompactionOutlook.WAIT
    return CleaningRehearsal(
        place, level, records, kept, cleaner.without_key, harms, outlook,
        until_ms if outlook is CompactionOutlook.WAIT else None,
    )  # fmt: skip


def _reach_ms(level: FeatureLevel, topic: RehearsalTopic) -> int | None:
    """Return the cleaner's limit or None; level 1 spares records younger than the retention."""
    if level.number != 1:
        return None
    return _BEFORE_ALL_TIME if topic.retention_ms < 0 else topic.now_ms - topic.retention_ms


def _is_reached(happened: EventRecord, reach_ms: int | None) -> bool:
    return reach_ms is None or happened.timestamp_ms <= reach_ms


def _is_kept(
    happened: EventRecord,
    level: FeatureLevel,
    topic: RehearsalTopic,
    cleaner: LogCleaner,
    maker: KeyMaker,
    reach_ms: int | None,
) -> bool:
    deletes = "delete" in level.policy and topic.retention_ms >= 0
    if deletes and 0 <= happened.timestamp_ms < topic.now_ms - topic.retention_ms:
        return False
    if not level.number or not _is_reached(happened, reach_ms):
        return True
    return cleaner.keeps(happened, maker.key_of(happened))


def _wait_until_ms(level: FeatureLevel, topic: RehearsalTopic, cleaner: LogCleaner) -> int | None:
    """
    Return when the youngest record without a key is older than the retention: its segment is
    deleted by then, unless a user topic is kept longer than the metadata.
    """
    if level.number < 2 or level.keys is not RecordKeys.AS_WRITTEN or topic.retention_ms < 0:
        return None
    youngest_ms = cleaner.last_without_key_ms
    return None if youngest_ms is None else youngest_ms + topic.retention_ms


async def _all(replay: PartitionReplay, progress: Progress | None) -> AsyncIterator[EventRecord]:
    async for chunk in replay.chunks():
        for happened in chunk.happened():
            yield happened
        if progress is not None:
            progress(chunk.record_set.partition, chunk.next_offset, replay.end)


def _harms(whole: Shard, left: Shard) -> list[CompactionHarm]:
    place, harms = whole.partition, []
    for partition in {*whole.partitions(), *left.partitions()}:
        now = {one.id: one for one in whole.segments(partition)}
        then = {one.id: one for one in left.segments(partition)}
        for one in now.values():
            other = then.get(one.id)
            if other != one:
                effect = CleaningEffect.LOST if other is None else CleaningEffect.CHANGED
                harms.append(CompactionHarm(place, one, effect))
        harms += [
            CompactionHarm(place, one, CleaningEffect.RESURRECTED)
            for one in then.values()
            if one.id not in now
        ]
    return sorted(harms, key=_in_order)


def _in_order(harm: CompactionHarm) -> tuple[str, int, int]:
    partition = harm.segment.id.partition
    return partition.topic, partition.partition, harm.segment.start_offset


_INT64_MAX = 2**63 - 1
_BEFORE_ALL_TIME = -(2**63)
