"""
The library for threads: every call of `RemoteLogMetadata`, waiting for its answer.

A call on an event loop would block it, and on the library's own would wait for what only that loop
can do; it is refused, at once and by name.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError, wait
from typing import TYPE_CHECKING, TypeVar

from rlmm.errors import InvalidArgument, Stopped
from rlmm.gate.reads import PAGE_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from concurrent.futures import Future

    from rlmm.engine.statistics import EngineStatistics
    from rlmm.errors import RlmmError
    from rlmm.gate.reads import Lookup
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.paging import Page, PageKey
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.pump.writer import StoredNotAssigned, WrittenEvent
    from rlmm.snapshot.writer import FlushResult

T = TypeVar("T")

_LOOK_S = 1.0
"""How often a waiting thread looks whether the loop is still there."""


class BlockingMetadata:
    """
    What `RemoteLogMetadata` offers, to threads. Each call blocks the thread it is made on.

    Every wait has the deadline that the call has on the loop. When the library is closed meanwhile,
    calls end with `Stopped`. Closing it is for the loop alone.
    """

    def __init__(self, metadata: RemoteLogMetadata, loop: asyncio.AbstractEventLoop) -> None:
        self._metadata = metadata
        self._loop = loop

    def reconcile(self, desired: Assignment, *, timeout_s: float = 30.0) -> Mapping[int, str]:
        return self._wait(self._metadata.reconcile(desired, timeout_s=timeout_s))

    def wait_ready(self, partition: TopicIdPartition, *, timeout_s: float = 30.0) -> None:
        self._wait(self._metadata.wait_ready(partition, timeout_s=timeout_s))

    def wait_all_ready(self, *, timeout_s: float = 30.0) -> list[int]:
        return self._wait(self._metadata.wait_all_ready(timeout_s=timeout_s))

    def add_segment(
        self, segment: SegmentMetadata, *, timeout_s: float | None = None
    ) -> WrittenEvent:
        return self._wait(self._metadata.add_segment(segment, timeout_s=timeout_s))

    def update_segment(
        self, update: SegmentUpdate, *, timeout_s: float | None = None
    ) -> WrittenEvent:
        return self._wait(self._metadata.update_segment(update, timeout_s=timeout_s))

    def put_partition_delete(
        self, delete: PartitionDelete, *, timeout_s: float | None = None
    ) -> WrittenEvent:
        return self._wait(self._metadata.put_partition_delete(delete, timeout_s=timeout_s))

    def store(
        self,
        event: SegmentMetadata | SegmentUpdate | PartitionDelete,
        *,
        timeout_s: float | None = None,
    ) -> WrittenEvent | StoredNotAssigned:
        return self._wait(self._metadata.store(event, timeout_s=timeout_s))

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
        return self._wait(
            self._metadata.segment_for(
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
        return self._wait(
            self._metadata.segments_for(
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
        return self._wait(
            self._metadata.segment(
                segment_id, at_least=at_least, linearizable=linearizable, timeout_s=timeout_s
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
        return self._wait(
            self._metadata.next_segment_with_txn_index(
                partition,
                epoch,
                offset,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
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
        return self._wait(
            self._metadata.highest_offset(
                partition,
                epoch,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
            )
        )

    def segments(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> list[SegmentMetadata]:
        return self._wait(
            self._metadata.segments(
                partition,
                epoch,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
            )
        )

    def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: PageKey | None = None,
        limit: int = PAGE_MAX,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> Page:
        return self._wait(
            self._metadata.page(
                partition,
                epoch,
                after=after,
                limit=limit,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
            )
        )

    def size(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> int:
        return self._wait(
            self._metadata.size(
                partition,
                epoch,
                at_least=at_least,
                linearizable=linearizable,
                timeout_s=timeout_s,
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
        return self._wait(
            self._metadata.partition_delete(
                partition, at_least=at_least, linearizable=linearizable, timeout_s=timeout_s
            )
        )

    def is_ready(self, partition: TopicIdPartition) -> bool:
        return self._call(lambda: self._metadata.is_ready(partition))

    def assigned(self) -> Assignment:
        return self._call(self._metadata.assigned)

    def read_token(self) -> dict[int, int]:
        return self._call(self._metadata.read_token)

    def snapshot_positions(self) -> dict[int, int]:
        return self._call(self._metadata.snapshot_positions)

    def write_snapshots(self) -> FlushResult:
        return self._wait(self._metadata.write_snapshots())

    def statistics(self) -> EngineStatistics:
        return self._call(self._metadata.statistics)

    def _call(self, function: Callable[[], T]) -> T:
        """Call *function* on the loop: what it reads is changed there and nowhere else."""

        async def called() -> T:
            return function()

        return self._wait(called())

    def _wait(self, answer: Coroutine[None, None, T]) -> T:
        if _is_on_a_loop():
            answer.close()
            msg = "called on an event loop, which it would block: use the call that is awaited"
            raise InvalidArgument(msg)
        try:
            future = asyncio.run_coroutine_threadsafe(answer, self._loop)
        except RuntimeError as error:
            answer.close()
            msg = "the event loop of the library is closed"
            raise Stopped(msg) from error
        try:
            if self._is_answered(future):
                return future.result()
        except CancelledError as error:
            msg = "the library was closed while a thread waited"
            raise Stopped(msg) from error
        answer.close()
        msg = "the event loop was closed while a thread waited"
        raise Stopped(msg)

    def _is_answered(self, future: Future[T]) -> bool:
        """Wait for an answer; False where none can come: the loop was closed before it began."""
        while not wait([future], _LOOK_S).done:
            if self._loop.is_closed():
                return future.done()
        return True


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
