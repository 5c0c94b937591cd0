"""A partition with every kind of record and damage, beside a list of its offsets."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import hypothesis.strategies as st

from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from rlmm.records.compression import Compression
from rlmm.records.control import ControlType
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, build_control_batch
from tests.support.builders import tp
from tests.support.engine.chosen import ChosenShard
from tests.support.records.histories import HISTORIES, odd_form
from tests.support.records.record_sets import broken

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from rlmm.metadata.events import Event
    from rlmm.metadata.verdicts import Verdict

START_MS = 1_700_000_000_000
_PRODUCER = Producer(id=7, epoch=0, is_transactional=True)
_CODECS = (Compression.NONE,) * 4 + (Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
_POISON = (None, b"", b"\x01\xff", b"\x01\x00\x01\x00", b"junk")


class Kind(Enum):
    RECORD = "record"
    CONTROL = "control"
    HOLE = "hole"
    LOST = "lost"


class Line(NamedTuple):
    offset: int
    kind: Kind
    value: bytes | None = None
    timestamp_ms: int = -1


class NaiveEntry(NamedTuple):
    offset: int
    next_offset: int
    timestamp_ms: int
    event: Event | None
    verdict: Verdict


LOST = Undecodable(UndecodableReason.DAMAGED_BATCH)


@dataclass(slots=True)
class MixedLog:
    topic: MemoryTopic = field(default_factory=lambda: MemoryTopic(1))
    lines: list[Line] = field(default_factory=list)

    @property
    def log(self) -> MemoryLog:
        return MemoryLog(self.topic)

    def end_at(self, end: int | None = None, limit_ms: int | None = None) -> int:
        """Return the first offset that does not count: *end*, or a record after *limit_ms*."""
        stop = len(self.lines) if end is None else min(end, len(self.lines))
        for line in self.lines[:stop]:
            is_later = limit_ms is not None and line.timestamp_ms > limit_ms
            if is_later and line.kind is Kind.RECORD:
                return line.offset
        return stop

    def naive(self, end: int) -> tuple[ChosenShard, list[NaiveEntry]]:
        """Return the state before offset *end*, and the outcome of each record."""
        shard, entries = ChosenShard(0), list[NaiveEntry]()
        for line in self.lines[:end]:
            if line.kind is Kind.LOST:
                first = entries[-1] if entries and entries[-1].next_offset == line.offset else None
                if first is not None and first.verdict is LOST:
                    entries[-1] = first._replace(next_offset=line.offset + 1)
                else:
                    entries.append(NaiveEntry(line.offset, line.offset + 1, -1, None, LOST))
            elif line.kind is Kind.RECORD:
                found = decode(line.value)
                verdict = shard.apply_event(found, line.offset)
                event = None if isinstance(found, Undecodable) else found
                entries.append(
                    NaiveEntry(line.offset, line.offset + 1, line.timestamp_ms, event, verdict)
                )
        shard.position = end
        return shard, entries


def written(events: Sequence[Event], rng: random.Random, *, is_damaged: bool = True) -> MixedLog:
    found, left, at_ms = MixedLog(), list(events), START_MS
    is_moved = rng.random() < 0.2
    while left:
        size = rng.choice((1, 1, 1, 2, 3, 8))
        values = [odd_form(one) if rng.random() < 0.05 else encode_any(one) for one in left[:size]]
        del left[:size]
        with_poison: list[bytes | None] = list(values)
        if rng.random() < 0.15:
            with_poison.insert(rng.randint(0, len(values)), rng.choice(_POISON))
        if is_damaged and rng.random() < 0.1:
            _add_lost(found, rng, at_ms, is_moved=is_moved)
        if rng.random() < 0.1:
            _add_control(found, at_ms)
        if rng.random() < 0.1:
            _add_hole(found, rng.randint(1, 3), at_ms)
        is_cut = is_damaged and rng.random() < 0.05
        at_ms = _add_records(found, with_poison, rng, at_ms, is_cut=is_cut)
    return found


def _add_records(
    to: MixedLog, values: list[bytes | None], rng: random.Random, at_ms: int, *, is_cut: bool
) -> int:
    """Add one batch; with *is_cut* its last record is unreadable. Returns the time behind it."""
    held = to.topic.partitions[0]
    base, offset, records = held.next_offset, held.next_offset, list[Record]()
    for value in values:
        if rng.random() < 0.1:
            offset += rng.randint(1, 2)  # what compaction took
        at_ms += rng.choice((0, 1, 1_000, 60_000, -500))
        records.append(Record(offset, at_ms, None, value))
        offset += 1
    last = offset - 1 + (rng.randint(1, 2) if rng.random() < 0.1 else 0)
    codec = Compression.NONE if is_cut else rng.choice(_CODECS)
    data = build_batch(records, base, last_offset=last, compression=codec)
    by_offset = {record.offset: record for record in records}
    first_lost = last + 1
    if is_cut:
        data, first_lost = _cut(data), records[-2].offset + 1 if len(records) > 1 else base
    held.store(data, last - base + 1)
    for at in range(base, last + 1):
        record = by_offset.get(at)
        if at >= first_lost:
            to.lines.append(Line(at, Kind.LOST))
        elif record is None:
            to.lines.append(Line(at, Kind.HOLE))
        else:
            to.lines.append(Line(at, Kind.RECORD, record.value, record.timestamp_ms))
    return at_ms


def _cut(batch: bytes) -> bytes:
    from tests.support.records.batches import forge  # noqa: PLC0415  # spelled out by hand, for this alone

    (base, _, _, _, _, attributes, delta, first_ms, last_ms, _, _, _, count) = struct.unpack_from(
        ">qiibIhiqqqhii", batch
    )
    return forge(
        batch[61:-1], count, base_offset=base, attributes=attributes, last_offset_delta=delta,
        base_timestamp_ms=first_ms, max_timestamp_ms=last_ms,
    )  # fmt: skip


def _add_lost(to: MixedLog, rng: random.Random, at_ms: int, *, is_moved: bool) -> None:
    """Add a batch that cannot be trusted: a flipped bit, or offsets far away."""
    held = to.topic.partitions[0]
    count, base = rng.randint(1, 4), held.next_offset
    records = [Record(base + n, at_ms, None, b"\x01\x00") for n in range(count)]
    data = build_batch(records, base)
    data = struct.pack(">q", base + (1 << 40)) + data[8:] if is_moved else broken(data)
    held.store(data, count)
    to.lines += [Line(base + n, Kind.LOST) for n in range(count)]


def _add_control(to: MixedLog, at_ms: int) -> None:
    held = to.topic.partitions[0]
    data = build_control_batch(
        ControlType.ABORT, held.next_offset, producer=_PRODUCER, timestamp_ms=at_ms + 10**9
    )
    to.lines.append(Line(held.store(data), Kind.CONTROL))


def _add_hole(to: MixedLog, count: int, at_ms: int) -> None:
    """Add a hole in the offsets, with or without an empty batch."""
    held = to.topic.partitions[0]
    base = held.next_offset
    last = base + count - 1
    held.store(build_batch([], base, last_offset=last, max_timestamp_ms=at_ms), count)
    to.lines += [Line(base + n, Kind.HOLE) for n in range(count)]


LOGS: st.SearchStrategy[MixedLog] = st.builds(written, HISTORIES, st.randoms())
SOUND_LOGS: st.SearchStrategy[MixedLog] = st.builds(
    lambda events, rng: written(events, rng, is_damaged=False), HISTORIES, st.randoms()
)
PARTITION = tp()
