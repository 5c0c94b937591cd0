"""Rules of a plan: mode, filters, budgets, and the requests that a copy costs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX, require_int32
from spark_tiering.copy_plan.reasons import CopyMode, SegmentAction

if TYPE_CHECKING:
    from collections.abc import Collection

OBJECTS_OF_SEGMENT = 3
OBJECTS_MAX = 150_000
"""Most objects of one plan: 50,000 segments are some 20 MB of document, and a day's work."""

_PATTERN = re.compile(r"[A-Za-z0-9._*?\[\]!-]{1,249}")
_TEXT = re.compile(r"[A-Za-z0-9 ._:/@+=-]*")


@dataclass(frozen=True, slots=True)
class SegmentSelection:
    """Selects segments by topic names or patterns; none means all but Kafka's own topics."""

    topics: tuple[str, ...] = ()
    without_topics: tuple[str, ...] = ()
    age_ms_min: int = 0
    """A segment is wanted once its newest record is this old."""
    kept_local_bytes: int = 0
    """The newest bytes of each partition's log stay where they are; a segment stays whole."""
    with_compacted: bool = False
    """Also topics with `compact` in their `cleanup.policy`, as their cleaner left them by then."""

    def __post_init__(self) -> None:
        for pattern in (*self.topics, *self.without_topics):
            if _PATTERN.fullmatch(pattern) is None:
                msg = f"no topic can match {pattern[:260]!r}"
                raise InvalidArgument(msg)
        _require("age", self.age_ms_min)
        _require("bytes kept local", self.kept_local_bytes)

    def wants_topic(self, topic: str) -> bool:
        if any(fnmatchcase(topic, pattern) for pattern in self.without_topics):
            return False
        if topic.startswith("__"):
            return topic in self.topics
        return not self.topics or any(fnmatchcase(topic, pattern) for pattern in self.topics)

    def unmet(self, topics: Collection[str]) -> list[str]:
        """Return names and patterns that match none of *topics*: mostly mistyped ones."""
        return [one for one in self.topics if not any(fnmatchcase(name, one) for name in topics)]


@dataclass(frozen=True, slots=True)
class Budgets:
    """Most that one plan may cost; None means as much as there is."""

    bytes_max: int | None = None
    """Logs and indexes as the source has them. Compressed objects may take less in the store."""
    objects_max: int = OBJECTS_MAX
    requests_max: int | None = None
    """By `RequestCosts`; repetitions after a failure are not foreseen."""

    def __post_init__(self) -> None:
        _require("budget of bytes", self.bytes_max)
        _require("budget of requests", self.requests_max)
        _require("budget of objects", self.objects_max, OBJECTS_MAX)


class Cost(NamedTuple):
    bytes: int = 0
    objects: int = 0
    requests: int = 0

    def plus(self, other: Cost) -> Cost:
        return Cost(
            self.bytes + other.bytes, self.objects + other.objects, self.requests + other.requests
        )


@dataclass(frozen=True, slots=True)
class RequestCosts:
    """Bounds the requests of a copy from above: compression is not counted on."""

    multipart_above_bytes: int = 64 * 2**20
    """The largest object that is sent at once: it costs one request, and is tried again whole."""
    part_bytes: int = 64 * 2**20
    checks_of_object: int = 1

    def __post_init__(self) -> None:
        _require("threshold of multipart", self.multipart_above_bytes)
        _require("checks of an object", self.checks_of_object, 1000)
        _require("part", self.part_bytes)
        if self.part_bytes == 0:
            msg = "parts need bytes"
            raise InvalidArgument(msg)

    def copy_cost(self, action: SegmentAction, log_bytes: int, indexes_bytes: int) -> Cost:
        """Return the cost of one segment; a resumed copy costs a whole one."""
        checks = OBJECTS_OF_SEGMENT * self.checks_of_object
        if action is SegmentAction.COMPLETE:
            return Cost(requests=checks + 1)
        sent = self._put_requests(log_bytes) + self._put_requests(indexes_bytes) + 1
        return Cost(log_bytes + indexes_bytes, OBJECTS_OF_SEGMENT, sent + checks)

    @property
    def end_cost(self) -> Cost:
        return Cost(requests=OBJECTS_OF_SEGMENT + 1)

    def _put_requests(self, size_bytes: int) -> int:
        # What cannot be compressed grows a little: 1 of 256, and the heads of some frames.
        size_bytes += (size_bytes >> 8) + 65_536
        if size_bytes <= self.multipart_above_bytes:
            return 1
        return 2 + -(-size_bytes // self.part_bytes)


@dataclass(frozen=True, slots=True)
class PlanRules:
    """Sets all rules of a plan; ages are measured at *now_ms*."""

    mode: CopyMode
    now_ms: int
    broker_id: int
    """The broker id of all events: only the id that started a copy may finish it."""
    prefix: str = ""
    filters: SegmentSelection = field(default_factory=SegmentSelection)
    budgets: Budgets = field(default_factory=Budgets)
    costs: RequestCosts = field(default_factory=RequestCosts)

    def __post_init__(self) -> None:
        _require("time", self.now_ms)
        require_int32("broker id", self.broker_id)
        if len(self.prefix) > 500 or _TEXT.fullmatch(self.prefix) is None:
            msg = f"a prefix has up to 500 plain characters, got {self.prefix[:500]!r}"
            raise InvalidArgument(msg)


def _require(name: str, value: int | None, most: int = INT64_MAX) -> None:
    if value is not None and (type(value) is not int or not 0 <= value <= most):
        msg = f"{name}: {value!r}, expected 0 to {most}"
        raise InvalidArgument(msg)
