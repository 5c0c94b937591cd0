"""Every kind of client of `broker_adapter`, awaited in one way."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker_adapter.address import UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient, BlockingVerbs
from broker_adapter.calls import partition_of
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.stand_in import StandInService
from rlmm.errors import UnknownPartition
from rlmm.metadata.assignment import Assignment
from tests.support.builders import finished, started, tp
from tests.support.engines import World
from tests.support.server.frame_servers import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from broker_adapter.calls import Event
    from broker_adapter.settings import ClientSettings
    from broker_adapter.statistics import ClientStatistics

KINDS = ("async-unix", "sync-unix", "stand-in", "stand-in-sync")


class Threaded:
    def __init__(self, client: BlockingVerbs) -> None:
        self.blocking = client

    def list_segments(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        return self._listed(self.blocking.list_segments, *args, **options)

    def list_segments_by_epoch(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        return self._listed(self.blocking.list_segments_by_epoch, *args, **options)

    async def _listed(
        self, ask: Callable[..., Any], *args: Any, **options: Any
    ) -> AsyncIterator[Any]:
        for one in await asyncio.to_thread(lambda: list(ask(*args, **options))):
            yield one

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return asyncio.to_thread(getattr(self.blocking, name), *args, **options)

        return call


def figures_of(client: Any) -> ClientStatistics:
    living = client.blocking._subject if isinstance(client, Threaded) else client
    statistics: ClientStatistics = living.statistics()
    return statistics


async def done(answer: Any) -> Any:
    return await answer if asyncio.iscoroutine(answer) else answer


@dataclass
class Cluster:
    kind: str
    path: Any = None
    service: StandInService | None = None
    world: World | None = None
    opened: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def client(
        self, broker_id: int | None = None, settings: ClientSettings | None = None
    ) -> Any:
        service = self.service
        if service is not None and self.kind == "stand-in":
            client: Any = service.client(broker_id, settings)
        elif service is not None:
            client = Threaded(BlockingVerbs(lambda: service.client(broker_id, settings)))
        elif self.kind == "async-unix":
            address = UnixAddress(self.path)
            client = RemoteLogMetadataClient(address, broker_id=broker_id, settings=settings)
        else:
            address = UnixAddress(self.path)
            client = Threaded(
                BlockingRemoteLogMetadataClient(address, broker_id=broker_id, settings=settings)
            )
        self.opened.push_async_callback(client.close)
        return client

    async def restarted(self, broker_id: int, settings: ClientSettings | None = None) -> Any:
        if self.service is not None:
            self.service.shares.pop(broker_id, None)
        return await self.client(broker_id, settings)

    async def store_beside(self, event: Event) -> None:
        partition = partition_of(event)
        if self.world is None:
            assert self.service is not None
            self.service.shards[self.service.place_of(partition)].apply_event(event)
            return
        offset = self.world.store(event)
        client = await self.client()
        place = self.world.place(partition)
        with suppress(UnknownPartition):
            await client.partition_delete(partition, at_least={place: offset})
        await client.close()


@asynccontextmanager
async def cluster_of(kind: str, assignment: Assignment | None = None) -> AsyncIterator[Cluster]:
    """Start a service over a topic in memory for brokers or an *assignment*, or a stand-in."""
    async with AsyncExitStack() as stack:
        if kind.startswith("stand-in"):
            cluster = Cluster(kind, service=StandInService())
        else:
            world = World()
            engine = await stack.enter_async_context(
                world.engine(assignment=assignment or Assignment.awaited())
            )
            served = await stack.enter_async_context(
                listening(engine, follows_brokers=assignment is None)
            )
            cluster = Cluster(kind, path=served.path, world=world)
        await stack.enter_async_context(cluster.opened)
        yield cluster


async def led(cluster: Cluster, settings: ClientSettings | None = None) -> Any:
    client = await cluster.client(1, settings)
    await done(client.on_partition_leadership_changes([tp()], []))
    return client


async def copied(client: Any, label: str, start: int, last: int, **fields: Any) -> Any:
    await client.add_segment(started(label, start, last, **fields))
    return await client.update_segment(finished(label))
