"""
Operator queries: the user partitions of a metadata partition, and the state image of one.

Both take several turns of the event loop, and a client has one of them in work at a time: hundreds
that wait would all work in each turn. Invariant: an answer was true at one admitted moment: the
gate admits once more at the end, and nothing awaits after that.
"""

from __future__ import annotations

import asyncio
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from rlmm.base.threads import in_background
from rlmm.errors import InvalidArgument, NotReady, TooBusy
from rlmm.log.replay_progress import NotReadyReason
from rlmm.sidecar.waiting_requests import while_served
from rlmm.wire.operator_queries import (
    ImageHead,
    PartitionCounts,
    SummaryPage,
    image_head_value,
    summary_page_value,
)

if TYPE_CHECKING:
    from rlmm.gate.reads import PartitionQueries
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard
    from rlmm.sidecar.session import ClientSession
    from rlmm.sidecar.settings import SidecarSettings
    from rlmm.sidecar.statistics import FrameServerCounters

PAGE_MAX: Final = 400
"""User partitions of one page, whose figures take about a millisecond."""
_PIECE: Final = 500
"""User partitions that are compared between two turns of the event loop."""

IMAGES_SHARE: Final = 2
"""Images may use one part in so many of the memory for waiting requests."""
IN_PLACE_SEGMENTS: Final = 250
"""Larger images are made in a thread; these take below a millisecond."""
SEGMENT_BYTES: Final = 96
"""Estimate for a segment in an image that is not made yet."""
AROUND_BYTES: Final = 4 * 1024
IDLE_S: Final = 60.0


async def list_partitions(
    session: ClientSession, place: int, after: bytes | None, limit: int, bytes_max: int
) -> object:
    """Return the user partitions of metadata partition *place* with keys above *after*."""
    reads, count_max = session.reads(), min(limit, PAGE_MAX)
    async with session.long_turn:
        await asyncio.sleep(0)  # the one before has used up its turn
        with while_served(session, session.engine()):
            while True:
                shard = reads.place(place)
                found = await _lowest(shard, after, count_max + 1)
                if reads.place(place) is shard:
                    break
        return summary_page_value(_page(reads, shard, found, count_max, bytes_max))


async def _lowest(shard: Shard, after: bytes | None, count: int) -> list[TopicIdPartition]:
    """Return the *count* lowest user partitions above *after*; other tasks run in between."""
    lowest: list[tuple[bytes, TopicIdPartition]] = []
    behind = b"" if after is None else after
    for number, partition in enumerate(shard.partitions(), 1):
        key = partition.key
        if key > behind:
            lowest.append((key, partition))
        if not number % _PIECE:
            lowest = nsmallest(count, lowest)
            await asyncio.sleep(0)
    return [partition for _, partition in nsmallest(count, lowest)]


def _page(
    reads: PartitionQueries,
    shard: Shard,
    found: list[TopicIdPartition],
    count_max: int,
    bytes_max: int,
) -> SummaryPage:
    """Return the first of *found* that fit, without those that the client may not see."""
    summaries: list[PartitionCounts] = []
    size, hidden, last = 0, 0, b""
    for number, partition in enumerate(found):
        summary = PartitionCounts(
            partition,
            *shard.segment_counts_of(partition),
            shard.size(partition),
            shard.partition_delete(partition),
        )
        size += summary.wire_bytes
        if number and (number == count_max or size > bytes_max):
            return SummaryPage(shard.position, not hidden, summaries, last)
        last = partition.key
        if reads.is_ready(partition):
            summaries.append(summary)
        else:
            hidden += 1
    return SummaryPage(shard.position, not hidden, summaries, None)


class OpenImage:
    __slots__ = ("_data", "_figures", "_held_bytes", "_idle", "_is_being_made", "_settings")

    def __init__(self, settings: SidecarSettings, figures: FrameServerCounters) -> None:
        self._settings = settings
        self._figures = figures
        self._data: bytes | None = None
        self._is_being_made = False
        self._held_bytes = 0
        self._idle: asyncio.TimerHandle | None = None

    async def open(
        self, session: ClientSession, partition: TopicIdPartition, bytes_max: int
    ) -> object:
        """Make the image of *partition*, return its first bytes, keep it if there are more."""
        if self._is_being_made:
            raise TooBusy("an image is being made for this connection, one at a time is")
        self.close()
        self._is_being_made = True
        try:
            async with session.long_turn:
                await asyncio.sleep(0)  # the one before has used up its turn
                with while_served(session, session.engine()):
                    position, data = await self._make(session, partition)
        except BaseException:
            self._hold(0)
            raise
        finally:
            self._is_being_made = False
        first = data[:bytes_max]
        if len(first) < len(data):
            self._data = data
            self._note_asked()
        else:
            self._hold(0)
        return image_head_value(ImageHead(position, len(data), first))

    async def _make(self, session: ClientSession, partition: TopicIdPartition) -> tuple[int, bytes]:
        reads, engine = session.reads(), session.engine()
        shard = reads.state_of(partition)
        segments = sum(shard.segment_counts_of(partition))
        self._require_room(partition, AROUND_BYTES + SEGMENT_BYTES * segments)
        frozen = await engine.freeze(engine.place_of(partition), partition)
        if reads.state_of(partition) is not shard or frozen is None or not frozen.parts:
            raise NotReady(
                f"{partition}: its state has changed hands, it is to be asked for again",
                reason=NotReadyReason.LOADING,
                user_partition=str(partition),
                metadata_partition=shard.partition,
            )
        position, (make,) = frozen.position, frozen.parts
        if segments <= IN_PLACE_SEGMENTS:
            data = make()
        else:
            data = await in_background(lambda _: make(), "sidecar: image")
        self._require_room(partition, len(data))
        return position, data

    def read(self, offset: int, bytes_max: int) -> bytes:
        if self._data is None:
            msg = f"no image is open here, or it was let go of after {IDLE_S:.0f} s: open it anew"
            raise InvalidArgument(msg)
        self._note_asked()
        return self._data[offset : offset + bytes_max]

    def close(self) -> None:
        self._data = None
        if not self._is_being_made:
            self._hold(0)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _note_asked(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self.close)

    def _require_room(self, partition: TopicIdPartition, size: int) -> None:
        """Hold *size* bytes; refuse them where there is no room, now or ever."""
        figures, total_max = self._figures, self._settings.waiting_bytes_total_max
        more, room = size - self._held_bytes, total_max // IMAGES_SHARE
        if size > room:
            msg = (
                f"the state image of {partition} has about {size} bytes, "
                f"sidecar.waiting_bytes_total_max allows {room}: list its segments by page"
            )
            raise InvalidArgument(msg)
        if figures.image_bytes + more > room or figures.waiting_bytes + more > total_max:
            msg = f"state images of {figures.image_bytes} bytes are open, no more may: ask later"
            raise TooBusy(msg)
        self._hold(size)

    def _hold(self, size: int) -> None:
        more, self._held_bytes = size - self._held_bytes, size
        self._figures.image_bytes += more
        self._figures.waiting_bytes += more
