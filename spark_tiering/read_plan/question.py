"""The question of a frozen plan, and the known facts of the cluster, both part of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rlmm.metadata.ids import TopicIdPartition

_GLOB = re.compile(r"[A-Za-z0-9._\-*?\[\]!]{1,249}")
_PATTERN_CHARACTERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class RecordBounds:
    """Bounds records by offset, or by time as brokers look it up; *to* is exclusive."""

    from_offset: int | None = None
    to_offset: int | None = None
    from_time_ms: int | None = None
    to_time_ms: int | None = None

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 <= value <= INT64_MAX):
                msg = f"{name.replace('_', ' ')}: {value!r} is no whole number from 0"
                raise InvalidArgument(msg)
        for side in ("from", "to"):
            if None not in (getattr(self, f"{side}_offset"), getattr(self, f"{side}_time_ms")):
                msg = f"'{side}' is said as an offset and as a time: say one"
                raise InvalidArgument(msg)
        self._require_order(self.from_offset, self.to_offset)
        self._require_order(self.from_time_ms, self.to_time_ms)

    @staticmethod
    def _require_order(first: int | None, behind: int | None) -> None:
        if first is not None and behind is not None and behind < first:
            msg = f"from {first} to {behind}: the end lies before the beginning"
            raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True)
class Question:
    """
    Selects partitions, by one of topics (names or patterns), pattern (for whole names) and assigned
    (topic, partitions), and the records in them; none means every user topic.
    """

    topics: tuple[str, ...] = ()
    without_topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    bounds: RecordBounds = RecordBounds()
    bounds_of: Mapping[tuple[str, int], RecordBounds] = field(default_factory=dict)
    prefix: str = ""
    """Before the keys of objects, as brokers are configured with it."""
    location: str = ""
    """Where the objects are, for readers: `s3://bucket/`; never with credentials."""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.topics, self.pattern, self.assigned))) > 1:
            msg = "topics, a pattern and assigned partitions: one of them says what is meant"
            raise InvalidArgument(msg)
        for text in (*self.topics, *self.without_topics):
            if _GLOB.fullmatch(text) is None:
                msg = f"no topic can match {text[:260]!r}"
                raise InvalidArgument(msg)
        if len(self.pattern) > _PATTERN_CHARACTERS_MAX:
            msg = f"a pattern of {len(self.pattern)} characters"
            raise InvalidArgument(msg)
        try:
            re.compile(self.pattern)
        except (re.error, RecursionError, OverflowError) as error:
            msg = f"{self.pattern!r} is no regular expression: {error}"
            raise InvalidArgument(msg) from error

    def wants(self, topic: str, partition: int) -> bool:
        if any(fnmatchcase(topic, one) for one in self.without_topics):
            return False
        if self.assigned:
            return any(name == topic and partition in numbers for name, numbers in self.assigned)
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        if topic.startswith("__"):
            return topic in self.topics
        return not self.topics or any(fnmatchcase(topic, one) for one in self.topics)

    def unmet(self, known: Collection[tuple[str, int]]) -> Iterator[str]:
        """Yield names, patterns and partitions of the question that match none of *known*."""
        names = {topic for topic, _ in known}
        yield from (one for one in self.topics if not any(fnmatchcase(name, one) for name in names))
        single = {(topic, number) for topic, numbers in self.assigned for number in numbers}
        for topic, number in sorted((single | set(self.bounds_of)).difference(known)):
            yield f"{topic}-{number}"

    def bounds_for(self, topic: str, partition: int) -> RecordBounds:
        return self.bounds_of.get((topic, partition), self.bounds)


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """Holds the known facts of the cluster; an unknown fact is absent, and decides nothing."""

    retention_ms: Mapping[str, int] = field(default_factory=dict)
    """By topic: `retention.ms`; from it follows when each segment expires."""
    log_starts: Mapping[TopicIdPartition, int] = field(default_factory=dict)
    """Records below are deleted, whatever segments still hold them: they are never planned."""
    histories: Mapping[TopicIdPartition, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Leader epochs with their first offsets, both rising, as a leader knows them."""

    def __post_init__(self) -> None:
        for partition, history in self.histories.items():
            epochs, firsts = [one for one, _ in history], [first for _, first in history]
            if epochs != sorted(set(epochs)) or firsts != sorted(set(firsts)):
                msg = f"{partition}: leader epochs and their offsets do not rise: {history[:8]}"
                raise InvalidArgument(msg)
