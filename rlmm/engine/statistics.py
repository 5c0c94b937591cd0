"""Statistics of an engine as a whole, and its readiness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.base.native_core import EngineIdentity
    from rlmm.gate.admission import Gate
    from rlmm.gate.state import GateState
    from rlmm.gate.statistics import BarrierStatistics, GateStatistics, ShardGateStatistics
    from rlmm.log.protocol import LogIdentity, LogStatistics
    from rlmm.log.replay_progress import ReplayProgress
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.shard import Shard
    from rlmm.pump.incidents import IncidentStatistics
    from rlmm.pump.memory_budget import BudgetStatistics
    from rlmm.pump.pump import Pump
    from rlmm.pump.statistics import PumpStatistics
    from rlmm.pump.writer import WriterStatistics
    from rlmm.snapshot.snapshot_writer import SnapshotWriterStatistics
    from rlmm.snapshot.store import StoreStatistics


@dataclass(frozen=True, slots=True)
class EngineStatistics:
    """Counts in one step for each user partition, however many segments it holds."""

    identity: LogIdentity | None
    """`None` while the log is not reached."""
    assignment: Assignment
    pump: PumpStatistics
    gate: GateStatistics
    barrier: BarrierStatistics
    writes: WriterStatistics
    incidents: IncidentStatistics
    memory: BudgetStatistics
    restored: StoreStatistics | None
    """`None` while no log is known, or without a folder of snapshots."""
    snapshots: SnapshotWriterStatistics | None
    log: LogStatistics
    """Each kind of log has its own."""
    engine: EngineIdentity

    @property
    def gates(self) -> Mapping[int, GateState]:
        return {place: gate.state for place, gate in self.gate.partitions.items()}


@dataclass(frozen=True, slots=True)
class EngineStatus:
    identity: LogIdentity | None
    """`None` while the log is not reached."""
    assignment: Assignment
    last_trouble: str
    """What stood in the way of reaching the log last."""
    judged_s: float | None
    """The pump's heartbeat, by the event loop's clock."""
    gates: Mapping[int, ShardGateStatistics]
    progress: Mapping[int, ReplayProgress]
    shards: Mapping[int, Shard]
    """The shards themselves, not copies."""

    @property
    def places(self) -> frozenset[int]:
        """Return the metadata partitions that are to be open; none while the log is not reached."""
        if self.identity is None or self.gates:
            return frozenset(self.gates)  # all of them are begun in one step
        return self.assignment.metadata_partitions(self.identity.partition_count)

    @property
    def not_open(self) -> list[int]:
        return sorted(
            place
            for place in self.places
            if place not in self.gates or self.gates[place].why is not None
        )

    @property
    def is_ready(self) -> bool:
        return self.identity is not None and self.assignment.is_known and not self.not_open


def standing_of(pump: Pump, gate: Gate) -> EngineStatus:
    gates = gate.statistics().partitions
    followers = {place: pump.follower(place) for place in gates}
    return EngineStatus(
        pump.identity,
        pump.assignment,
        pump.last_trouble,
        pump.judged_s,
        gates,
        {place: one.progress() for place, one in followers.items() if one is not None},
        {place: held.shard for place, held in gate.shards().items() if held.shard is not None},
    )
