"""
The clusters of clients: finds the engine by the cluster id of a hello.

Invariant: a client is never answered from another cluster than it named. While the cluster of a log
is not known, clients get `NotReady`. A broker's partitions outlive the engine.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from rlmm.errors import NotReady, RlmmError, WrongCluster
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from rlmm.log.replay_progress import NotReadyReason
from rlmm.sidecar.broker_assignments import BrokerAssignments

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.engine.engine import Engine
    from rlmm.sidecar.broker_starts import BrokerStart, BrokerStatistics
    from rlmm.sidecar.cluster_discovery import ProcessEngines
    from rlmm.sidecar.settings import AssignmentLimits


class Clusters:
    def __init__(self, engines: ProcessEngines, limits: AssignmentLimits) -> None:
        self._engines = engines
        self._limits = limits
        self._brokers: dict[str, BrokerAssignments] = {}

    def find(self, cluster_id: str | None, bootstrap: str | None, *, may_teach: bool) -> Engine:
        """
        Return the engine of *cluster_id*; learn the address from clients that *may_teach*.

        Raises `WrongCluster` naming both clusters, and `NotReady` while the cluster is unknown.
        """
        self._let_go()
        found = self._only() if cluster_id is None else self._named(cluster_id)
        if cluster_id is not None and may_teach:
            self._engines.accept(cluster_id, bootstrap)
            found = self._engines.of_cluster(cluster_id)
        if found is None:
            assert cluster_id is not None
            raise self._absent(cluster_id)
        if self._engines.name_of(found) in self._brokers:
            self.brokers(found)  # their partitions count before one of them speaks
        return found

    def wake_logs(self, cluster_id: str | None) -> None:
        """Retry logs that are, or may be, of the cluster now: one of its brokers has spoken."""
        known = None if cluster_id is None else self._engines.of_cluster(cluster_id)
        for engine in self._engines.all():
            if known is None and engine.identity is None and not self._engines.is_learned(engine):
                engine.wake()
        if known is not None:
            known.wake()

    def is_served(self, engine: Engine) -> bool:
        return engine in self._engines.all()

    def _only(self) -> Engine:
        engines, missing = self._engines.all(), self._engines.missing()
        if len(engines) + len(missing) == 1:
            for name in missing:
                raise self._absent(name)
            return next(iter(engines))
        msg = f"hello must name a cluster_id: served are {self._served(engines)}"
        raise WrongCluster(msg)

    def _named(self, cluster_id: str) -> Engine | None:
        """Return the cluster's engine, if any; `NotReady` while an unreached log may be it."""
        found = self._engines.of_cluster(cluster_id)
        if found is not None:
            return found
        for engine in self._engines.all():
            if engine.identity is None and not self._engines.is_learned(engine):
                msg = f"whose metadata is served here is not known yet, asked for is {cluster_id}"
                raise NotReady(msg, reason=NotReadyReason.CONNECTING)
        return None

    def _absent(self, cluster_id: str) -> NotReady | WrongCluster:
        why = self._engines.missing().get(cluster_id)
        if why is None:
            return self.wrong(cluster_id)
        msg = f"the metadata of cluster {cluster_id} is not followed now: {why}"
        return NotReady(msg, reason=NotReadyReason.CONNECTING)

    def require_right(self, engine: Engine, cluster_id: str | None) -> bool:
        """Return whether *engine* surely serves *cluster_id*; `WrongCluster` if surely not."""
        if cluster_id is None:
            return True
        identity = engine.identity
        if identity is None:
            return False
        if identity.cluster_id not in {cluster_id, UNKNOWN_CLUSTER_ID}:
            raise self.wrong(cluster_id, identity.cluster_id)
        return True

    def wrong(self, cluster_id: str, served: str | None = None) -> WrongCluster:
        named = served or self._served(self._engines.all())
        return WrongCluster(f"asked for is cluster {cluster_id}, served is {named}")

    def brokers(self, engine: Engine) -> BrokerAssignments:
        name = self._engines.name_of(engine)
        found = self._brokers.get(name)
        if found is None:
            is_followed = self._engines.is_followed(engine)
            found = self._brokers[name] = BrokerAssignments(
                engine, self._limits, is_followed=is_followed
            )
        elif found.engine is not engine:
            found.move_to(engine)
        return found

    def leave(self, start: BrokerStart) -> None:
        """Drop a connection that spoke for *start*, even if its engine is gone."""
        for brokers in self._brokers.values():
            if start.broker in brokers:
                brokers.leave(start)

    def look_after(self, now_s: float) -> None:
        """Give brokers to a new engine, and give up what restarts left out; called periodically."""
        self._let_go()
        for engine in self._engines.all():
            if self._engines.name_of(engine) in self._brokers:
                with suppress(RlmmError):  # it is tried again, and clients get the error
                    self.brokers(engine)
        for brokers in self._brokers.values():
            brokers.settle(now_s)

    def _let_go(self) -> None:
        """Drop engines that are gone; their brokers' partitions wait for the next one."""
        for brokers in self._brokers.values():
            if brokers.engine is not None and not self.is_served(brokers.engine):
                brokers.move_to(None)

    def shown(self, engine: Engine) -> dict[str, dict[str, int | None]]:
        """Return plain statistics of each broker of the engine's cluster, by its id."""
        brokers = self._brokers.get(self._engines.name_of(engine))
        if brokers is None:
            return {}
        return {str(number): asdict(one) for number, one in brokers.statistics().items()}

    @property
    def given_up(self) -> int:
        return sum(brokers.given_up for brokers in self._brokers.values())

    @property
    def takeovers(self) -> int:
        return sum(brokers.takeovers for brokers in self._brokers.values())

    def brokers_statistics(self) -> dict[str, dict[int, BrokerStatistics]]:
        found: dict[str, dict[int, BrokerStatistics]] = {}
        for name, brokers in self._brokers.items():
            cluster_id = name if name in self._engines.missing() else ""
            if brokers.engine is not None and brokers.engine.identity is not None:
                cluster_id = brokers.engine.identity.cluster_id
            found.setdefault(cluster_id, {}).update(brokers.statistics())
        return found

    def _served(self, engines: Collection[Engine]) -> str:
        names = [
            engine.identity.cluster_id or "one without an id"
            for engine in engines
            if engine.identity is not None
        ]
        return ", ".join(sorted(names)) or "none yet"
