"""The kinds of cases that the fuzzer runs, and the rules that every answer must keep."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlmm.errors import ImageCorrupt
from rlmm.metadata import python_shard
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode_any, encode_custom, encode_writer
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot
from rlmm.metadata.fast_decoding import cut
from rlmm.metadata.ids import INT64_MAX, Uuid
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.report import Tally
from rlmm.metadata.row import row_of
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Undecodable
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression, deflate
from rlmm.records.control import ControlType
from rlmm.records.damage import DamagedRecords, PartialTail
from rlmm.records.header import HEADER_BYTES
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, build_control_batch, records_of
from tests.support.builders import partition_delete, segment_id, started, tp, update
from tests.support.records import golden
from tests.support.records.batches import forge
from tests.support.records.mutations import mutated, with_sound_crc

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator
    from random import Random

    from rlmm.metadata.events import Event
    from rlmm.metadata.report import Report

_INFLATED_BYTES_MAX = 1 << 20
_UNKNOWN_CODEC = 6


METADATA_PARTITION = 3
_TURNS_MAX = 40
_SET_ASIDE_MAX = 4


class Twins:
    def __init__(self, rng: Random, counts: Counter[str], *, is_sound: bool) -> None:
        self._rng = rng
        self._is_sound = is_sound
        self._counts = counts
        begin = rng.choice((0, 0, 0, 100))
        self._begin = begin
        self._shard = PythonShard(METADATA_PARTITION, begin)
        self._twin = PythonShard(METADATA_PARTITION, begin) if rng.random() < 0.3 else None

    @property
    def position(self) -> int:
        return self._shard.position

    def apply(self, data: bytes) -> None:
        max_events = self._rng.choice((None, None, 1, 3))
        distance = self._rng.randint(1, 9)
        reports = _apply(self._shard, data, max_events, distance)
        for report in reports:
            self._counts["reports"] += 1
            self._counts["events applied"] += report.tally.applied
        if self._twin is not None:
            # Where nothing is damaged the turns end by themselves, so the twin may take others.
            others = self._rng.choice((None, 1, 2)) if self._is_sound else max_events
            with _without_cut():
                told = _apply(self._twin, data, others, distance)
            assert _merged(told) == _merged(reports), "the cut or the turns change what is told"
            self._counts["reports equal without the cut"] += len(reports)

    def check_state(self) -> None:
        shard = self._shard
        assert shard.validate() == []
        assert shard.statistics().tally.offsets == shard.position - self._begin
        image = shard.image()
        assert PythonShard.from_image(image).image() == image
        if self._twin is not None:
            assert self._twin.image() == image
            self._counts["images equal without the cut"] += 1


def _apply(shard: PythonShard, data: bytes, max_events: int | None, distance: int) -> list[Report]:
    record_set = RecordSet(METADATA_PARTITION, data)
    reports: list[Report] = []
    set_aside = 0
    for _ in range(_TURNS_MAX):
        before = shard.position
        report = shard.apply(record_set, max_events)
        _check_report(shard, report, before)
        reports.append(report)
        if report.complete:
            break
        damage = report.damage
        if damage is None:
            assert shard.position > before, "a turn without an end and without progress"
            continue
        set_aside += 1
        if shard.position == INT64_MAX or set_aside > _SET_ASIDE_MAX:
            break
        before = shard.position
        next_offset = min(shard.position + distance, INT64_MAX)
        report = shard.set_aside(damage, data, next_offset)
        _check_report(shard, report, before)
        reports.append(report)
    return reports


def _merged(reports: list[Report]) -> tuple[object, ...]:
    tally = Tally()
    for report in reports:
        tally.add(report.tally)
    return (
        tally,
        sum(report.redelivered for report in reports),
        [entry for report in reports for entry in report.entries],
        [partition for report in reports for partition in report.deleted],
        reports[-1].next_offset,
    )


def _check_report(shard: PythonShard, report: Report, before: int) -> None:
    assert report.from_offset == before
    assert report.next_offset == shard.position >= before, "the position goes back"
    assert report.tally.offsets == shard.position - before, "offsets are not counted once"
    for entry in report.entries:
        assert before <= entry.offset < entry.next_offset <= shard.position


@contextmanager
def _without_cut() -> Iterator[None]:
    names = vars(python_shard)
    kept = names["cut"]
    names["cut"] = lambda _value: None
    try:
        yield
    finally:
        names["cut"] = kept


class Case:
    def __init__(self, counts: Counter[str]) -> None:
        self.number = 0
        self.data = b""
        self.counts = counts

    def begin(self, data: bytes) -> bytes:
        self.number += 1
        self.data = data
        return data


def _sound_events() -> tuple[Event, ...]:
    events: list[Event] = [each.event for each in golden.ALL]
    for user in (tp(), tp(partition=8), tp("other", topic_id=Uuid.of(0, 1))):
        for number in range(4):
            segment = segment_id(number, user)
            start = number * 10
            events += (
                started(segment, start, start + 9),
                started(segment, start, start + 19, txn_index_empty=True),
                started(segment, start, start + 9, {0: start, 1: start + 4, 5: start + 5}),
            )
            events += (update(segment, state) for state in SegmentState)
            events.append(
                update(segment, SegmentState.COPY_SEGMENT_FINISHED, custom_metadata=b"there")
            )
        events += (partition_delete(state, user) for state in PartitionDeleteState)
    return tuple(events)


EVENTS = _sound_events()
_NO_EPOCHS = golden.SEGMENT_MINIMAL.value.replace(bytes.fromhex("02" + 13 * "00"), b"\x01")
VALUES = (*(encode_any(event) for event in EVENTS), _NO_EPOCHS)


def _damaged_value(rng: Random) -> bytes:
    value = rng.choice(VALUES)
    if rng.random() < 0.5:
        # A single byte: most fields have any value, so this reaches what lies behind the layout.
        changed = bytearray(value)
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed)
    return mutated(rng, value, VALUES)


# ------------------------------------------------------------------------------------ values


def values(rng: Random, case: Case, count: int) -> None:
    for _ in range(count):
        value = case.begin(_damaged_value(rng))
        event = decode(value)
        if isinstance(event, Undecodable):
            case.counts[f"undecodable: {event.reason}"] += 1
            _check_cut(value, None)
            continue
        case.counts[f"decoded: {type(event).__name__}"] += 1
        assert decode(encode_any(event)) == event
        if isinstance(event, PartitionDelete | SegmentSnapshot):
            _check_cut(value, None)
            continue
        key = event.id.partition.key
        if isinstance(event, SegmentMetadata):
            _check_cut(value, (key, event.id.uuid, row_of(event)))
        else:
            writer = encode_writer(event.broker_id, event.event_timestamp_ms)
            custom = encode_custom(event.custom_metadata)
            _check_cut(value, (key, event.id.uuid, event.state, writer, custom))


def _check_cut(value: bytes, decoded: tuple[object, ...] | None) -> None:
    parts = cut(value)
    if parts is None:
        return
    assert decoded is not None, "cut accepts what decode refuses"
    if parts[0] != decoded[0]:
        # The parts keep a name that is no UTF-8 as it is; no state has such a key.
        assert _is_no_name(parts[0])
        decoded = (parts[0], *decoded[1:])
    assert parts == decoded, "cut and decode disagree"


def _is_no_name(key: bytes) -> bool:
    try:
        key[1:-20].decode()
    except UnicodeDecodeError:
        return True
    return False


# ------------------------------------------------------------------------------- record sets


def events(rng: Random, case: Case, count: int) -> None:
    shards = Twins(rng, case.counts, is_sound=True)
    for _ in range(count):
        damaged = [value_or_tombstone(rng) for _ in range(rng.randint(1, 4))]
        base_offset = shards.position + rng.choice((0, 0, 0, 3))
        records = [
            Record(base_offset + 2 * number, -1, None, value)
            for number, value in enumerate(damaged)
        ]
        shards.apply(case.begin(build_batch(records, base_offset)))
    shards.check_state()


def value_or_tombstone(rng: Random) -> bytes | None:
    chance = rng.random()
    if chance < 0.4:
        return rng.choice(VALUES)
    return None if chance < 0.42 else _damaged_value(rng)


def record_sets(rng: Random, case: Case, count: int) -> None:
    shards = Twins(rng, case.counts, is_sound=False)
    for _ in range(count):
        sound = [sound_batches(rng, shards.position) for _ in range(2)]
        data = mutated(rng, sound[0], sound)
        if rng.random() < 0.5:
            data = with_sound_crc(data)
        case.begin(data)
        check_walk(data, case.counts)
        shards.apply(data)
        if shards.position > INT64_MAX // 2:
            shards.check_state()
            shards = Twins(rng, case.counts, is_sound=False)
    shards.check_state()


def sound_batches(rng: Random, position: int) -> bytes:
    offset = max(position - rng.choice((0, 0, 1, 5)), 0)
    batches = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(8)
        found = [rng.choice(VALUES) for _ in range(rng.randint(1, 5))]
        if kind == 0:
            producer = Producer(5, 0, 0, is_transactional=True)
            marker = rng.choice((ControlType.COMMIT, ControlType.ABORT))
            batches.append(build_control_batch(marker, offset, producer=producer, timestamp_ms=1))
        elif kind == 1:
            batches.append(build_batch([], offset, last_offset=offset + 2))
        elif kind == 2:
            batches.append(_batch_of_damaged_records(rng, found, offset))
        else:
            compression = rng.choice(tuple(Compression))
            batches.append(build_batch(records_of(found, offset), offset, compression=compression))
        offset += len(found) + rng.choice((0, 0, 2))
    return b"".join(batches)


def _batch_of_damaged_records(rng: Random, found: list[bytes], offset: int) -> bytes:
    section = build_batch(records_of(found, offset), offset)[HEADER_BYTES:]
    compression = rng.choice(tuple(Compression))
    return forge(
        deflate(compression, mutated(rng, section, [section])),
        len(found) + rng.choice((0, 0, 1, -1)),
        base_offset=offset,
        attributes=compression.value if rng.random() < 0.9 else _UNKNOWN_CODEC,
    )


def check_walk(data: bytes, counts: Counter[str]) -> None:
    """The walk covers *data* without gap or overlap, and both readers of a batch agree."""
    at = 0
    ended = False
    for found in walk(data):
        assert not ended, "the walk goes on behind its end"
        assert found.start == at, "the walk leaves a gap"
        if isinstance(found, Batch):
            counts["walk: batch"] += 1
            damage = check_batch(found)
            counts[f"records: {'sound' if damage is None else damage.reason}"] += 1
            at = found.stop
        elif isinstance(found, PartialTail):
            counts["walk: partial tail"] += 1
            assert found.start + found.size == len(data)
            ended = True
        else:
            counts[f"walk: {found.reason}"] += 1
            ended = found.stop is None
            at = len(data) if found.stop is None else found.stop
    assert ended or at == len(data), "the walk ends early"


def check_batch(batch: Batch) -> DamagedRecords | None:
    read = batch.values(inflated_bytes_max=_INFLATED_BYTES_MAX)
    records = list(batch.records(inflated_bytes_max=_INFLATED_BYTES_MAX))
    damage = records.pop() if records and isinstance(records[-1], DamagedRecords) else None
    assert damage == read.damage
    previous = batch.base_offset - 1
    assert len(records) == len(read)
    for record, (offset, value) in zip(records, read, strict=True):
        assert isinstance(record, Record)
        assert (record.offset, record.value) == (offset, value)
        assert previous < offset <= batch.last_offset
        previous = offset
    return read.damage


# ------------------------------------------------------------------------------------ images


def images(rng: Random, case: Case, count: int) -> None:
    shard = PythonShard(METADATA_PARTITION)
    for event in rng.choices(EVENTS, k=80):
        shard.apply_event(event)
    whole, parts = shard.image(), [shard.partition_image(user) for user in shard.partitions()]
    for _ in range(count):
        is_part = rng.random() < 0.3
        sound = rng.choice(parts) if is_part else whole
        assert sound is not None
        if rng.random() < 0.7:
            image = bytearray(sound)
            image[rng.randrange(len(image))] = rng.choice((0, 1, 2, 0xFF, rng.randrange(256)))
        else:
            image = bytearray(mutated(rng, sound, [sound]))
        data = case.begin(bytes(image))
        restored = PythonShard(METADATA_PARTITION)
        try:
            if is_part:
                again = restored.partition_image(restored.import_partition(data))
            else:
                restored = PythonShard.from_image(data)
                again = restored.image()
        except ImageCorrupt:
            case.counts["image refused"] += 1
            continue
        case.counts["image accepted"] += 1
        assert again == data
        assert restored.validate() == []


KINDS: dict[str, tuple[Callable[[Random, Case, int], None], int]] = {
    "values": (values, 9),
    "events": (events, 5),
    "record sets": (record_sets, 4),
    "images": (images, 2),
}
