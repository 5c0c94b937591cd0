"""The planning of a query, from its options to shares for tasks."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from spark_tiering.data_source.bounds import PartitionBound, asked_of, require_named
from spark_tiering.data_source.extents import MissingOffsets
from spark_tiering.data_source.listing_tier import TierLister
from spark_tiering.data_source.options import Isolation
from spark_tiering.data_source.piece_reading import PieceReading
from spark_tiering.data_source.places import ListKind
from spark_tiering.data_source.pushed_filters import EVERYTHING, PushedFilters, prune
from spark_tiering.data_source.query_coverage import (
    OffsetRange,
    cover,
    first_offset_at,
    lost_text,
    offset_of_end,
    offset_of_start,
    require_nothing_lost,
    without,
)
from spark_tiering.data_source.segment_opening import SegmentStorage
from spark_tiering.data_source.task_splits import SplitLimits, shares
from spark_tiering.data_source.transaction_search import (
    ReadState,
    TransactionDecision,
    decide,
    of_piece,
    stable_end,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.data_source.bounds import PartitionName
    from spark_tiering.data_source.extents import PartitionListing, ReadExtent, TierListing
    from spark_tiering.data_source.options import DataSourceOptions
    from spark_tiering.data_source.query_coverage import RangeCoverage
    from spark_tiering.data_source.task_splits import SegmentPiece

logger = logging.getLogger(__name__)

UNDECIDED = (
    "whether their transactions were committed stands in what is not there; "
    "isolationLevel=read_uncommitted reads them"
)


class QueryPlanner:
    """Plans reads of one set of options; for one thread."""

    def __init__(self, options: DataSourceOptions) -> None:
        self._options = options
        self._storage = SegmentStorage(options.place.store, options.place.key_ring)
        self._state = ReadState(self._storage)
        self._tier = TierLister(options)

    def listing(self) -> TierListing:
        """Raise `ConfigError` where a named topic is nowhere."""
        options = self._options
        if options.place.kind is ListKind.LOG_DIRS:
            # Large, and needed for folders alone.
            from spark_tiering.data_source.listing_folders import list_folders  # noqa: PLC0415

            found = list_folders(options.place.log_dirs, options.subscription, options.isolation)
        else:
            found = self._tier()
        for warning in found.warnings:
            logger.warning("%s", warning)
        self._require_known(found)
        return found

    def end_of(self, held: PartitionListing) -> int:
        if self._options.isolation is Isolation.COMMITTED:
            return max(held.first_offset, stable_end(held, self._state))
        return held.next_offset

    def starts(self, listing: TierListing) -> dict[PartitionName, int]:
        require_named(self._options.start, [one.name for one in listing.held])
        return {one.name: self._start_of(one) for one in listing.held}

    def ends(self, listing: TierListing) -> dict[PartitionName, int]:
        """Return the offset behind which each partition is to end, exclusive."""
        require_named(self._options.end, [one.name for one in listing.held])
        return {one.name: self._end_of(one) for one in listing.held}

    def shares(
        self,
        listing: TierListing,
        starts: Mapping[PartitionName, int],
        ends: Mapping[PartitionName, int],
        pushed: PushedFilters = EVERYTHING,
    ) -> list[tuple[SegmentPiece, ...]]:
        """Return the shares between *starts* and *ends*. Raise `DataLost` for refused losses."""
        wanted = [
            OffsetRange(one, starts[one.name], ends[one.name])
            for one in listing.held
            if one.name in starts and one.name in ends
        ]
        wanted = [one for one in wanted if pushed.wants(*one.held.name)]
        covered = [self._covered(_narrowed(one, pushed)) for one in wanted]
        lost = [one for one, _ in covered]
        if self._options.fails_on_data_loss:
            require_nothing_lost(lost)
        for one in lost:
            for missing in one.lost:
                logger.warning(
                    "%d offsets are left out: %s", missing.offsets, lost_text(one, missing)
                )
        extents: list[ReadExtent] = []
        aborted: dict[PartitionName, TransactionDecision] = {}
        for one, decided in covered:
            extents += prune(one.extents, pushed, self._options.disorder_ms)
            if decided is not None:
                aborted[one.range.held.name] = decided
        return [
            tuple(_with_aborted(piece, aborted) for piece in share)
            for share in shares(extents, self._cutting())
        ]

    def reading(self, columns: tuple[str, ...], pushed: PushedFilters = EVERYTHING) -> PieceReading:
        return PieceReading(
            self._storage,
            columns,
            self._options.window_bytes,
            self._options.checks_crc,
            pushed,
            self._options.disorder_ms,
        )

    def _cutting(self) -> SplitLimits:
        options = self._options
        return SplitLimits(
            options.partition_bytes_max, options.partition_records_max, options.min_partitions
        )

    def _start_of(self, held: PartitionListing) -> int:
        asked = asked_of(self._options.start, held.name)
        return offset_of_start(held, self._end_if_asked(held, asked), asked, self._look_up)

    def _end_of(self, held: PartitionListing) -> int:
        asked = asked_of(self._options.end, held.name)
        return offset_of_end(held, self._end_if_asked(held, asked), asked, self._look_up)

    def _end_if_asked(self, held: PartitionListing, asked: PartitionBound) -> int:
        is_edge = asked.offset is not None and asked.offset != -1
        return held.next_offset if is_edge else self.end_of(held)

    def _look_up(self, held: PartitionListing, time_ms: int) -> int | None:
        return first_offset_at(held, time_ms, self.reading(("offset",)))

    def _covered(self, wanted: OffsetRange) -> tuple[RangeCoverage, TransactionDecision | None]:
        covered = cover(wanted, wanted.held.next_offset)
        if self._options.isolation is not Isolation.COMMITTED or not covered.extents:
            return covered, None
        first = covered.extents[0].first_offset
        behind = covered.extents[-1].next_offset
        decided = decide(wanted.held, first, behind, self._state)
        lost = tuple(MissingOffsets(*offsets, UNDECIDED) for offsets in decided.undecided)
        return without(covered, lost), decided

    def _require_known(self, listing: TierListing) -> None:
        wanted = self._options.subscription
        there = {one.name for one in listing.held}
        topics = {one.topic for one in there}
        lacking = [topic for topic in wanted.topics if topic not in topics]
        lacking += [
            f"{topic}-{number}"
            for topic, numbers in wanted.assigned
            for number in numbers
            if (topic, number) not in there
        ]
        if lacking:
            msg = (
                f"nothing is there of {', '.join(lacking[:5])}{_looked_for(self._options, lacking)}"
            )
            raise ConfigError(msg)


def _looked_for(options: DataSourceOptions, lacking: list[str]) -> str:
    place = options.place
    if place.kind is not ListKind.MANIFESTS:
        return ""
    topic = lacking[0] if options.subscription.topics else lacking[0].rpartition("-")[0]
    return f"; looked for keys that begin with '{place.prefix}{topic}-'"


def _narrowed(wanted: OffsetRange, pushed: PushedFilters) -> OffsetRange:
    if wanted.is_empty:
        return wanted
    first = max(wanted.first_offset, pushed.first_offset)
    behind = min(wanted.next_offset, pushed.last_offset + 1)
    if first >= behind:
        return replace(wanted, next_offset=wanted.first_offset)
    return replace(wanted, first_offset=first, next_offset=behind)


def _with_aborted(
    piece: SegmentPiece, aborted: Mapping[PartitionName, TransactionDecision]
) -> SegmentPiece:
    extent = piece.extent
    decided = aborted.get((extent.partition.topic, extent.partition.partition))  # type: ignore[call-overload]  # a named tuple is found by any that equals it
    if decided is None:
        return piece
    wanted = of_piece(decided.aborted, extent.first_offset, extent.next_offset)
    return replace(piece, aborted=wanted)
