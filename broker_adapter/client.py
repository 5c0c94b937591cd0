"""
The client of a service for programs on an event loop.

A task keeps one connection, over a Unix socket or TCP, until `close`. Nothing blocks, and nothing
is left afterwards.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from broker_adapter.link import ServiceLink
from broker_adapter.settings import ClientSettings
from broker_adapter.statistics import ClientCounters
from broker_adapter.verbs import Verbs
from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import UUID_BYTES, Uuid
from rlmm.wire.hello import VERSIONS, ClientHello, hello_value, read_hello

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_adapter.address import Address
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.wire.hello import HelloAnswer

CLIENT: Final = "broker_adapter"


class RemoteLogMetadataClient(Verbs):
    """
    A client of a service, for the metadata of one cluster's tiered storage. It is made on a running
    event loop and connects in the background: calls wait for the connection, each up to its
    deadline. `async with` closes it.
    """

    def __init__(
        self,
        address: Address,
        *,
        token: str | None = None,
        cluster_id: str | None = None,
        broker_id: int | None = None,
        instance: Uuid | None = None,
        bootstrap: str | None = None,
        client: str = CLIENT,
        settings: ClientSettings | None = None,
    ) -> None:
        """
        A client with a *broker_id* acts for that broker: the service answers for the partitions
        that the broker reports, and the client may report them. *instance* identifies one start of
        the broker and is drawn anew where it is not given. Several clients of one broker process
        must be given the same *instance*, and only one of them reports the partitions: a client
        that connects later as another start takes the broker over, and the earlier clients end in
        `Superseded`. *cluster_id* names the cluster whose metadata is asked for, and *bootstrap*
        its address, for a service that is not configured with it. *token* holds the credentials,
        where the certificate does not identify the client.
        """
        if broker_id is not None and instance is None:
            instance = Uuid(os.urandom(UUID_BYTES))
        hello = ClientHello(VERSIONS, client, token, cluster_id, broker_id, instance, bootstrap)
        read_hello(hello_value(hello))
        settings = settings or ClientSettings()
        figures = ClientCounters()
        self._link = ServiceLink(address, hello, settings, figures)
        super().__init__(self._link, settings, figures)
        self._hello = hello
        self._running = asyncio.get_running_loop().create_task(
            self._link.run(), name=f"connection to {address}"
        )

    @property
    def server(self) -> HelloAnswer | None:
        """
        Return the service's last answer to hello; `None` before the service was first reached.
        """
        return self._link.server

    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        self._require_broker()
        super().on_partition_leadership_changes(leaders, followers)

    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        self._require_broker()
        super().on_stop_partitions(partitions)

    def _require_broker(self) -> None:
        if self._hello.broker_id is None:
            msg = "only a broker leads and follows partitions: this client was given no broker_id"
            raise InvalidArgument(msg)

    async def close(self) -> None:
        await super().close()
        self._running.cancel()
        await asyncio.wait([self._running])
