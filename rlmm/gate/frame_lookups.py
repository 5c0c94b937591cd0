"""
Frame look-ups: admission as the native core has it, which answers usual frames of look-ups by it.

Only here admission is handed to the core and taken back. Invariant: the core answers for a user
partition only what the gate admitted since its last change, and only up to the moment until which
the pump's last judgement of its metadata partition holds. The core answers nothing else; a frame
that it does not answer goes to `PartitionQueries`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm_native import Core, FrameLookups, OpenShards

    from rlmm.gate.admission import Gate
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard

    AnswerFrame = Callable[[bytes, float, int, int], tuple[bytes, str, int] | None]


class OpenCores:
    """The metadata partitions of one gate that the core answers from; none with another engine."""

    def __init__(self) -> None:
        self._shards: OpenShards | None = None

    def hand_over(self, place: int, core: Core, position: int, until_s: float) -> OpenShards:
        shards = self._shards
        if shards is None:
            shards = self._shards = core.open_shards()
        shards.open(place, core, position, until_s)
        return shards

    def hold(self, place: int, until_s: float) -> None:
        """Answer from *place*, where it was handed over, until *until_s* and no longer."""
        if self._shards is not None:
            self._shards.hold(place, until_s)

    def take_back(self) -> None:
        if self._shards is not None:
            self._shards.close()


class AdmittedLookups:
    """What readers with the same rights were admitted to ask about."""

    __slots__ = ("_gate", "_lookups", "answer")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._lookups: FrameLookups | None = None
        self.answer: AnswerFrame | None = None
        """
        Takes a frame, the event loop's time, the most look-ups and the most bytes of an answer;
        gives the frame that answers, its method and its look-ups. `None`: Python has to answer it.
        """

    def hand_over(self, partition: TopicIdPartition, shard: Shard, core: Core) -> None:
        """The gate admits questions about *partition* now, and *shard*, on *core*, answers them."""
        gate, place = self._gate, shard.partition
        gated = gate.shards().get(place)
        if gated is None or gated.shard is not shard or gated.holds_until_s == -math.inf:
            return
        shards = gate.cores.hand_over(place, core, shard.position, gated.holds_until_s)
        lookups = self._lookups
        if lookups is None:
            lookups = self._lookups = shards.lookups()
            self.answer = lookups.answer
        lookups.admit(place, partition.key)

    def take_back(self) -> None:
        """Admit these readers to nothing, until the gate admits them anew."""
        if self._lookups is not None:
            self._lookups.forget()
