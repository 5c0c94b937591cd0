"""Blocking calls of the library, for threads. A call on an event loop is refused."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError, wait
from typing import TYPE_CHECKING, Any, TypeVar

from rlmm.base.loop_thread import BlockingCalls, blocking, called
from rlmm.errors import Stopped
from rlmm.library.metadata_calls import MetadataCalls

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_LOOK_S = 1.0
"""How often a waiting thread looks whether the loop is still there."""


class BlockingMetadata(BlockingCalls[MetadataCalls]):
    """Offers `RemoteLogMetadata` to threads, with the same deadlines; `Stopped` once closed."""

    def __init__(self, metadata: MetadataCalls, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(metadata, self._wait_on_loop, "the call that is awaited")
        self._loop = loop

    reconcile = blocking(MetadataCalls.reconcile)
    assigned = called(MetadataCalls.assigned)
    is_ready = called(MetadataCalls.is_ready)
    wait_ready = blocking(MetadataCalls.wait_ready)
    wait_all_ready = blocking(MetadataCalls.wait_all_ready)
    read_token = called(MetadataCalls.read_token)

    add_segment = blocking(MetadataCalls.add_segment)
    update_segment = blocking(MetadataCalls.update_segment)
    put_partition_delete = blocking(MetadataCalls.put_partition_delete)
    store = blocking(MetadataCalls.store)

    segment_for = blocking(MetadataCalls.segment_for)
    segments_for = blocking(MetadataCalls.segments_for)
    segment = blocking(MetadataCalls.segment)
    next_segment_with_txn_index = blocking(MetadataCalls.next_segment_with_txn_index)
    highest_offset = blocking(MetadataCalls.highest_offset)
    segments = blocking(MetadataCalls.segments)
    page = blocking(MetadataCalls.page)
    size = blocking(MetadataCalls.size)
    partition_delete = blocking(MetadataCalls.partition_delete)

    snapshot_positions = called(MetadataCalls.snapshot_positions)
    write_snapshots = blocking(MetadataCalls.write_snapshots)
    statistics = called(MetadataCalls.statistics)

    def _wait_on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise Stopped("the event loop of the library is closed") from error
        try:
            while not wait([future], _LOOK_S).done:
                if self._loop.is_closed() and not future.done():
                    work.close()
                    raise Stopped("the event loop was closed while a thread waited")
            return future.result()
        except CancelledError as error:
            raise Stopped("the library was closed while a thread waited") from error
