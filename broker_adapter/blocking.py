"""
Blocking clients: every verb of `broker_adapter.verbs`, for any number of threads.

The client lives on an event loop in its own thread and uses one connection. After `close` no thread
is left, except one in a name resolver. A forked process makes its own client. Where the loop does
not turn a call ends a grace after its deadline: with `AppendUncertain` where an event may be
stored, else with `Stopped`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Unpack

from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.verbs import Verbs
from rlmm.base.closing import ClosedByWith
from rlmm.base.loop_thread import BlockingCalls, LoopThread, blocking, called, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_adapter.address import Address
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.options import ReadOptions

THREAD: Final = "broker_adapter"


class BlockingVerbs(BlockingCalls[Verbs], ClosedByWith):
    """Offers `Verbs` to threads; calls are refused on a thread that runs an event loop."""

    def __init__(self, make: Callable[[], Verbs]) -> None:
        """*make* is called on the loop and returns a client, or its stand-in."""
        self._thread = LoopThread(THREAD)
        try:
            client = self._thread.call(make)
        except BaseException:
            self._thread.close()
            raise
        super().__init__(client, self._thread.wait, "RemoteLogMetadataClient there")

    add_segment = writing(Verbs.add_segment)
    update_segment = writing(Verbs.update_segment)
    put_partition_delete = writing(Verbs.put_partition_delete)
    publish_all = writing(Verbs.publish_all)

    segment_for = blocking(Verbs.segment_for)
    segments_for = blocking(Verbs.segments_for)
    segment = blocking(Verbs.segment)
    highest_offset = blocking(Verbs.highest_offset)
    next_segment_with_txn_index = blocking(Verbs.next_segment_with_txn_index)
    remote_log_size = blocking(Verbs.remote_log_size)
    partition_delete = blocking(Verbs.partition_delete)
    page = blocking(Verbs.page)
    is_ready = blocking(Verbs.is_ready)
    wait_ready = blocking(Verbs.wait_ready)

    read_token = blocking(Verbs.read_token)
    status = blocking(Verbs.status)
    ping = blocking(Verbs.ping)
    statistics = called(Verbs.statistics)

    _change = called(Verbs.on_partition_leadership_changes)
    _stop = called(Verbs.on_stop_partitions)

    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        # Generators may call this client, so they run on the caller's thread.
        self._change(list(leaders), list(followers))

    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        self._stop(list(partitions))

    def list_segments(
        self, partition: TopicIdPartition, **options: Unpack[ReadOptions]
    ) -> Iterator[SegmentMetadata]:
        return self._listed(partition, None, **options)

    def list_segments_by_epoch(
        self, partition: TopicIdPartition, epoch: int, **options: Unpack[ReadOptions]
    ) -> Iterator[SegmentMetadata]:
        return self._listed(partition, epoch, **options)

    def _listed(
        self, partition: TopicIdPartition, epoch: int | None, **options: Unpack[ReadOptions]
    ) -> Iterator[SegmentMetadata]:
        after: bytes | None = None
        while True:
            segments, after = self.page(partition, epoch, after=after, **options)
            yield from segments
            if after is None:
                return
            options = {"timeout_s": options.get("timeout_s")}

    def close(self) -> None:
        """
        Hang up and wait for the thread's end. Several threads may call it.

        Waiting calls end with `Stopped`, or `AppendUncertain` for an event that was sent.
        """
        self._thread.close(self._subject.close)


class BlockingRemoteLogMetadataClient(BlockingVerbs):
    def __init__(self, address: Address, **options: Any) -> None:
        super().__init__(lambda: RemoteLogMetadataClient(address, **options))
