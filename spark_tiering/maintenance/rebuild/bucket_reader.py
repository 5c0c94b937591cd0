"""The bucket reader: it lists and reads the sets of a wave of partitions, and holds these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rlmm.findings import tier_findings as kinds
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.layout.object_names import ObjectKind, parse_object_key, partition_folder
from spark_tiering.maintenance.rebuild.manifests import (
    SETS_MAX,
    ListedSet,
    ReadSet,
    ReadTask,
    read_sets,
)
from spark_tiering.reporting.progress import Meter
from spark_tiering.store_listing.manifests import partition_folders, topic_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.layout.metadata_recovery import CustomFields
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore

WAVE_SETS: Final = 200_000

Wave = dict["TopicIdPartition", list[ReadSet]]


@dataclass
class BucketReader:
    store: ObjectStore
    settings: StoreSettings
    prefix: str
    wants_topic: Callable[[str], bool]
    fields: CustomFields
    custom_bytes_max: int
    wave_sets: int = WAVE_SETS
    meter: Meter = field(default_factory=Meter)
    sets: int = 0
    unknown_keys: int = 0
    """Keys of partitions that name no segment."""
    _listed: dict[TopicIdPartition, list[ListedSet]] = field(default_factory=dict)

    def waves(self, engine: Callable[[], ExecutionEngine]) -> Iterator[Wave]:
        """Yield every partition once, by topic, topic id and number, with all of its sets."""
        held = 0
        for partition in self._partitions():
            sets = self._list(partition)
            self._listed[partition] = sets
            held += len(sets)
            if held >= self.wave_sets:
                yield self._read(engine)
                held = 0
        if self._listed:
            yield self._read(engine)

    def _partitions(self) -> Iterator[TopicIdPartition]:
        folders = sorted(
            topic_folders(self.store, self.prefix, self.wants_topic),
            key=lambda one: (one.topic, one.topic_id),
        )
        for folder in folders:
            found = partition_folders(self.store, folder)
            yield from sorted(found, key=lambda one: one.partition)

    def _list(self, partition: TopicIdPartition) -> list[ListedSet]:
        sizes: dict[tuple[SegmentId, int], dict[ObjectKind, int]] = {}
        modified: dict[tuple[SegmentId, int], int] = {}
        for one in self.store.list(partition_folder(partition, self.prefix)):
            name = parse_object_key(one.key, self.prefix)
            if name is None:
                self.unknown_keys += 1
                continue
            place = name.segment_id, name.start_offset
            sizes.setdefault(place, {})[name.kind] = one.size_bytes
            if name.kind is ObjectKind.MANIFEST or place not in modified:
                modified[place] = one.modified_ms
        self.sets += len(sizes)
        self.meter.add("segments' objects listed", len(sizes))
        self.meter.expect("manifests read", self.sets)
        return [
            ListedSet(segment_id, start, found, modified[segment_id, start])
            for (segment_id, start), found in sizes.items()
        ]

    def _read(self, engine: Callable[[], ExecutionEngine]) -> Wave:
        listed, self._listed = self._listed, {}
        sets = [one for members in listed.values() for one in members]
        tasks = [
            ReadTask(
                self.settings,
                self.prefix,
                self.fields,
                self.custom_bytes_max,
                tuple(sets[first : first + SETS_MAX]),
            )
            for first in range(0, len(sets), SETS_MAX)
        ]
        wave: Wave = {partition: [] for partition in listed}

        def heard(outcome: list[ReadSet] | UnitLost) -> None:
            read = tasks[outcome.index].sets if isinstance(outcome, UnitLost) else outcome
            self.meter.add("manifests read", len(read))

        outcomes = engine().run_units(tasks, read_sets, heard) if tasks else []
        for task, outcome in zip(tasks, outcomes, strict=True):
            read = [_lost(one, outcome) for one in task.sets] if isinstance(
                outcome, UnitLost
            ) else outcome  # fmt: skip
            for one in read:
                wave[one.segment_id.partition].append(one)
        return wave


def _lost(one: ListedSet, lost: UnitLost) -> ReadSet:
    return ReadSet(
        one.segment_id, one.start_offset, one.modified_ms, None, kinds.UNREADABLE.code, lost.why
    )
