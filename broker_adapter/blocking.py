"""
The same client for threads: every verb, waiting for its answer.

The client lives on an event loop in a thread of its own; any number of threads may ask at once, and
all of it goes over the one connection. When it is closed no thread is left, but one that a resolver
of names may hold, until that answers. It belongs to the process that made it: one that is forked
off makes its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from broker_adapter.client import RemoteLogMetadataClient
from rlmm.base.own_loop import OwnLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from broker_adapter.address import Address
    from broker_adapter.calls import Lookup, SegmentPage
    from broker_adapter.statistics import ClientStatistics
    from broker_adapter.verbs import Verbs
    from rlmm.errors import RlmmError
    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.options import Unassigned
    from rlmm.wire.values import WriteAnswer

THREAD: Final = "broker_adapter"


class BlockingVerbs:
    """
    What `broker_adapter.verbs.Verbs` offers, to threads.

    Each call blocks the thread it is made on, up to its deadline; see there for what each means. On
    a thread that runs an event loop a call is refused, since it would block that loop.
    """

    def __init__(self, make: Callable[[], Verbs]) -> None:
        """Over what *make* makes on the loop: a client, or its stand-in."""
        self._own: OwnLoop[Verbs] = OwnLoop(THREAD, make)
        self._client = self._own.living

    # --------------------------------------------------------------------------------- writes

    def add_segment(
        self,
        segment: SegmentMetadata,
        *,
        unassigned: Unassigned = "refuse",
        timeout_s: float | None = None,
    ) -> WriteAnswer:
        return self._own.wait(
            self._client.add_segment(segment, unassigned=unassigned, timeout_s=timeout_s)
        )

    def update_segment(
        self,
        update: SegmentUpdate,
        *,
        unassigned: Unassigned = "refuse",
        timeout_s: float | None = None,
    ) -> WriteAnswer:
        return self._own.wait(
            self._client.update_segment(update, unassigned=unassigned, timeout_s=timeout_s)
        )

    def put_partition_delete(
        self,
        delete: PartitionDelete,
        *,
        unassigned: Unassigned = "refuse",
        timeout_s: float | None = None,
    ) -> WriteAnswer:
        return self._own.wait(
            self._client.put_partition_delete(delete, unassigned=unassigned, timeout_s=timeout_s)
        )

    # ------------------------------------------------------------------------------ questions

    def segment_for(
        self,
        partition: TopicIdPartition,
        epoch: int,
        offset: int,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> SegmentMetadata | None:
        return self._own.wait(
            self._client.segment_for(
                partition,
                epoch,
                offset,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
            )
        )

    def segments_for(
        self,
        lookups: Iterable[Lookup],
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> list[SegmentMetadata | RlmmError | None]:
        return self._own.wait(
            self._client.segments_for(
                lookups, at_least=at_least, linearizable=linearizable, timeout_s=timeout_s
            )
        )

    def segment(
        self,
        segment_id: SegmentId,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> SegmentMetadata | None:
        return self._own.wait(
            self._client.segment(
                segment_id, at_least=at_least, linearizable=linearizable, timeout_s=timeout_s
            )
        )

    def highest_offset(
        self,
        partition: TopicIdPartition,
        epoch: int,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> int | None:
        return self._own.wait(
            self._client.highest_offset(
                partition, epoch, at_least=at_least, linearizable=linearizable, timeout_s=timeout_s
            )
        )

    def next_segment_with_txn_index(
        self,
        partition: TopicIdPartition,
        epoch: int,
        offset: int,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> SegmentMetadata | None:
        return self._own.wait(
            self._client.next_segment_with_txn_index(
                partition,
                epoch,
                offset,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
            )
        )

    def remote_log_size(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> int:
        return self._own.wait(
            self._client.remote_log_size(
                partition, epoch, at_least=at_least, linearizable=linearizable, timeout_s=timeout_s
            )
        )

    def partition_delete(
        self,
        partition: TopicIdPartition,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> PartitionDelete | None:
        return self._own.wait(
            self._client.partition_delete(
                partition, at_least=at_least, linearizable=linearizable, timeout_s=timeout_s
            )
        )

    def list_segments(
        self,
        partition: TopicIdPartition,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> Iterator[SegmentMetadata]:
        return self._listed(partition, None, at_least, timeout_s, linearizable=linearizable)

    def list_segments_by_epoch(
        self,
        partition: TopicIdPartition,
        epoch: int,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> Iterator[SegmentMetadata]:
        return self._listed(partition, epoch, at_least, timeout_s, linearizable=linearizable)

    def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: bytes | None = None,
        limit: int | None = None,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> SegmentPage:
        return self._own.wait(
            self._client.page(
                partition,
                epoch,
                after=after,
                limit=limit,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
            )
        )

    def is_ready(self, partition: TopicIdPartition) -> bool:
        return self._own.wait(self._client.is_ready(partition))

    def wait_ready(self, partition: TopicIdPartition, *, timeout_s: float | None = None) -> None:
        self._own.wait(self._client.wait_ready(partition, timeout_s=timeout_s))

    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        led, followed = list(leaders), list(followers)
        self._own.call(lambda: self._client.on_partition_leadership_changes(led, followed))

    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        stopped = list(partitions)
        self._own.call(lambda: self._client.on_stop_partitions(stopped))

    def read_token(self, *, timeout_s: float | None = None) -> dict[int, int]:
        return self._own.wait(self._client.read_token(timeout_s=timeout_s))

    def status(self, *, timeout_s: float | None = None) -> Mapping[object, object]:
        return self._own.wait(self._client.status(timeout_s=timeout_s))

    def ping(self, *, timeout_s: float | None = None) -> None:
        self._own.wait(self._client.ping(timeout_s=timeout_s))

    def statistics(self) -> ClientStatistics:
        return self._own.call(self._client.statistics)

    # ------------------------------------------------------------------------------- the end

    def close(self) -> None:
        """
        Hang up, and return when the thread is over. Whoever waits is told `Stopped`, or
        `AppendUncertain` of an event that was sent. Once is enough, also from several threads.
        """
        self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _listed(
        self,
        partition: TopicIdPartition,
        epoch: int | None,
        at_least: Mapping[int, int] | None,
        timeout_s: float | None,
        *,
        linearizable: bool,
    ) -> Iterator[SegmentMetadata]:
        after: bytes | None = None
        while True:
            segments, after = self.page(
                partition,
                epoch,
                after=after,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
            )
            yield from segments
            if after is None:
                return
            at_least, linearizable = None, False


class BlockingRemoteLogMetadataClient(BlockingVerbs):
    """A client of a service, for threads. As `RemoteLogMetadataClient`, with its options."""

    def __init__(self, address: Address, **options: Any) -> None:
        super().__init__(lambda: RemoteLogMetadataClient(address, **options))
