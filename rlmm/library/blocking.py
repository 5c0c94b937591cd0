"""
Blocking calls of the library, for threads. A call on an event loop, or in a forked process, is
refused.
"""

from __future__ import annotations

import os
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from rlmm.base.loop_call import LoopCall, require_own_process
from rlmm.base.loop_thread import BlockingCalls, blocking, called, writing
from rlmm.errors import InvalidArgument, Stopped
from rlmm.library.metadata_calls import MetadataCalls

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from rlmm.errors import RlmmError

T = TypeVar("T")


class BlockingMetadata(BlockingCalls[MetadataCalls]):
    """
    Offers `RemoteLogMetadata` to threads, with the same deadlines; `Stopped` once closed. Where the
    loop does not turn a call ends a grace after its deadline: with `AppendUncertain` where it was a
    write that may be stored, else with `Stopped`.
    """

    def __init__(self, metadata: MetadataCalls, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(metadata, self._wait_on_loop, "the call that is awaited")
        self._loop = loop
        self._pid = os.getpid()

    reconcile = blocking(MetadataCalls.reconcile)
    assigned = called(MetadataCalls.assigned)
    is_ready = called(MetadataCalls.is_ready)
    wait_ready = blocking(MetadataCalls.wait_ready)
    wait_all_ready = blocking(MetadataCalls.wait_all_ready)
    read_token = called(MetadataCalls.read_token)

    add_segment = writing(MetadataCalls.add_segment)
    update_segment = writing(MetadataCalls.update_segment)
    put_partition_delete = writing(MetadataCalls.put_partition_delete)
    store = writing(MetadataCalls.store)

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

    def _wait_on_loop(
        self, work: Coroutine[Any, Any, T], limit_s: float | None, lost: type[RlmmError]
    ) -> T:
        try:
            require_own_process(self._pid)
        except InvalidArgument:
            work.close()
            raise
        try:
            call = LoopCall(self._loop, work)
        except RuntimeError as error:
            raise Stopped("the event loop of the library is closed") from error
        try:
            return call.wait(limit_s, lost)
        except CancelledError as error:
            raise Stopped("the library was closed while a thread waited") from error
