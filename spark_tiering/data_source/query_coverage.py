"""The coverage of a query: by partition a range of offsets, its extents, lost offsets. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlmm.errors import DataLost
from spark_tiering.data_source.bounds import EARLIEST, LATEST, NoOffset, PartitionBound
from spark_tiering.data_source.extents import MissingOffsets
from spark_tiering.data_source.piece_reading import first_row_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spark_tiering.data_source.extents import PartitionListing, ReadExtent
    from spark_tiering.data_source.piece_reading import PieceReading


EXPIRED = "they lie below all that is there: expired, or never tiered"
NOT_THERE_YET = "they lie behind all that is there: not tiered yet, or never written"
SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets [first_offset, next_offset) of one partition; none where they are equal."""

    held: PartitionListing
    first_offset: int
    next_offset: int

    @property
    def is_empty(self) -> bool:
        return self.next_offset <= self.first_offset


@dataclass(frozen=True, slots=True)
class RangeCoverage:
    range: OffsetRange
    extents: tuple[ReadExtent, ...]
    lost: tuple[MissingOffsets, ...] = ()


def offset_of_start(
    held: PartitionListing,
    end_offset: int,
    asked: PartitionBound,
    look_up: Callable[[PartitionListing, int], int | None],
) -> int:
    """Return a start, at most *end_offset*; raises `DataLost` for no record as late, by option."""
    if asked.time_ms is None:
        return _edge(held, end_offset, asked.offset)
    found = look_up(held, asked.time_ms)
    if found is not None:
        return min(found, end_offset)
    if asked.no_offset is NoOffset.ERROR:
        msg = (
            f"{held.name}: no record is as late as {asked.time_ms} ms; with "
            "startingOffsetsByTimestampStrategy=latest nothing of it would be read"
        )
        raise DataLost(msg)
    return end_offset


def offset_of_end(
    held: PartitionListing,
    end_offset: int,
    asked: PartitionBound,
    look_up: Callable[[PartitionListing, int], int | None],
) -> int:
    """Return the exclusive end offset; where no record is as late, it is the latest."""
    if asked.time_ms is None:
        return _edge(held, end_offset, asked.offset)
    found = look_up(held, asked.time_ms)
    return end_offset if found is None else min(found, end_offset)


def _edge(held: PartitionListing, end_offset: int, offset: int | None) -> int:
    if offset == EARLIEST:
        return held.first_offset
    return end_offset if offset in (LATEST, None) else offset


def cover(wanted: OffsetRange, end_offset: int, why_end: str = NOT_THERE_YET) -> RangeCoverage:
    """Return the extents and lost offsets of a range; an empty one in the tier loses nothing."""
    held, first, behind = wanted.held, wanted.first_offset, wanted.next_offset
    lost = []
    if first < held.first_offset:
        lost.append(MissingOffsets(first, max(min(behind, held.first_offset), first), EXPIRED))
        first = held.first_offset
    if max(first, behind) > end_offset:
        lost.append(
            MissingOffsets(max(min(first, behind), end_offset), max(first, behind), why_end)
        )
        behind = min(behind, end_offset)
    if first >= behind:
        return RangeCoverage(wanted, (), tuple(one for one in lost if one.offsets > 0))
    extents = tuple(
        cut for extent in held.extents if (cut := extent.cut(first, behind)) is not None
    )
    lost += list(_between(held, first, behind))
    lost.sort(key=lambda one: one.first_offset)
    return RangeCoverage(wanted, extents, tuple(one for one in lost if one.offsets > 0))


def without(covered: RangeCoverage, lost: Sequence[MissingOffsets]) -> RangeCoverage:
    extents = list(covered.extents)
    for one in lost:
        extents = [
            cut
            for extent in extents
            for cut in (
                extent.cut(extent.first_offset, one.first_offset),
                extent.cut(one.next_offset, extent.next_offset),
            )
            if cut is not None
        ]
    every = sorted((*covered.lost, *lost), key=lambda one: one.first_offset)
    return replace(covered, extents=tuple(extents), lost=tuple(every))


def _between(held: PartitionListing, first: int, behind: int) -> Iterable[MissingOffsets]:
    for one in held.missing:
        low, high = max(first, one.first_offset), min(behind, one.next_offset)
        if low < high:
            yield MissingOffsets(low, high, one.why)


def require_nothing_lost(covered: Iterable[RangeCoverage]) -> None:
    """Raise `DataLost` where something is, naming the first few."""
    told = [lost_text(one, missing) for one in covered for missing in one.lost]
    if told:
        more = f", and {len(told) - SHOWN_MAX} more ranges" if len(told) > SHOWN_MAX else ""
        msg = (
            f"{'; '.join(told[:SHOWN_MAX])}{more}; with failOnDataLoss=false what is there would "
            "be read"
        )
        raise DataLost(msg)


def lost_text(covered: RangeCoverage, missing: MissingOffsets) -> str:
    last = missing.next_offset - 1
    return f"{covered.range.held.name}: no offsets {missing.first_offset} to {last}: {missing.why}"


def first_offset_at(held: PartitionListing, time_ms: int, reading: PieceReading) -> int | None:
    """Return the first offset at *time_ms*, as brokers look it up; None for a later time."""
    for extent in held.extents:
        if 0 <= extent.max_timestamp_ms < time_ms:
            continue
        found = first_row_offset(extent, time_ms, reading)
        if found is not None:
            return found
    return None
