"""The metadata by a service; a job that comes as a broker is first assigned its partitions."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from broker_adapter.address import TcpAddress, UnixAddress, tls_context, token_in
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from rlmm.errors import (
    ConfigError,
    InvalidArgument,
    NotReady,
    ProtocolError,
    RlmmError,
    SidecarUnavailable,
    UnknownPartition,
)
from rlmm.metadata.ids import Uuid
from spark_tiering.tier_metadata.image import ATTEMPTS, by_place, take_images
from spark_tiering.tier_metadata.protocol import only
from spark_tiering.tier_metadata.reachability import CONNECT_S, PATIENCE_S, require_reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from broker_adapter.address import Address
    from broker_adapter.blocking import BlockingVerbs
    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.values import WriteAnswer
    from spark_tiering.copy_plan.inputs import MetadataImage
    from spark_tiering.tier_metadata.settings import SidecarAccess

CLIENT: Final = "spark_tiering"
_LEAST_S: Final = 0.001
_PAUSE_S: Final = 0.1
_FAREWELL_S: Final = 2.0


class SidecarMetadata:
    def __init__(self, client: BlockingVerbs, *, is_broker: bool, timeout_s: float) -> None:
        """Wait until the service knows its log, else `NotReady`; *client* closes with this."""
        self._client = client
        self._is_broker = is_broker
        self._assigned: dict[TopicIdPartition, None] = {}
        try:
            status = self._identity(time.monotonic() + timeout_s)
            self.cluster_id = str(status["cluster_id"])
            self.topic_id = Uuid.parse(str(status["topic_id"]))
            self.partition_count = int(str(status["partition_count"]))
        except BaseException:
            client.close()
            raise

    def _identity(self, deadline_s: float) -> Mapping[object, object]:
        pause = threading.Event()
        trouble: NotReady | None = None
        while True:
            try:
                status = self._client.status(timeout_s=max(_LEAST_S, deadline_s - time.monotonic()))
            except SidecarUnavailable as error:
                # The last question may have had too little time: what a service that is still there
                # said before is better than silence.
                if trouble is not None and self._client.statistics().is_connected:
                    raise trouble from error
                raise
            if status.get("partition_count") is not None:
                return status
            msg = f"the service has not reached its log: {status.get('last_trouble')}"
            trouble = NotReady(msg, reason="connecting")
            if time.monotonic() >= deadline_s:
                raise trouble
            pause.wait(_PAUSE_S)

    def image(
        self,
        partitions: Sequence[TopicIdPartition],
        epochs: Mapping[TopicIdPartition, Sequence[int]],
        timeout_s: float,
    ) -> MetadataImage:
        self._assign(partitions)
        places = by_place(partitions, self.partition_count)
        patience_s = timeout_s / (ATTEMPTS * max(1, len(places)))
        asked = _Questions(self._client, time.monotonic() + timeout_s, patience_s)
        images = take_images(asked, partitions, epochs, self.partition_count)
        return images.of(self)

    def segment(self, segment_id: SegmentId, timeout_s: float) -> SegmentMetadata | None:
        self._assign([segment_id.partition])
        try:
            return self._client.segment(segment_id, linearizable=True, timeout_s=timeout_s)
        except UnknownPartition:
            return None

    def _assign(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Be assigned *partitions*, where this comes as a broker."""
        if not self._is_broker:
            return
        new = [one for one in dict.fromkeys(partitions) if one not in self._assigned]
        if new:
            self._client.on_partition_leadership_changes([], new)
            self._assigned.update(dict.fromkeys(new))

    def publish(self, event: SegmentMetadata | SegmentUpdate, timeout_s: float) -> WriteAnswer:
        return only(self.publish_all([event], timeout_s))

    def publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[WriteAnswer | RlmmError]:
        self._assign(event.id.partition for event in events)
        return self._client.publish_all(events, timeout_s=timeout_s)

    def put_partition_delete(self, delete: PartitionDelete, timeout_s: float) -> WriteAnswer:
        self._assign([delete.partition])
        return self._client.put_partition_delete(delete, timeout_s=timeout_s)

    def close(self) -> None:
        if self._assigned:
            told, self._assigned = list(self._assigned), {}
            with suppress(RlmmError):
                self._client.on_stop_partitions(told)
                self._client.ping(timeout_s=_FAREWELL_S)  # answered behind what was said
        self._client.close()


class _Questions:
    """Questions under one deadline; a partition behind waits *patience_s* at first."""

    def __init__(self, client: BlockingVerbs, deadline_s: float, patience_s: float) -> None:
        self._client = client
        self._deadline_s = deadline_s
        self._patience_s = patience_s
        self._asked: set[TopicIdPartition] = set()

    @property
    def _left_s(self) -> float:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            msg = "the metadata was not read in time"
            raise NotReady(msg, reason="behind")
        return left_s

    def catch_up(self, partition: TopicIdPartition) -> None:
        wait_s = self._left_s if partition in self._asked else min(self._left_s, self._patience_s)
        self._asked.add(partition)
        try:
            self._client.partition_delete(partition, linearizable=True, timeout_s=wait_s)
        except UnknownPartition:
            return
        except SidecarUnavailable as error:
            # The last of several attempts had no time; a service that answers `ping` is there.
            self._client.ping(timeout_s=_FAREWELL_S)
            msg = f"{partition}: its metadata was not caught up with in {wait_s:.1f} s"
            raise NotReady(msg, reason="behind", user_partition=str(partition)) from error

    def position(self, place: int) -> int:
        token = self._client.read_token(timeout_s=self._left_s)
        if place not in token:
            msg = f"metadata partition {place} is not read by the service any more"
            raise NotReady(msg, reason="loading", metadata_partition=place)
        return token[place] + 1

    def partition_delete(self, partition: TopicIdPartition) -> PartitionDelete | None:
        return self._client.partition_delete(partition, timeout_s=self._left_s)

    def segments(self, partition: TopicIdPartition) -> Iterator[SegmentMetadata]:
        return self._client.list_segments(partition, timeout_s=self._left_s)

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        return self._client.highest_offset(partition, epoch, timeout_s=self._left_s)


def open_sidecar(access: SidecarAccess) -> SidecarMetadata:
    """Open an access; `ConfigError` for bad files, `SidecarUnavailable` if nothing listens."""
    options: dict[str, Any] = {
        "token": token_in(access.token_file),
        "cluster_id": access.cluster_id or None,
        "broker_id": access.broker_id,
        "client": CLIENT,
    }
    address, timeout_s = _address(access), access.timeout_ms / 1_000
    require_reached(
        address, patience_s=min(PATIENCE_S, timeout_s), connect_s=min(CONNECT_S, timeout_s)
    )
    try:
        client = BlockingRemoteLogMetadataClient(address, **options)
    except InvalidArgument as error:
        raise ConfigError(str(error)) from error
    try:
        return SidecarMetadata(client, is_broker=access.broker_id is not None, timeout_s=timeout_s)
    except ProtocolError as error:
        msg = f"{address} does not speak as brokers ask, is it the port for HTTP? {error}"
        raise ProtocolError(msg) from error


def _address(access: SidecarAccess) -> Address:
    path = access.socket_path
    if path is not None:
        return UnixAddress(path)
    host, port = access.host_port
    files = access.ca_file, access.certificate_file, access.key_file
    return TcpAddress(
        host,
        port,
        tls_context(*files) if access.wants_tls else None,
        plaintext_token=access.is_plaintext_token,
    )
