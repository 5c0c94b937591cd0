"""The literal model of Kafka's cache, fed with events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata
from rlmm_conformance.model import CacheModel, StoreModel
from rlmm_conformance.rules import ConformanceRule
from rlmm_conformance.steps import SegmentFields, UpdateFields

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition

FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED


@dataclass(slots=True)
class LiteralStates:
    model: StoreModel = field(default_factory=lambda: StoreModel(frozenset(ConformanceRule)))
    deletes: dict[TopicIdPartition, PartitionDelete] = field(default_factory=dict)
    known: dict[str, TopicIdPartition] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Apply one event; a refused event changes nothing."""
        if isinstance(event, PartitionDelete):
            self.known[str(event.partition)] = event.partition
            self.model.partition_delete(str(event.partition), event.state)
            self.deletes[event.partition] = event
        elif isinstance(event, SegmentMetadata):
            self.known[str(event.id.partition)] = event.id.partition
            fields = SegmentFields(
                str(event.id.uuid), event.start_offset, event.last_offset, event.epochs,
                event.state, event.size_bytes, event.broker_id, event.event_timestamp_ms,
                event.max_timestamp_ms, event.custom_metadata, event.txn_index_empty,
            )  # fmt: skip
            self.model.add(str(event.id.partition), fields)
        elif isinstance(event, SegmentUpdate):
            self.known[str(event.id.partition)] = event.id.partition
            update = UpdateFields(
                str(event.id.uuid), event.state, event.broker_id, event.event_timestamp_ms,
                event.custom_metadata,
            )  # fmt: skip
            self.model.update(str(event.id.partition), update)

    def cache(self, partition: TopicIdPartition) -> CacheModel:
        return self.model.caches.get(str(partition)) or CacheModel()

    def segments(self) -> dict[SegmentId, SegmentMetadata]:
        found = {}
        for partition in self.known.values():
            for one in self.cache(partition).segments.values():
                segment_id = SegmentId(partition, Uuid.parse(one.id))
                found[segment_id] = SegmentMetadata(
                    segment_id, one.start_offset, one.last_offset, one.broker_id,
                    one.max_timestamp_ms, one.event_timestamp_ms, one.epochs, one.size_bytes,
                    one.custom_metadata, one.state, one.txn_index_empty,
                )  # fmt: skip
        return found

    def watermarks(self) -> dict[tuple[TopicIdPartition, int], int]:
        return {
            (partition, epoch): state.highest
            for partition in self.known.values()
            for epoch, state in self.cache(partition).epochs.items()
            if state.highest is not None
        }

    def holders(self, partition: TopicIdPartition) -> set[tuple[int, str]]:
        return {
            (epoch, label)
            for epoch, state in self.cache(partition).epochs.items()
            for label in state.referenced.values()
        }
