"""
Pushed filters of a query as bounds on the read; Spark evaluates all filters again. Pure. Times give
a start, since no segment after the first late one is known to be early; they give an end only if it
is known how far times go back, `timestampDisorderMs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rlmm.metadata.ids import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spark_tiering.data_source.extents import ReadExtent

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """Bounds the wanted rows. Times are inclusive and in milliseconds, as records have them."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_offset: int = 0
    last_offset: int = INT64_MAX
    first_time_ms: int = INT64_MIN
    last_time_ms: int = INT64_MAX

    @property
    def has_times(self) -> bool:
        return (self.first_time_ms, self.last_time_ms) != (INT64_MIN, INT64_MAX)

    def with_filter(self, one: Any) -> PushedFilters:
        """Return the bounds narrowed by a filter of Spark's; unknown filters add nothing."""
        attribute, value = getattr(one, "attribute", None), getattr(one, "value", None)
        narrow = _COLUMNS.get(attribute[0]) if attribute and len(attribute) == 1 else None
        return self if narrow is None else narrow(self, type(one).__name__, value)

    def wants(self, topic: str, partition: int) -> bool:
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


EVERYTHING: Final = PushedFilters()


def prune(
    extents: Iterable[ReadExtent], pushed: PushedFilters, disorder_ms: int | None
) -> tuple[ReadExtent, ...]:
    kept = []
    for extent in extents:
        partition = extent.partition
        cut = extent.cut(pushed.first_offset, min(pushed.last_offset, INT64_MAX - 1) + 1)
        is_old = 0 <= extent.max_timestamp_ms < pushed.first_time_ms
        if cut is not None and not is_old and pushed.wants(partition.topic, partition.partition):
            kept.append(cut)
        if (
            disorder_ms is not None
            and extent.has_end
            and extent.first_offset == extent.segment_first
            and extent.max_timestamp_ms - disorder_ms > pushed.last_time_ms
        ):
            break
    return tuple(kept)


def _names(name: str, value: Any, kind: type) -> frozenset[Any] | None:
    """Return the values that an equality allows; None where the filter is no equality of *kind*."""
    if name in ("EqualTo", "EqualNullSafe"):
        return frozenset((value,)) if type(value) is kind else None
    if name == "In":
        return frozenset(one for one in value if type(one) is kind)
    return None


def _both(before: frozenset[Any] | None, more: frozenset[Any]) -> frozenset[Any]:
    return more if before is None else before & more


def _topic(pushed: PushedFilters, name: str, value: Any) -> PushedFilters:
    found = _names(name, value, str)
    return pushed if found is None else replace(pushed, topics=_both(pushed.topics, found))


def _partition(pushed: PushedFilters, name: str, value: Any) -> PushedFilters:
    found = _names(name, value, int)
    if found is not None:
        return replace(pushed, partitions=_both(pushed.partitions, found))
    return pushed


def _offset(pushed: PushedFilters, name: str, value: Any) -> PushedFilters:
    low, high = _span(name, value, int, lambda one: one, lambda one: one)
    first, last = max(pushed.first_offset, low), min(pushed.last_offset, high)
    return replace(pushed, first_offset=first, last_offset=last)


def _timestamp(pushed: PushedFilters, name: str, value: Any) -> PushedFilters:
    low, high = _span(name, value, datetime, _ms_up, _ms_down)
    first, last = max(pushed.first_time_ms, low), min(pushed.last_time_ms, high)
    return replace(pushed, first_time_ms=first, last_time_ms=last)


def _span(
    name: str, value: Any, kind: type, up: Callable[[Any], int], down: Callable[[Any], int]
) -> tuple[int, int]:
    values = value if name == "In" else (value,)
    if not isinstance(values, tuple | list) or any(type(one) is not kind for one in values):
        return INT64_MIN, INT64_MAX
    if not values:
        return INT64_MIN, INT64_MAX
    low, high = up(min(values)), down(max(values))
    if name in ("EqualTo", "EqualNullSafe", "In"):
        return low, high
    if name in ("GreaterThan", "GreaterThanOrEqual"):
        # One that is equal is read and dropped by Spark: simpler than to count units.
        return low if name == "GreaterThanOrEqual" else down(min(values)), INT64_MAX
    if name in ("LessThan", "LessThanOrEqual"):
        return INT64_MIN, high if name == "LessThanOrEqual" else up(max(values))
    return INT64_MIN, INT64_MAX


def _ms_down(moment: datetime) -> int:
    return _microseconds(moment) // 1_000


def _ms_up(moment: datetime) -> int:
    return -(-_microseconds(moment) // 1_000)


def _microseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


_COLUMNS: Final[dict[str, Callable[[PushedFilters, str, Any], PushedFilters]]] = {
    "topic": _topic,
    "partition": _partition,
    "offset": _offset,
    "timestamp": _timestamp,
}
