"""
Between the pump and everybody who has to hear of it: the gate, waiting readers, snapshots, the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlmm.errors import AssignmentLost
from rlmm.gate.state import GateState

if TYPE_CHECKING:
    from rlmm.engine.snapshot_keeper import SnapshotKeeper
    from rlmm.gate.admission import Gate
    from rlmm.gate.offset_waits import OffsetWaits
    from rlmm.log.protocol import LogIdentity
    from rlmm.log.replay_progress import Fact, ReplayProgress
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.shard import Shard

_log = logging.getLogger("rlmm.relay")


class Relay:
    """Hears the pump, and passes on what it hears; see `Listener` for what each call means."""

    def __init__(self, gate: Gate, barrier: OffsetWaits, keeper: SnapshotKeeper | None) -> None:
        self._gate = gate
        self._barrier = barrier
        self._keeper = keeper

    def connected(self, identity: LogIdentity) -> None:
        self._gate.connect(identity.partition_count)
        if self._keeper is not None:
            self._keeper.connected(identity)

    def disconnected(self, detail: str) -> None:
        self._gate.disconnect(detail)

    def assigned(self, assignment: Assignment) -> None:
        self._gate.assign(assignment)

    def begun(self, partition: int, progress: ReplayProgress) -> None:
        self._gate.begin(partition, progress)

    def held(self, partition: int, shard: Shard) -> None:
        self._gate.hold(partition, shard)

    def met(self, partition: int, fact: Fact, progress: ReplayProgress) -> None:
        if not self._gate.meet(partition, fact, progress):
            return
        gates = [gated.gate for gated in self._gate.shards().values()]
        gate = self._gate.shards()[partition].gate
        where = {"metadata_partition": partition, "offset": progress.position}
        if gate.state is GateState.OPEN:
            is_open = sum(gate.state is GateState.OPEN for gate in gates)
            level = logging.INFO if is_open == len(gates) or gate.openings > 1 else logging.DEBUG
            _log.log(
                level,
                "metadata partition %d is answered from, at offset %d: %d of %d are",
                partition,
                progress.position,
                is_open,
                len(gates),
                extra=where,
            )
        elif gate.state is not GateState.REPLAYING:
            _log.warning(
                "metadata partition %d is not answered from any more (%s, %s): %s",
                partition,
                gate.state,
                gate.why,
                gate.detail,
                extra=where,
            )

    def moved(self, partition: int, position: int) -> None:
        self._barrier.advance(partition, position)

    def ended(self, partition: int) -> None:
        self._gate.end(partition)
        self._barrier.fail(
            partition,
            AssignmentLost,
            f"metadata partition {partition} is not read by this service any more",
        )
