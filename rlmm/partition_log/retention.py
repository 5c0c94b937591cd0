"""The retention of segments: facts in, the number to delete out. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class ClosedSegment(NamedTuple):
    """The facts about a closed segment that a decision needs."""

    next_offset: int
    size: int
    newest_ms: int
    """Time of its newest record; of its last change where no record has one."""


def expired_count(
    closed: Sequence[ClosedSegment],
    active_size: int,
    *,
    log_start: int,
    now_ms: int,
    retention_bytes: int | None,
    retention_ms: int | None,
) -> int:
    """
    Count the segments to delete from the front of *closed*, which are in order of their offsets.

    A segment goes when it lies below *log_start*, when its newest record is older than
    *retention_ms*, or when *retention_bytes* are left without it. The first that stays keeps
    everything behind it: a log has no holes.
    """
    total = sum(segment.size for segment in closed) + active_size
    count = 0
    for segment in closed:
        below_start = segment.next_offset <= log_start
        too_old = retention_ms is not None and now_ms - segment.newest_ms > retention_ms
        too_much = retention_bytes is not None and total - segment.size >= retention_bytes
        if not (below_start or too_old or too_much):
            break
        total -= segment.size
        count += 1
    return count
