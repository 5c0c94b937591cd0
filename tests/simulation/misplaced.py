"""
Misplaced user partitions: strangers store events in any metadata partition. Where enough of them
fit a smaller topic, if only by chance, every question must be refused (docs/operating.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.gate.state import GateState
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.decoding import decode
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.gate.state import ShardGate
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.pump.replay import Replay
    from tests.simulation.invariants import Judge
    from tests.simulation.machine import Machine

_FEW = 4
_SHARE = 4
_MANY = 16
"""So many need no smaller count that explains them."""


def seems_grown(judge: Judge, machine: Machine, partition_count: int) -> bool:
    """Whether *machine* must take its topic for one that had fewer partitions before."""
    topic_id = machine.topic_id()
    if topic_id is None:
        return False
    replays = dict(machine.replays())
    found = [
        (partition, place)
        for place, replay in replays.items()
        for partition in _misplaced(judge, topic_id, replay, partition_count)
    ]
    known = sum(replay.shard.user_partitions for replay in replays.values())
    if len(found) < _FEW or len(found) * _SHARE < known:
        return False
    return len(found) >= _MANY or any(
        all(place_among(count, partition) == place for partition, place in found)
        for count in range(1, partition_count)
    )


def is_right(gate: ShardGate, is_grown: bool) -> bool:
    """Whether *gate* is open, or closed for good in a topic that seems to have grown."""
    return gate.why is NotReadyReason.MISPLACED if is_grown else gate.state is GateState.OPEN


def _misplaced(
    judge: Judge, topic_id: Uuid, replay: Replay, partition_count: int
) -> set[TopicIdPartition]:
    """
    Return those that the state must show, and those that the engine has noted where the log has an
    event of them: no snapshot remembers the ones of which every event was rejected.
    """
    shard = replay.shard
    noted = set(shard.misplaced.values())
    if noted:
        noted &= set(_stored(judge, topic_id, replay))
    return {
        partition
        for partition in noted.union(shard.partitions())
        if place_among(partition_count, partition) != shard.partition
    }


def _stored(judge: Judge, topic_id: Uuid, replay: Replay) -> Iterator[TopicIdPartition]:
    """Yield the user partition of every event that *replay* has read, in this life of the topic."""
    for offset, value in judge.reference_of(topic_id, replay).values.items():
        if offset < replay.shard.position:
            match decode(value):
                case PartitionDelete() as event:
                    yield event.partition
                case SegmentMetadata() | SegmentUpdate() as event:
                    yield event.id.partition


def place_among(partition_count: int, partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, partition_count)
