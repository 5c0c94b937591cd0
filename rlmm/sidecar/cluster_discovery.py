"""
Cluster discovery: the engines of the process, and those of clusters that brokers report.

Invariants: a cluster is learned only when it answered at the reported address, with the reported
id, within the limit, and from a client that may speak for a broker; a report changes nothing for an
engine that reaches its cluster.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from rlmm.base.log_context import bound
from rlmm.base.threads import in_own_thread
from rlmm.errors import ConfigError, InvalidArgument, NotReady, RlmmError, WrongCluster
from rlmm.log.replay_progress import NotReadyReason
from rlmm.sidecar.cluster_file import (
    read_learned,
    require_cluster_id,
    require_servers,
    write_learned,
)
from rlmm.sidecar.connection_trials import ConnectionTrials

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from rlmm.engine.engine import Engine
    from rlmm.engine.plan import EnginePlan
    from rlmm.engine.service import Service

_log = logging.getLogger(__name__)

_TRIAL_S: Final = 10.0
"""Time for a cluster to answer at a reported address: enough to skip several silent brokers."""
_LOOK_S: Final = 2.0
"""Interval of the care for learned clusters: a broker says hello only once."""
_PATIENCE_S: Final = 60.0
"""How long an engine may try its old address: as long as gates stay open."""
_TOLD_MAX: Final = 4
"""Further reported addresses that are remembered for each cluster: the newest."""
_OPENING = "its log is being opened"
_THREAD: Final = "learned-clusters"


class ProcessEngines:
    def __init__(
        self,
        folder: Path,
        plan_of: Callable[[str, tuple[str, ...]], EnginePlan],
        *,
        clusters_max: int,
        follows_brokers: Callable[[str], bool],
    ) -> None:
        """
        *plan_of* makes the plan of a learned cluster, whose address is kept in *folder*.

        *follows_brokers* returns whether the assignment of a named engine follows brokers.
        """
        self._folder = folder
        self._plan_of = plan_of
        self._clusters_max = clusters_max
        self._follows_brokers = follows_brokers
        self._service: Service | None = None
        self._is_read = False
        self._learned: dict[str, str] = {}
        """Addresses by id; an engine runs, or is missing in the service."""
        self._engines: dict[str, tuple[Engine, float]] = {}
        """The engine of each learned cluster, and when it began."""
        self._told: dict[str, list[str]] = {}
        self._away_s: dict[str, float] = {}
        """Since when each engine does not reach its cluster."""
        self._trials = ConnectionTrials(lambda: asyncio.get_running_loop().time())
        self._wanted: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._writing = asyncio.Lock()

    def begin(self, service: Service) -> None:
        """Set the service; to be called before any client is let in."""
        self._service = service
        service.on_dropped = self._dropped

    # ----------------------------------------------------------------------------- engines

    def all(self) -> Collection[Engine]:
        return () if self._service is None else tuple(self._service.engines.values())

    def of_cluster(self, cluster_id: str) -> Engine | None:
        """Return the engine of a cluster, also of a learned one that is not reached yet."""
        found = self._engines.get(cluster_id)
        if found is not None:
            return found[0]
        return None if self._service is None else self._service.engine_of(cluster_id)

    def name_of(self, engine: Engine) -> str:
        engines = {} if self._service is None else self._service.engines
        return next((name for name, one in engines.items() if one is engine), "")

    def is_learned(self, engine: Engine) -> bool:
        """Return whether the cluster of the engine is known before it is reached."""
        return any(one is engine for one, _ in self._engines.values())

    def is_followed(self, engine: Engine) -> bool:
        return self._follows_brokers(self.name_of(engine))

    def missing(self) -> Mapping[str, str]:
        return {} if self._service is None else self._service.missing

    # ------------------------------------------------------------------------------ hellos

    def accept(self, cluster_id: str, bootstrap: str | None) -> None:
        """
        Take the address that a broker reported of its cluster; repeats are harmless.

        An engine that does not reach its cluster is moved, if the cluster is found at the address.
        An unknown cluster is followed once it has answered: `NotReady` until then, and
        `WrongCluster` where that is not allowed, or another cluster answers.
        """
        if self.of_cluster(cluster_id) is not None:
            if cluster_id in self._engines:
                self._remember(cluster_id, bootstrap)
                self._look_after(cluster_id)
            return
        known = {one.identity.cluster_id for one in self.all() if one.identity is not None}
        served = ", ".join(sorted({*self._learned, *known})) or "none yet"
        told = f"asked for is cluster {cluster_id}, served is {served}"
        if not self._clusters_max:
            raise WrongCluster(told)
        if not self._is_read:
            raise _not_ready("the clusters that were learned before are being read")
        if cluster_id in self._learned:
            self._remember(cluster_id, bootstrap)
            self._look_after(cluster_id)
            why = self.missing().get(cluster_id, _OPENING)
            raise _not_ready(f"the metadata of cluster {cluster_id} is not followed now: {why}")
        if bootstrap is None:
            raise WrongCluster(f"{told}; hello names no bootstrap where it could be reached")
        require_cluster_id(cluster_id)
        address = ",".join(require_servers(bootstrap))
        self._require_room(told)
        self._try(cluster_id, address)
        last = self._trials.last(cluster_id)
        if last is not None and isinstance(last[1], ConfigError):
            raise WrongCluster(f"{told}; it cannot be followed at {last[0]}: {last[1]}")
        why = f"it is asked for at {address}" if last is None else f"at {last[0]}: {last[1]}"
        raise _not_ready(f"the metadata of cluster {cluster_id} is not followed yet: {why}")

    def _remember(self, cluster_id: str, bootstrap: str | None) -> None:
        """Remember another address of a learned cluster; ignores malformed ones."""
        try:
            address = ",".join(require_servers(bootstrap or ""))
        except InvalidArgument:
            return
        told = self._told.setdefault(cluster_id, [])
        if address in told:
            told.remove(address)
        if set(address.split(",")) != set(self._learned[cluster_id].split(",")):
            told.append(address)
            del told[:-_TOLD_MAX]

    def _look_after(self, cluster_id: str) -> None:
        """Try a learned cluster that is not followed, or not reached where it was."""
        assert self._service is not None
        told = self._told.get(cluster_id, [])
        if cluster_id not in self._engines:
            if self._service.engine_of(cluster_id) is None:
                self._try(cluster_id, told[-1] if told else self._learned[cluster_id])
        elif self._is_away(cluster_id) and told:
            self._try(cluster_id, told[-1])

    def _is_away(self, cluster_id: str) -> bool:
        """Return whether the engine of a learned cluster does not reach it, nor is about to."""
        assert self._service is not None
        if self._service.is_reached(cluster_id):
            self._away_s.pop(cluster_id, None)
            return False
        engine, _ = self._engines[cluster_id]
        now_s = asyncio.get_running_loop().time()
        since_s = self._away_s.setdefault(cluster_id, now_s)
        return engine.identity is None or now_s - since_s >= _PATIENCE_S

    def _try(self, cluster_id: str, address: str) -> None:
        if self._trials.begin(cluster_id, address, is_learned=cluster_id in self._learned):
            self._wanted.put_nowait((cluster_id, address))

    def _require_room(self, told: str) -> None:
        """Refuse one learned cluster too many; a reported one takes no place."""
        if len(self._learned) >= self._clusters_max:
            msg = f"{told}; sidecar.clusters_max = {self._clusters_max} are learned already"
            raise WrongCluster(msg)

    # ---------------------------------------------------------------------------- the part

    async def run(self) -> None:
        """Follow the clusters in the file, or raise `ConfigError`, and all learned from now on."""
        assert self._service is not None
        kept = await in_own_thread(_THREAD, partial(read_learned, self._folder))
        if self._clusters_max:
            self._learned.update(kept)
        self._is_read = True
        async with asyncio.TaskGroup() as tasks:
            for cluster_id, address in self._learned.items():
                self._service.miss(cluster_id, _OPENING)
                self._trials.begin(cluster_id, address, is_learned=True)
                tasks.create_task(self._follow(cluster_id), name=f"opening {cluster_id}")
            tasks.create_task(self._look_after_all(), name="learned clusters")
            while True:
                cluster_id, address = await self._wanted.get()
                tasks.create_task(self._attempt(cluster_id, address), name=f"trying {cluster_id}")

    async def _look_after_all(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            for cluster_id in self._learned:
                self._look_after(cluster_id)

    async def _attempt(self, cluster_id: str, told: str) -> None:
        """Ask whether the cluster is at one of its reported addresses, and follow it there."""
        assert self._service is not None
        kept = self._learned.get(cluster_id)
        is_missing = kept is not None and cluster_id not in self._engines
        # A cluster that is not followed may be at its old address, whatever brokers report.
        first = [kept] if kept is not None and is_missing else []
        troubles: list[Exception] = []
        for address in dict.fromkeys([*first, told, *reversed(self._told.get(cluster_id, []))]):
            try:
                await self._require_there(cluster_id, address)
            except (RlmmError, OSError) as error:
                _log.warning("cluster %s cannot be followed at %s: %s", cluster_id, address, error)
                troubles.append(error)
            else:
                await self._settle(cluster_id, address)
                return
        if is_missing:
            self._service.miss(cluster_id, str(troubles[0]))
        self._trials.failed(cluster_id, troubles[0])

    async def _require_there(self, cluster_id: str, address: str) -> None:
        """Raise why the cluster cannot be followed at *address*; changes nothing."""
        with bound(cluster=cluster_id):
            opened = await self._plan_of(cluster_id, require_servers(address)).open_log()
            try:
                identity = await opened.log.identity(timeout_s=_TRIAL_S)
            finally:
                await opened.log.close()
        if identity.cluster_id != cluster_id:
            msg = f"there is cluster {identity.cluster_id}, not {cluster_id}"
            raise ConfigError(msg)

    async def _settle(self, cluster_id: str, address: str) -> None:
        assert self._service is not None
        is_learned = cluster_id in self._learned
        if cluster_id in self._engines:
            is_served = not self._is_away(cluster_id)
        else:
            is_served = self._service.engine_of(cluster_id) is not None
        if is_served:
            self._trials.ended(cluster_id)
            return
        if not is_learned:
            try:
                self._require_room(f"cluster {cluster_id} is there")
            except WrongCluster as error:
                self._trials.failed(cluster_id, error)
                return
        self._learned[cluster_id] = address
        self._told.pop(cluster_id, None)
        self._away_s.pop(cluster_id, None)
        if self._engines.pop(cluster_id, None) is not None:
            await self._service.remove(cluster_id, f"from now on it is followed at {address}")
        self._service.miss(cluster_id, _OPENING)
        await self._keep()
        await self._follow(cluster_id)

    async def _follow(self, cluster_id: str) -> None:
        assert self._service is not None
        address = self._learned[cluster_id]
        try:
            engine = await self._service.add(self._plan_of(cluster_id, require_servers(address)))
        except (RlmmError, OSError) as error:
            _log.error("cluster %s cannot be followed: %s", cluster_id, error)
            self._service.miss(cluster_id, str(error))
            self._trials.failed(cluster_id, error)
        else:
            self._engines[cluster_id] = engine, asyncio.get_running_loop().time()
            self._trials.ended(cluster_id)
            _log.info("cluster %s is followed at %s, as a broker told", cluster_id, address)

    def _dropped(self, name: str, why: str) -> None:
        found = self._engines.pop(name, None)
        self._away_s.pop(name, None)
        if found is not None:
            lasted_s = asyncio.get_running_loop().time() - found[1]
            self._trials.dropped(name, self._learned[name], RlmmError(why), lasted_s)

    async def _keep(self) -> None:
        async with self._writing:
            try:
                kept = partial(write_learned, self._folder, dict(self._learned))
                await in_own_thread(_THREAD, kept)
            except OSError as error:
                _log.error("the clusters that brokers told of are not kept: %s", error)


def _not_ready(msg: str) -> NotReady:
    return NotReady(msg, reason=NotReadyReason.CONNECTING)


def require_no_tables(clusters: Collection[str], clusters_max: int) -> None:
    """Refuse to learn clusters beside named ones: their settings would be unclear."""
    if clusters and clusters_max:
        msg = "sidecar.clusters_max must not be set where the configuration names clusters"
        raise ConfigError(msg)
