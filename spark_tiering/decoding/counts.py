"""Counts of decoded and dropped records. Values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DecodingCounts:
    """Counts the records by outcome. Counts of batches that were not opened are their header's."""

    batches: int = 0
    rows: int = 0
    markers: int = 0
    aborted: int = 0
    outside: int = 0
    untimely: int = 0
