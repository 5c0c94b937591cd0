"""Protocol of a source of the tiered state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus, StateSourceKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.inspection.cluster_facts import ClusterFacts
    from rlmm.inspection.moment import Moment
    from rlmm.inspection.replay import EventLog, Progress

__all__ = ["MetadataPartitionStatus", "SourceStatus", "StateSource", "StateSourceKind"]


class StateSource(Protocol):
    """Answers from one of three sources. A command opens it, and closes it at its end."""

    @property
    def kind(self) -> StateSourceKind: ...

    @property
    def where(self) -> str:
        """Address or folders, for people."""
        ...

    @property
    def log(self) -> EventLog:
        """Return the records of the metadata topic, for queries about history."""
        ...

    @property
    def cluster(self) -> ClusterFacts | None:
        """Return the cluster, if it can be asked."""
        ...

    async def standing(self) -> SourceStatus:
        """Return the status; never raises `NotReady`."""
        ...

    async def now(
        self,
        places: Collection[int] | None = None,
        *,
        wait_s: float = 0.0,
        progress: Progress | None = None,
    ) -> Moment:
        """Return the state of *places*, or of all; `NotReady` if one is behind after *wait_s*."""
        ...

    async def close(self) -> None: ...
