"""The answers of a shard on the native core, made of the same values as the reference's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlmm.errors import ImageCorrupt
from rlmm.metadata.decoding import decode_partition_key
from rlmm.metadata.ids import INT64_MAX, TopicIdPartition, Uuid, trusted_segment_id
from rlmm.metadata.image import SHARD_HEAD, SHARD_MAGIC, SHARD_VERSION
from rlmm.metadata.image_reading import read_partition_image
from rlmm.metadata.native_partitions import CorePartition
from rlmm.metadata.paging import KeptOrder, Page, PageKey
from rlmm.metadata.row import segment_of
from rlmm.metadata.shard import EpochLookup
from rlmm.metadata.varint import encode_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm_native import Core, RowListing

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.misplaced import MisplacedPartitions
    from rlmm.metadata.page_order_cache import PageOrderCache
    from rlmm.metadata.segment import SegmentMetadata


class NativeAnswers:
    partition: int
    position: int
    misplaced: MisplacedPartitions
    _core: Core
    _order_cache: PageOrderCache
    _orders: dict[bytes, dict[int | None, CoreOrder]]

    def _state(self, partition: TopicIdPartition) -> CorePartition:
        return CorePartition(self._core, partition.key)

    def partitions(self) -> Iterator[TopicIdPartition]:
        for key in self._core.keys():  # noqa: SIM118 - no mapping
            partition = decode_partition_key(key)
            assert partition is not None, key.hex()
            yield partition

    @property
    def user_partitions(self) -> int:
        return self._core.count()

    def knows(self, partition: TopicIdPartition) -> bool:
        return self._core.knows(partition.key)

    def segment(self, segment_id: SegmentId) -> SegmentMetadata | None:
        row = self._core.row(segment_id.partition.key, segment_id.uuid)
        return None if row is None else segment_of(segment_id, row)

    def segment_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        return _found(partition, self._core.row_for(partition, epoch, offset))

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        return _found(partition, self._core.next_with_txn_index(partition.key, epoch, offset))

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        return self._core.highest(partition.key, epoch)

    def segments(self, partition: TopicIdPartition) -> list[SegmentMetadata]:
        return self.listing(partition).take(INT64_MAX) or []

    def segments_of_epoch(self, partition: TopicIdPartition, epoch: int) -> list[SegmentMetadata]:
        return self.listing(partition, epoch).take(INT64_MAX) or []

    def listing(self, partition: TopicIdPartition, epoch: int | None = None) -> CoreListing:
        return CoreListing(partition, self._core.listing(partition.key, epoch))

    def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: PageKey | None = None,
        limit: int,
    ) -> Page:
        core, kept, key = self._core, self._order_cache, partition.key
        if not core.lists(key, epoch):
            return Page((), after, is_last=True)
        kept.pass_turn()
        of_partition = self._orders.setdefault(key, {})
        order = of_partition.pop(epoch, None)
        if order is None or order.is_given_up or not core.order_is_kept(key, epoch):
            if not kept.make_room([one for one in of_partition.values() if not one.is_given_up]):
                if not of_partition:
                    del self._orders[key]
                return Page((), after, is_last=False)
            order = CoreOrder(core, key, epoch)
        of_partition[epoch] = order
        kept.note_request(order)
        found = core.page(key, epoch, after, limit)
        if found is None:
            order.is_awaited = True
            return Page((), after, is_last=False)
        is_last = len(found) <= limit
        if order.is_done_with(is_first=after is None, is_last=is_last):
            order.give_up()
        segments = tuple(
            segment_of(trusted_segment_id(partition, uuid), row) for uuid, row in found[:limit]
        )
        if segments:
            after = PageKey(segments[-1].start_offset, segments[-1].id.uuid)
        if order.is_given_up:
            del of_partition[epoch]
            if not of_partition:
                del self._orders[key]
        return Page(segments, after, is_last=is_last)

    def size_of_epoch(self, partition: TopicIdPartition, epoch: int) -> int:
        return self._core.size_of_epoch(partition.key, epoch)

    def size(self, partition: TopicIdPartition) -> int:
        return self._core.size(partition.key)

    def segment_counts(self) -> tuple[int, int, int]:
        return self._core.totals()[0]

    def segment_counts_of(self, partition: TopicIdPartition) -> tuple[int, int, int]:
        return self._core.counts(partition.key)

    def epoch_view(self, partition: TopicIdPartition, epoch: int) -> EpochLookup | None:
        found = self._core.epoch_view(partition.key, epoch)
        if found is None:
            return None
        slots, others, highest = found
        return EpochLookup(
            {offset: Uuid(uuid) for offset, uuid in slots}, frozenset(map(Uuid, others)), highest
        )

    # ------------------------------------------------------------------------------ images

    def partition_image(self, partition: TopicIdPartition) -> bytes | None:
        return next((part() for part in self.freezing(partition) if part is not None), None)

    def image(self) -> bytes:
        parts = [part() for part in self.freezing() if part is not None]
        head = SHARD_HEAD.pack(SHARD_MAGIC, SHARD_VERSION, self.partition, self.position)
        sized = (encode_varint(len(part)) + part for part in parts)
        return b"".join((head, encode_varint(len(parts)), *sized))

    def freezing(
        self, partition: TopicIdPartition | None = None
    ) -> Iterator[Callable[[], bytes] | None]:
        frozen = self._core.freeze(None if partition is None else partition.key)
        if frozen is None:
            return
        while not frozen.go_on():
            yield None
        yield from (partial(frozen.image, number) for number in range(frozen.count()))

    def watermarks(self) -> Iterator[tuple[TopicIdPartition, int, int]]:
        for key, epoch, highest in self._core.watermarks():
            partition = decode_partition_key(key)
            assert partition is not None, key.hex()
            yield partition, epoch, highest

    def clearing(self) -> Iterator[None]:
        self._core.clear()
        yield  # the core frees the state in a thread of its own

    def validate(self) -> list[str]:
        found = [
            f"{'all' if key is None else decode_partition_key(key)}: {fault}"
            for key, fault in self._core.violations()
        ]
        for partition in self.partitions():
            image = self.partition_image(partition)
            assert image is not None
            try:
                read_partition_image(image)
            except ImageCorrupt as error:
                found.append(f"{partition}: {error}")
        return found

    def _totals(self) -> tuple[tuple[int, int, int], int, int | None]:
        return self._core.totals()


class CoreOrder(KeptOrder):
    __slots__ = ("_core", "_epoch", "_key")

    def __init__(self, core: Core, key: bytes, epoch: int | None) -> None:
        super().__init__()
        self._core, self._key, self._epoch = core, key, epoch
        core.order_begin(key, epoch)

    def give_up(self) -> None:
        super().give_up()
        self._core.order_drop(self._key, self._epoch)


class CoreListing:
    def __init__(self, partition: TopicIdPartition, listing: RowListing) -> None:
        self._partition = partition
        self._listing = listing

    def take(self, count: int) -> list[SegmentMetadata] | None:
        found = self._listing.take(count)
        return [
            segment_of(trusted_segment_id(self._partition, uuid), row) for uuid, row in found
        ] or None


def _found(
    partition: TopicIdPartition, found: tuple[bytes, bytes] | None
) -> SegmentMetadata | None:
    if found is None:
        return None
    return segment_of(trusted_segment_id(partition, found[0]), found[1])
