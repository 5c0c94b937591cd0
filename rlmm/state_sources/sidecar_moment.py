"""
State of a running service, read piece by piece. Each page, and each user partition as a whole, is
as it was at its request, and never older than the reported positions. Only the latest answer is
kept here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_adapter.calls import page as segment_page
from broker_adapter.calls import partition_delete
from rlmm.errors import (
    InvalidArgument,
    NotPermitted,
    NotReady,
    SidecarUnavailable,
    UnknownPartition,
)
from rlmm.inspection.moment import PAGE, PartitionSummary, in_order
from rlmm.metadata.assignment import place_of
from rlmm.state_sources.sidecar_link import (
    close_image,
    list_partitions,
    open_image,
    read_image,
)
from rlmm.wire.operator_queries import PIECE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from rlmm.log.protocol import LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.state_sources.sidecar_link import SidecarLink
    from rlmm.wire.operator_queries import ImageHead

_ATTEMPTS: Final = 3
"""How often an image is begun, where it is let go of before all of it is here."""


class SidecarMoment:
    def __init__(
        self, link: SidecarLink, identity: LogIdentity, positions: Mapping[int, int]
    ) -> None:
        """*positions* are those of the requested metadata partitions."""
        self._link = link
        self.identity = identity
        self.positions = positions

    async def user_partitions(self) -> list[PartitionSummary]:
        """See `Moment`. Raises `NotPermitted` if the role may see only some of them."""
        found: list[PartitionSummary] = []
        for place in self.positions:
            after: bytes | None = None
            while True:
                page = await self._link.ask(list_partitions(place, after, PAGE))
                if not page.is_whole:
                    raise self._not_all(place)
                found += [
                    PartitionSummary(
                        one.partition, place, one.started, one.finished, one.being_deleted,
                        one.size_bytes, one.delete,
                    )
                    for one in page.summaries
                ]  # fmt: skip
                after = page.after
                if after is None:
                    break
        return in_order(found)

    async def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> AsyncIterator[list[SegmentMetadata]]:
        self._require_read(partition)
        after: bytes | None = None
        while True:
            call = segment_page(partition, epoch, after, PAGE)
            try:
                segments, after = await self._link.ask(call)
            except UnknownPartition:
                # Of one whose deletion is finished nothing is left, which is no error here.
                await self._link.ask(partition_delete(partition))
                return
            if segments:
                yield segments
            if after is None:
                return

    async def state(self, partition: TopicIdPartition) -> Shard:
        """See `Moment`: the state at the time of this call."""
        from rlmm.metadata.engines import shard_type  # noqa: PLC0415  # not for `rlmm status`

        place = self._require_read(partition)
        for _ in range(_ATTEMPTS):
            head = await self._link.ask(open_image(partition, PIECE_BYTES_MAX))
            image = await self._rest(head)
            if image is not None:
                shard = shard_type()(place, head.position)
                shard.import_partition(image)
                return shard
        msg = f"the state of {partition} was let go of by {self._link.where} before it was here"
        raise SidecarUnavailable(msg)

    async def _rest(self, head: ImageHead) -> bytes | None:
        """Read the rest of the image; `None` if a lost connection has closed it."""
        pieces, had = [head.first], len(head.first)
        if had == head.size_bytes:
            return head.first
        while had < head.size_bytes:
            try:
                pieces.append(await self._link.ask(read_image(had, PIECE_BYTES_MAX)))
            except InvalidArgument:
                return None
            had += len(pieces[-1])
        await self._link.ask(close_image())
        return b"".join(pieces)

    def _require_read(self, partition: TopicIdPartition) -> int:
        """Return the metadata partition of *partition*; raises if it was not requested."""
        place = place_of(partition, self.identity.partition_count)
        if place not in self.positions:
            msg = f"{partition}: metadata partition {place} was not read"
            raise NotReady(
                msg, reason="not-read", user_partition=str(partition), metadata_partition=place
            )
        return place

    def _not_all(self, place: int) -> NotPermitted:
        return NotPermitted(
            f"metadata partition {place} has user partitions that the service at "
            f"{self._link.where} was not given: all of them are told to the role admin alone, and "
            f"this one is {self._link.server.role}"
        )
