"""The client of a service, over a Unix socket or TCP, for programs on an event loop."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from broker_adapter.address import Address
from broker_adapter.link import ServiceLink
from broker_adapter.settings import ClientSettings
from broker_adapter.statistics import ClientCounters
from broker_adapter.verbs import Verbs
from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import UUID_BYTES, Uuid
from rlmm.wire.hello import VERSIONS, ClientHello, hello_value, read_hello

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.wire.hello import HelloAnswer

CLIENT: Final = "broker_adapter"


class RemoteLogMetadataClient(Verbs):
    """
    A client for the tiered storage metadata of one cluster, made on a running event loop.

    It connects in the background, and each call waits for the connection up to its deadline. `async
    with` closes it.
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
        Act for *broker_id* where it is given: only then may the client report partitions.

        *instance* identifies one start of the broker and is drawn anew by default. All clients of a
        broker process must have the same one, and only one of them reports the partitions: a later
        start takes the broker over, and earlier clients end in `Superseded`. *cluster_id* and
        *bootstrap* name the cluster and its address, for a service not configured with it. *token*
        holds the credentials, where the certificate does not identify the client.
        """
        if not isinstance(address, Address):
            msg = f"the address must be a UnixAddress or a TcpAddress, got {address!r}"
            raise InvalidArgument(msg)
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
        """Return the service's last answer to hello; `None` before the first one."""
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
