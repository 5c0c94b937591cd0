"""
The engines of the process as the frame server sees them; and clusters that brokers tell of.

A cluster that is learned gets an engine of its own, beside those of the configuration, and is there
again after a restart. Invariant: no more are learned than are allowed, and none from who may not
speak for a broker.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, RlmmError, WrongCluster
from rlmm.sidecar.learned import (
    read_learned,
    require_cluster_id,
    require_servers,
    write_learned,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from rlmm.engine import Engine
    from rlmm.engines import EnginePlan, Service

_log = logging.getLogger(__name__)


class ProcessEngines:
    """The engines of one process, and those that are learned."""

    def __init__(
        self,
        folder: Path,
        plan_of: Callable[[str, tuple[str, ...]], EnginePlan],
        *,
        clusters_max: int,
        follows_brokers: Callable[[str], bool],
    ) -> None:
        """
        *plan_of* gives the plan of a learned cluster, whose address is kept in *folder*;
        *follows_brokers* says of the name of an engine whether it answers for what brokers assign.
        """
        self._folder = folder
        self._plan_of = plan_of
        self._clusters_max = clusters_max
        self._follows_brokers = follows_brokers
        self._service: Service | None = None
        self._learned: dict[str, str] = {}
        self._wanted: asyncio.Queue[str] = asyncio.Queue()
        self._begun: set[str] = set()
        """Clusters whose engines are there, or about to be."""
        self._refused: dict[str, tuple[str, str]] = {}
        """Clusters that could not be followed: the address that was told, and why."""

    def begin(self, service: Service) -> None:
        """These are the engines; to be called before any client is let in."""
        self._service = service

    def all(self) -> Collection[Engine]:
        """Every engine there is now."""
        return () if self._service is None else tuple(self._service.engines.values())

    def of_cluster(self, cluster_id: str) -> Engine | None:
        """The engine of a cluster, also of one that is learned and not reached yet."""
        service = self._service
        if service is None:
            return None
        if cluster_id in self._learned and cluster_id in service.engines:
            return service.engines[cluster_id]
        return service.engine_of(cluster_id)

    def is_followed(self, engine: Engine) -> bool:
        """Whether the engine answers for what brokers assign, and for nothing else."""
        engines = {} if self._service is None else self._service.engines
        return any(one is engine and self._follows_brokers(name) for name, one in engines.items())

    def accept(self, cluster_id: str, bootstrap: str | None) -> None:
        """Begin to follow an unknown cluster; see `Engines.accept`."""
        served = ", ".join(self._names()) or "none yet"
        told = f"asked for is cluster {cluster_id}, served is {served}"
        if not self._clusters_max:
            raise WrongCluster(told)
        if bootstrap is None:
            raise WrongCluster(f"{told}; hello names no bootstrap where it could be reached")
        require_cluster_id(cluster_id)
        require_servers(bootstrap)
        if cluster_id in self._begun and cluster_id not in self._refused:
            return
        refused, why = self._refused.get(cluster_id, ("", ""))
        if refused == bootstrap:
            raise WrongCluster(f"{told}; it cannot be followed at {bootstrap}: {why}")
        if cluster_id not in self._learned and len(self._learned) >= self._clusters_max:
            msg = f"{told}; sidecar.clusters_max = {self._clusters_max} are learned already"
            raise WrongCluster(msg)
        self._refused.pop(cluster_id, None)
        self._learned[cluster_id] = bootstrap
        self._begun.add(cluster_id)
        self._wanted.put_nowait(cluster_id)

    async def run(self) -> None:
        """
        Follow the clusters that were learned before, and every one that is learned from now on.

        Raises `ConfigError` where what was kept cannot be read.
        """
        kept = await asyncio.to_thread(read_learned, self._folder)
        for cluster_id, bootstrap in kept.items() if self._clusters_max else ():
            if cluster_id not in self._begun:  # else somebody has told of it meanwhile
                self._learned[cluster_id] = bootstrap
                self._begun.add(cluster_id)
                await self._follow(cluster_id)
        while True:
            cluster_id = await self._wanted.get()
            await self._follow(cluster_id)
            await self._keep()

    async def _follow(self, cluster_id: str) -> None:
        assert self._service is not None
        bootstrap = self._learned[cluster_id]
        try:
            await self._service.add(self._plan_of(cluster_id, require_servers(bootstrap)))
        except (RlmmError, OSError) as error:
            _log.error("cluster %s cannot be followed: %s", cluster_id, error)
            self._begun.discard(cluster_id)
            self._refused[cluster_id] = bootstrap, str(error)
        else:
            _log.info("cluster %s is followed at %s, as a broker told", cluster_id, bootstrap)

    async def _keep(self) -> None:
        kept = {name: where for name, where in self._learned.items() if name not in self._refused}
        try:
            await asyncio.to_thread(write_learned, self._folder, kept)
        except OSError as error:
            _log.error("the clusters that brokers told of are not kept: %s", error)

    def _names(self) -> list[str]:
        service = self._service
        return sorted(
            {
                *self._learned,
                *(
                    engine.identity.cluster_id
                    for engine in self.all()
                    if engine.identity is not None and service is not None
                ),
            }
        )


def require_no_tables(clusters: Collection[str], clusters_max: int) -> None:
    """Refuse to learn clusters beside those that are named: which settings should they have?"""
    if clusters and clusters_max:
        msg = "sidecar.clusters_max must not be set where the configuration names clusters"
        raise ConfigError(msg)
