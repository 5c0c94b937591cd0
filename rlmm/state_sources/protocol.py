"""What every source of the tiered state gives, whoever holds it."""

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
    """One of the three. Opened for one command, and closed by it."""

    @property
    def kind(self) -> StateSourceKind: ...

    @property
    def where(self) -> str:
        """An address, or folders: for people."""
        ...

    @property
    def log(self) -> EventLog:
        """The metadata topic's records, for who needs history."""
        ...

    @property
    def cluster(self) -> ClusterFacts | None:
        """The cluster, where it can be asked."""
        ...

    async def standing(self) -> SourceStatus:
        """How it stands; never raises for want of readiness."""
        ...

    async def now(
        self,
        places: Collection[int] | None = None,
        *,
        wait_s: float = 0.0,
        progress: Progress | None = None,
    ) -> Moment:
        """
        The state as it is now, of the metadata partitions *places* or of all.

        Raises `NotReady` where any of those is not caught up, or will not be within *wait_s*.
        """
        ...

    async def close(self) -> None: ...
