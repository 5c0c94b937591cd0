"""
Misplaced user partitions: strangers store events in any metadata partition. Where enough of them
fit a smaller topic, if only by chance, every question must be refused (docs/operating.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.gate.state import GateState
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.partitioner import metadata_partition_for

if TYPE_CHECKING:
    from rlmm.gate.state import ShardGate
    from rlmm.metadata.ids import TopicIdPartition
    from tests.simulation.machine import Machine

_FEW = 4
_SHARE = 4
_MANY = 16
"""So many need no smaller count that explains them."""


def seems_grown(machine: Machine, partition_count: int) -> bool:
    """Whether *machine* must take its topic for one that had fewer partitions before."""
    replays = dict(machine.replays())
    found = [
        (partition, place)
        for place, replay in replays.items()
        for partition in replay.shard.partitions()
        if place_among(partition_count, partition) != place
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


def place_among(partition_count: int, partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, partition_count)
