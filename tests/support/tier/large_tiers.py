"""A tier of any number of segments with faults in known places."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.records.writer import build_batch, records_of
from spark_tiering.layout.object_names import object_keys
from tests.support.builders import update
from tests.support.stores.inventories import Row, csv_bytes, write_inventory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.metadata.events import Event

T_MS = 1_700_000_000_000
NOW_MS = T_MS + 30 * 86_400_000
PLACES = 4
PREFIX = "kafka/"
BATCH = 500
FILE_ROWS = 250_000


@dataclass(frozen=True)
class LargeTier:
    """Of every 10,000 segments one lacks an object, three are orphans, three keys are foreign."""

    segments: int
    partitions: int = 20

    def all(self) -> Iterator[SegmentMetadata]:
        each = -(-self.segments // self.partitions)
        for number in range(self.segments):
            topic, at = number // each, number % each
            topic_id = Uuid(hashlib.blake2b(b"%d" % topic, digest_size=16).digest())
            partition = TopicIdPartition(topic_id, f"topic-{topic}", topic)
            uuid = Uuid(hashlib.blake2b(b"s%d" % number, digest_size=16).digest())
            yield SegmentMetadata(
                SegmentId(partition, uuid), at * 1_000, at * 1_000 + 999, 1, T_MS, T_MS,
                ((0, at * 1_000),), 1 << 30,
            )  # fmt: skip

    @staticmethod
    def is_deleted(number: int) -> bool:
        return number % 10_000 in (0, 1, 2)

    @staticmethod
    def is_missing(number: int) -> bool:
        return number % 10_000 == 5_000

    def expected(self) -> dict[str, int]:
        return {
            "TIER-ORPHAN": sum(map(self.is_deleted, range(self.segments))),
            "TIER-OBJECT-MISSING": sum(map(self.is_missing, range(self.segments))),
            "TIER-UNKNOWN-KEY": 3 * -(-self.segments // 10_000),
        }

    def events(self) -> Iterator[Event]:
        for number, segment in enumerate(self.all()):
            yield segment
            states = [SegmentState.COPY_SEGMENT_FINISHED]
            if self.is_deleted(number):
                states += [
                    SegmentState.DELETE_SEGMENT_STARTED,
                    SegmentState.DELETE_SEGMENT_FINISHED,
                ]
            for state in states:
                yield update(segment.id, state, event_timestamp_ms=T_MS)

    def write_metadata(self, folder: Path) -> Path:
        waiting: dict[int, list[bytes]] = {place: [] for place in range(PLACES)}
        offsets = dict.fromkeys(waiting, 0)
        files = {}
        for place in waiting:
            path = folder / f"__remote_log_metadata-{place}"
            path.mkdir(parents=True)
            files[place] = (path / f"{0:020d}.log").open("wb")

        def flush(place: int) -> None:
            values = waiting[place]
            if values:
                files[place].write(build_batch(records_of(values, offsets[place]), offsets[place]))
                offsets[place] += len(values)
                values.clear()

        for event in self.events():
            assert not isinstance(event, bytes)
            place = place_of(event.id.partition, PLACES)  # type: ignore[union-attr]
            waiting[place].append(encode(event))
            if len(waiting[place]) >= BATCH:
                flush(place)
        for place, file in files.items():
            flush(place)
            file.close()
        return folder

    def rows(self) -> Iterator[Row]:
        for number, segment in enumerate(self.all()):
            keys = object_keys(segment.id, segment.start_offset, PREFIX)
            for kind, key in keys.items():
                if not (self.is_missing(number) and kind.value == "indexes"):
                    yield Row(key, 1_000, T_MS)
            if number % 10_000 == 0:
                for stray in range(3):
                    yield Row(f"{PREFIX}stray-{number}-{stray}", 1, T_MS)

    def write_inventory(self, folder: Path) -> Path:
        files: list[bytes] = []
        held: list[Row] = []
        for row in self.rows():
            held.append(row)
            if len(held) == FILE_ROWS:
                files.append(csv_bytes(held))
                held = []
        return write_inventory(folder, [*files, csv_bytes(held)], created_ms=NOW_MS - 86_400_000)
