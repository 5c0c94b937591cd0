"""Reads: every question of Kafka's `RemoteLogMetadataManager`, answered without an `await`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument, NotAssigned, NotReady, RlmmError
from rlmm.gate.admission import require_known
from rlmm.gate.frame_lookups import AdmittedLookups
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, Uuid
from rlmm.metadata.paging import PageKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlmm.gate.admission import Gate
    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.paging import Page
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Listing, Shard

LOOKUPS_MAX = 10_000
"""Look-ups in one call, which holds up the event loop."""
PAGE_MAX = 1_000
"""Segments in one page: some milliseconds."""

Lookup = tuple["TopicIdPartition", int, int]
"""User partition, leader epoch, offset."""


class PartitionQueries:
    """Answers the questions that *gate* admits. Refuses a malformed question first."""

    def __init__(
        self, gate: Gate, admit: Callable[[TopicIdPartition], Shard] | None = None
    ) -> None:
        self._gate = gate
        self._admit_shard = gate.admit if admit is None else admit
        self.outcomes = gate.outcomes
        self.lookups = AdmittedLookups(gate)
        self._of_everyone: PartitionQueries | None = None

    def of_everyone(self) -> PartitionQueries:
        """Return queries for readers that may see everything stored, assigned or not."""
        if self._of_everyone is None:
            self._of_everyone = PartitionQueries(self._gate, self._gate.admit_stored)
        return self._of_everyone

    def narrowed(self, require: Callable[[TopicIdPartition], None]) -> PartitionQueries:
        """Return queries for readers that may ask only where *require* raises nothing."""

        def admit(partition: TopicIdPartition) -> Shard:
            require(partition)
            return self._admit_shard(partition)

        return PartitionQueries(self._gate, admit)

    def _admit(
        self,
        partition: TopicIdPartition,
        require: Callable[[Shard, TopicIdPartition], None] = require_known,
    ) -> Shard:
        try:
            shard = self._admit_shard(partition)
            require(shard, partition)
        except RlmmError as error:
            self.outcomes.refused(error)
            raise
        self.outcomes.answered += 1
        return shard

    def segment_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        _require_epoch(epoch)
        _require_offset(offset)
        return self._admit(partition).segment_for(partition, epoch, offset)

    def row_for(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> tuple[bytes, bytes] | None:
        """Answer `segment_for` as id and row, at a third of the cost."""
        if type(epoch) is not int or not 0 <= epoch <= INT32_MAX:  # a call each is noticed here
            _require_epoch(epoch)
        if type(offset) is not int or not 0 <= offset <= INT64_MAX:
            _require_offset(offset)
        try:
            shard = self._admit_shard(partition)
            found = shard.row_for(partition, epoch, offset)
            if found is None:  # only then may it be that nothing was ever stored
                require_known(shard, partition)
        except RlmmError as error:
            self.outcomes.refused(error)
            raise
        self.outcomes.answered += 1
        if shard.core is not None:
            self.lookups.hand_over(partition, shard, shard.core)
        return found

    def segments_for(self, lookups: Iterable[Lookup]) -> list[SegmentMetadata | RlmmError | None]:
        """Return an answer for each look-up, in order; a refused one has its error in its place."""
        lookups = list(lookups)
        if len(lookups) > LOOKUPS_MAX:
            msg = f"{len(lookups)} look-ups in one call, allowed are {LOOKUPS_MAX}"
            raise InvalidArgument(msg)
        answers: list[SegmentMetadata | RlmmError | None] = []
        for partition, epoch, offset in lookups:
            try:
                answers.append(self.segment_for(partition, epoch, offset))
            except RlmmError as error:
                answers.append(error.with_traceback(None))
        return answers

    def segment(self, segment_id: SegmentId) -> SegmentMetadata | None:
        return self._admit(segment_id.partition).segment(segment_id)

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        """Return the first finished segment from *offset* on that may have aborted transactions."""
        _require_epoch(epoch)
        _require_offset(offset)
        return self._admit(partition).next_segment_with_txn_index(partition, epoch, offset)

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        _require_epoch(epoch)
        return self._admit(partition).highest_offset(partition, epoch)

    def listing(self, partition: TopicIdPartition, epoch: int | None = None) -> Listing:
        """List `segments` or `segments_of_epoch` of this moment in pieces; large ones take 1 s."""
        if epoch is not None:
            _require_epoch(epoch)
        return self._admit(partition).listing(partition, epoch)

    def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: PageKey | None = None,
        limit: int = PAGE_MAX,
    ) -> Page:
        """Return at most *limit* segments after *after*; `Shard.page` states the guarantees."""
        if epoch is not None:
            _require_epoch(epoch)
        if type(limit) is not int or not 1 <= limit <= PAGE_MAX:
            msg = f"a page has 1 to {PAGE_MAX} segments, got {limit!r}"
            raise InvalidArgument(msg)
        if after is not None:
            _require_page_key(after)
        return self._admit(partition).page(partition, epoch, after=after, limit=limit)

    def segments(self, partition: TopicIdPartition) -> list[SegmentMetadata]:
        return self._admit(partition).segments(partition)

    def segments_of_epoch(self, partition: TopicIdPartition, epoch: int) -> list[SegmentMetadata]:
        _require_epoch(epoch)
        return self._admit(partition).segments_of_epoch(partition, epoch)

    def size_of_epoch(self, partition: TopicIdPartition, epoch: int) -> int:
        _require_epoch(epoch)
        return self._admit(partition).size_of_epoch(partition, epoch)

    def size(self, partition: TopicIdPartition) -> int:
        return self._admit(partition).size(partition)

    def partition_delete(self, partition: TopicIdPartition) -> PartitionDelete | None:
        """Return the last partition-delete event, even where nothing else is left."""
        return self._admit(partition, _require_heard_of).partition_delete(partition)

    def state_of(self, partition: TopicIdPartition) -> Shard:
        """Return the shard that has events of *partition*, to be read at once and not changed."""
        return self._admit(partition, _require_heard_of)

    def place(self, place: int) -> Shard:
        """Return the shard of metadata partition *place*; callers show ready partitions only."""
        return self._gate.admit_place(place)

    def is_ready(self, partition: TopicIdPartition) -> bool:
        """False also where *partition* is not assigned here."""
        try:
            self._admit_shard(partition)
        except (NotAssigned, NotReady):
            return False
        return True


def _require_heard_of(shard: Shard, partition: TopicIdPartition) -> None:
    """Admit as `require_known` does, and a deleted partition, too."""
    if not shard.knows(partition):
        require_known(shard, partition)


def _require_epoch(epoch: int) -> None:
    if type(epoch) is not int or not 0 <= epoch <= INT32_MAX:
        msg = f"a leader epoch is a number from 0 to {INT32_MAX}, got {epoch!r}"
        raise InvalidArgument(msg)


def _require_page_key(after: object) -> None:
    if not isinstance(after, PageKey) or not isinstance(after.uuid, Uuid):
        msg = f"a page goes on behind the key of the one before, got {after!r}"
        raise InvalidArgument(msg)
    _require_offset(after.start_offset)


def _require_offset(offset: int) -> None:
    if type(offset) is not int or not 0 <= offset <= INT64_MAX:
        msg = f"an offset is a number from 0 to {INT64_MAX}, got {offset!r}"
        raise InvalidArgument(msg)
