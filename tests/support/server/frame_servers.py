"""A frame server over engines of a test, on the real event loop."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.access.authentication import Authenticator
from rlmm.access.roles import Client, Role
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.errors import WrongCluster
from rlmm.metadata.assignment import Assignment
from rlmm.sidecar.cluster_discovery import ProcessEngines
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.listener import Sidecar
from rlmm.sidecar.session import SessionContext
from rlmm.sidecar.settings import SidecarSettings
from rlmm.sidecar.statistics import FrameServerCounters
from rlmm.views.status import engine_view
from rlmm.views.values import plain
from tests.support.engines import until_open

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from rlmm.access.roles import Peer
    from rlmm.engine.engine import Engine
    from tests.support.engines import World


@dataclass
class FixedEngines(ProcessEngines):
    engines: list[Engine]
    follows_brokers: bool = False
    accepted: list[tuple[str, str | None]] = field(default_factory=list)

    def all(self) -> Collection[Engine]:
        return self.engines

    def of_cluster(self, cluster_id: str) -> Engine | None:
        for engine in self.engines:
            if engine.identity is not None and engine.identity.cluster_id == cluster_id:
                return engine
        return None

    def name_of(self, engine: Engine) -> str:
        return str(self.engines.index(engine))

    def is_learned(self, engine: Engine) -> bool:
        return False

    def missing(self) -> Mapping[str, str]:
        return {}

    def accept(self, cluster_id: str, bootstrap: str | None) -> None:
        if self.of_cluster(cluster_id) is not None:
            return
        served = [engine.identity.cluster_id for engine in self.engines if engine.identity]
        raise WrongCluster(f"asked for is cluster {cluster_id}, served is {', '.join(served)}")

    def is_followed(self, engine: Engine) -> bool:
        return self.follows_brokers


class RoleDoor(Authenticator):
    def __init__(self, role: str) -> None:
        super().__init__(AccessSettings(), TlsSettings())
        self._role = role

    def identify(self, peer: Peer, token: str | None) -> Client:
        return Client("somebody", Role(token or self._role), is_limited=False)


class Listening:
    def __init__(
        self,
        sidecar: Sidecar,
        clusters: Clusters,
        path: Path,
        task: asyncio.Task[None],
        engines: tuple[Engine, ...],
    ) -> None:
        self._engines = engines
        self.sidecar = sidecar
        self.clusters = clusters
        self.path = path
        self.task = task

    @property
    def engine(self) -> Engine:
        (engine,) = self._engines
        return engine

    @property
    def tcp(self) -> tuple[str, int]:
        host, port = self.sidecar.addresses[0]
        return host, port

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


def _status(engine: Engine) -> Mapping[str, object]:
    now_s = asyncio.get_running_loop().time()
    shown = engine_view(engine.statistics(), now_s=now_s, now_ms=SYSTEM_CLOCK.now_ms())
    fields: Mapping[str, object] = plain(shown)
    return fields


@asynccontextmanager
async def listening(
    *served_engines: Engine,
    engines: ProcessEngines | None = None,
    door: Authenticator | None = None,
    follows_brokers: bool = False,
    **settings: Any,
) -> AsyncIterator[Listening]:
    chosen = SidecarSettings(**{"stop_timeout_ms": 1_000, **settings})
    around = SessionContext(
        chosen,
        Clusters(
            engines or FixedEngines(list(served_engines), follows_brokers=follows_brokers),
            chosen.assignment_limits,
        ),
        door or Authenticator(AccessSettings(), TlsSettings()),
        FrameServerCounters(),
        _status,
        "rlmm test",
        "serve",
    )
    with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
        path = Path(folder) / "s"
        sidecar = Sidecar(around, path)
        task = asyncio.create_task(sidecar.run(), name="sidecar")
        started = asyncio.create_task(sidecar.listening.wait())
        await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        served = Listening(sidecar, around.clusters, path, task, served_engines)
        try:
            if task.done():
                task.result()
            yield served
        finally:
            await served.stop()
        if not task.cancelled():
            task.result()


@asynccontextmanager
async def serving_world(world: World, **options: Any) -> AsyncIterator[Listening]:
    """Serve an engine of *world*, with all partitions open if *options* have no assignment."""
    names = ("assignment", "log", "make_shard")
    made = {name: options.pop(name) for name in names if name in options}
    async with world.engine(**made) as engine, listening(engine, **options) as served:
        if "assignment" not in made:
            await until_open(engine, *range(len(world.topic.partitions)))
        yield served


def serving_brokers(world: World, **settings: Any) -> AbstractAsyncContextManager[Listening]:
    return serving_world(world, assignment=Assignment.awaited(), follows_brokers=True, **settings)
