"""The offset of the first record that is not older than a time, by the segments of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.data_source.piece_reading import first_row_offset

if TYPE_CHECKING:
    from spark_tiering.data_source.extents import PartitionListing
    from spark_tiering.data_source.piece_reading import PieceReading


def first_offset_at(held: PartitionListing, time_ms: int, reading: PieceReading) -> int | None:
    """
    That offset, as brokers look it up; None where no record is as late.

    Costs the indexes of one segment and a few records of it; more where what is late enough in a
    segment are not records.
    """
    for extent in held.extents:
        if 0 <= extent.max_timestamp_ms < time_ms:
            continue
        found = first_row_offset(extent, time_ms, reading)
        if found is not None:
            return found
    return None
