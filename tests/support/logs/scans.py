"""What a scan of a log file found, as plain values that can be compared."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlmm.partition_log.index import SegmentIndex
    from rlmm.partition_log.scan import ScanResult


def contents_of(found: ScanResult) -> dict[str, Any]:
    values = {one.name: getattr(found, one.name) for one in fields(found)}
    return values | {"index": index_contents(found.index)}


def index_contents(index: SegmentIndex) -> tuple[Any, ...]:
    at_end = (index.max_timestamp_ms, index.max_timestamp_offset, index.last_indexed)
    return (index.base_offset, index.offset_bytes(), index.time_bytes(), *at_end)
