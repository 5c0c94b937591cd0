"""
Which engine answers a client: by the cluster that its hello names.

Engines are somebody else's; here is only which one is meant. Invariant: a client is never answered
from another cluster than the one it named. While a log is not reached nobody knows whose it is, and
nobody is sent away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rlmm.errors import NotReady, WrongCluster
from rlmm.log.folder import UNKNOWN_CLUSTER_ID
from rlmm.progress import Why
from rlmm.sidecar.brokers import BrokerAssignments

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.engine import Engine


class Engines(Protocol):
    """The engines of the process."""

    def all(self) -> Collection[Engine]:
        """Every engine there is now."""

    def of_cluster(self, cluster_id: str) -> Engine | None:
        """The engine that follows, or is to follow, this cluster; `None` while none is known to."""

    def accept(self, cluster_id: str, bootstrap: str | None) -> None:
        """
        Begin to follow an unknown cluster, which a broker has told of; more than once is harmless.

        Raises `WrongCluster` where that is not allowed. What comes of it is seen in `of_cluster`.
        """

    def is_followed(self, engine: Engine) -> bool:
        """Whether the engine answers for what brokers assign, and for nothing else."""


class Clusters:
    """The engines, and what the brokers of each have."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._brokers: dict[Engine, BrokerAssignments] = {}

    def find(self, cluster_id: str | None, bootstrap: str | None, *, may_teach: bool) -> Engine:
        """
        The engine for who belongs to *cluster_id*.

        Raises `WrongCluster`, naming both, where another one's is served, and `NotReady` while
        nobody can tell. An unknown cluster is learned from who *may_teach*.
        """
        engines = self._engines.all()
        if cluster_id is None:
            if len(engines) == 1:
                return next(iter(engines))
            msg = f"hello must name a cluster_id: served are {self._served(engines)}"
            raise WrongCluster(msg)
        found = self._engines.of_cluster(cluster_id)
        if found is not None:
            return found
        if any(engine.identity is None for engine in engines):
            msg = f"whose metadata is served here is not known yet, asked for is {cluster_id}"
            raise NotReady(msg, reason=Why.CONNECTING)
        if not may_teach:
            raise self.wrong(cluster_id)
        self._engines.accept(cluster_id, bootstrap)
        found = self._engines.of_cluster(cluster_id)
        if found is None:
            msg = f"the metadata of cluster {cluster_id} is not followed yet"
            raise NotReady(msg, reason=Why.CONNECTING)
        return found

    def require_right(self, engine: Engine, cluster_id: str | None) -> bool:
        """
        Whether *engine* is known to be that of *cluster_id*; raises `WrongCluster` where it is
        known not to be.
        """
        if cluster_id is None:
            return True
        identity = engine.identity
        if identity is None:
            return False
        if identity.cluster_id not in {cluster_id, UNKNOWN_CLUSTER_ID}:
            raise self.wrong(cluster_id, identity.cluster_id)
        return True

    def wrong(self, cluster_id: str, served: str | None = None) -> WrongCluster:
        """The refusal of who belongs to *cluster_id*."""
        named = served or self._served(self._engines.all())
        return WrongCluster(f"asked for is cluster {cluster_id}, served is {named}")

    def brokers(self, engine: Engine) -> BrokerAssignments:
        """What the brokers of the engine's cluster have."""
        found = self._brokers.get(engine)
        if found is None:
            is_followed = self._engines.is_followed(engine)
            found = self._brokers[engine] = BrokerAssignments(engine, is_followed=is_followed)
        return found

    def _served(self, engines: Collection[Engine]) -> str:
        """The clusters that are served, in words."""
        names = [
            engine.identity.cluster_id or "one without an id"
            for engine in engines
            if engine.identity is not None
        ]
        return ", ".join(sorted(names)) or "none yet"
