"""What became of the records. Values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DecodingCounts:
    """What became of the records. Those of batches that were not opened are their header's."""

    batches: int = 0
    """All that were walked over."""
    rows: int = 0
    markers: int = 0
    """Records of control batches."""
    aborted: int = 0
    outside: int = 0
    """By their offset."""
    untimely: int = 0
    """By their time."""
