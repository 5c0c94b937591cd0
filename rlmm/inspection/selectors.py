"""Selectors as typed: times, moments, partitions, segments; or `InvalidArgument`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument, UnknownPartition
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, TopicIdPartition, Uuid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TIME_DIGITS_MIN = 12
"""A bare number of so many digits is a time: it is later than 1973, and no offset is so large."""
_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_DIGITS_MAX = 19
"""Of a number of 64 bits; Python refuses to read one of thousands of digits."""
_AGO = re.compile(r"-\s*(\d{1,19}(?:\.\d+)?)\s*(ms|s|m|h|d|w)", re.IGNORECASE)
_OFFSETS = re.compile(r"\s*\d{1,19}\s*:\s*\d{1,19}\s*(?:,\s*\d{1,19}\s*:\s*\d{1,19}\s*)*")
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]{0,19})|(?:([0-9]{0,19})-([0-9]{0,19}))))?")
"""Of a topic and its partitions, as Kafka's own tool reads it."""
_NAME = re.compile(r"(?:[A-Za-z0-9._-]|\\\.)+", re.ASCII)
"""A topic name, where a dot stands for itself."""
_ID = r"[A-Za-z0-9_-]{22}"
_LABEL = re.compile(rf"(?:(?P<id>{_ID}):)?(?P<topic>.+)-(?P<partition>\d{{1,10}})", re.ASCII)
_BY_ID = re.compile(rf"(?P<id>{_ID}):(?P<partition>\d{{1,10}})", re.ASCII)
_SEGMENT = re.compile(r"[A-Za-z0-9_-]{1,22}")
_LISTED_MAX = 10
CLOCKS_DIFFER_MS = 60_000
"""How far the clock of a broker, which gives events their times, may be ahead of this one."""
_TIMES = "2026-01-31T14:05:00Z, 1769868300000, -7d or now"


def parse_time(text: str, now_ms: int) -> int:
    """Read epoch milliseconds: ISO 8601 (by default UTC), milliseconds, `-7d` or `now`."""
    said = text.strip()
    if said.lower() == "now":
        return now_ms
    ago = _AGO.fullmatch(said)
    if ago is not None:
        return max(0, now_ms - round(float(ago[1]) * _UNITS_MS[ago[2].lower()]))
    if said.isascii() and said.isdigit() and len(said) <= _DIGITS_MAX:
        return int(said)
    try:
        at = datetime.fromisoformat(said)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return round(at.timestamp() * 1_000)
    except (ValueError, OverflowError) as error:
        msg = f"{text!r} is no time: {_TIMES}"
        raise InvalidArgument(msg) from error


@dataclass(frozen=True, slots=True)
class MomentSelector:
    """A moment in the past, as it was said; one of the three is set."""

    offset: int | None = None
    """The last offset that counts, of the one metadata partition that a question is about."""
    offsets: Mapping[int, int] = field(default_factory=dict)
    time_ms: int | None = None


def parse_at(text: str, now_ms: int) -> MomentSelector:
    """Read `OFFSET`, `PARTITION:OFFSET,...` or a time not to come; see `TIME_DIGITS_MIN`."""
    said = text.strip()
    if said.isascii() and said.isdigit() and len(said) < TIME_DIGITS_MIN:
        return MomentSelector(offset=int(said))
    if _OFFSETS.fullmatch(said) and said.isascii():
        pairs = [one.split(":") for one in said.split(",")]
        offsets = {int(place): int(offset) for place, offset in pairs}
        if len(offsets) < len(pairs):
            msg = f"{text!r} names a metadata partition twice"
            raise InvalidArgument(msg)
        return MomentSelector(offsets=offsets)
    try:
        time_ms = parse_time(said, now_ms)
    except InvalidArgument as error:
        msg = f"{text!r} is no moment: an offset, PARTITION:OFFSET,..., or a time such as {_TIMES}"
        raise InvalidArgument(msg) from error
    if time_ms > now_ms + CLOCKS_DIFFER_MS:
        msg = f"{text!r} lies in the future: what the state will be then is not known"
        raise InvalidArgument(msg)
    return MomentSelector(time_ms=time_ms)


# ------------------------------------------------------------------------------- user partitions


@dataclass(frozen=True, slots=True)
class _Rule:
    topic: re.Pattern[str]
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """Selects the user partitions that one of the rules names."""

    rules: tuple[_Rule, ...]

    def allows(self, partition: TopicIdPartition) -> bool:
        return any(
            rule.first <= partition.partition < rule.stop
            and rule.topic.fullmatch(partition.topic) is not None
            for rule in self.rules
        )

    @property
    def is_of_one(self) -> bool:
        """Return whether it names one partition of one topic, `orders:3`, and no pattern."""
        return len(self.rules) == 1 and all(
            rule.stop == rule.first + 1 and _NAME.fullmatch(rule.topic.pattern) is not None
            for rule in self.rules
        )


EVERYTHING = PartitionFilter((_Rule(re.compile(".*", re.DOTALL), -(2**31), 2**31),))


def topic_pattern(text: str) -> re.Pattern[str]:
    """Return the expression for whole names, as Kafka's tools read it: commas mean "or"."""
    said = text.strip().replace(",", "|").replace(" ", "")
    said = re.sub("^[\"']+|[\"']+$", "", said)
    try:
        return re.compile(said)
    except re.error as error:
        msg = f"{text!r} is no regular expression: {error}"
        raise InvalidArgument(msg) from error


def parse_topic_partitions(text: str) -> PartitionFilter:
    """
    Read `t1:1,t2:0-3,t3,t4:5-,t5:-3,:0` as kafka-get-offsets does. Names are expressions for the
    whole name, an empty one is any; upper bounds are exclusive.
    """
    said = text.split(",")
    while len(said) > 1 and not said[-1]:
        said.pop()
    rules = []
    for one in said:
        found = _RULE.fullmatch(one)
        if found is None:
            msg = (
                f"{one!r} names no partitions: TOPIC, TOPIC:1, TOPIC:0-3 (without 3), TOPIC:5- or "
                "TOPIC:-3"
            )
            raise InvalidArgument(msg)
        topic, single, first, stop = found.groups()
        if single:
            bounds = int(single), int(single) + 1
        else:
            bounds = int(first or 0), int(stop or INT32_MAX)
        rules.append(_Rule(topic_pattern(topic or ".*"), *bounds))
    return PartitionFilter(tuple(rules))


def partition_filter(topic: str | None, topic_partitions: str | None) -> PartitionFilter:
    """Return the filter of `--topic` or `--topic-partitions`; without either it allows all."""
    if topic is not None and topic_partitions is not None:
        msg = "--topic and --topic-partitions both say which topics are meant: give one of them"
        raise InvalidArgument(msg)
    if topic_partitions is not None:
        return parse_topic_partitions(topic_partitions)
    if topic is not None:
        return PartitionFilter((_Rule(topic_pattern(topic), 0, INT32_MAX),))
    return EVERYTHING


@dataclass(frozen=True, slots=True)
class PartitionLabel:
    """A user partition as it was named; an absent part is None."""

    topic: str | None
    partition: int
    topic_id: Uuid | None = None

    def __str__(self) -> str:
        if self.topic is None:
            return f"{self.topic_id}:{self.partition}"
        named = f"{self.topic}-{self.partition}"
        return named if self.topic_id is None else f"{self.topic_id}:{named}"

    @property
    def whole(self) -> TopicIdPartition | None:
        if self.topic is None or self.topic_id is None:
            return None
        return TopicIdPartition(self.topic_id, self.topic, self.partition)

    def names(self, partition: TopicIdPartition) -> bool:
        return (
            self.partition == partition.partition
            and self.topic in {None, partition.topic}
            and self.topic_id in {None, partition.topic_id}
        )


def parse_partition(text: str) -> PartitionLabel:
    """Read `orders-3`; `TOPIC-ID:orders-3` or `TOPIC-ID:3` where several topics had the name."""
    said = text.strip()
    found = _BY_ID.fullmatch(said) or _LABEL.fullmatch(said)
    partition = -1 if found is None else int(found["partition"])
    if found is None or partition > INT32_MAX:
        msg = f"{text!r} names no partition: orders-3, or TOPIC-ID:orders-3"
        raise InvalidArgument(msg)
    parts = found.groupdict()
    topic_id = parts["id"]
    return PartitionLabel(
        parts.get("topic"), partition, None if topic_id is None else Uuid.parse(topic_id)
    )


def parse_position(text: str) -> tuple[PartitionLabel, int]:
    """Read `orders-3@1500`, or the same behind a topic id."""
    label, is_offset, offset = text.strip().rpartition("@")
    is_number = offset.isascii() and offset.isdigit() and len(offset) <= _DIGITS_MAX
    if not is_offset or not is_number or int(offset) > INT64_MAX:
        msg = f"{text!r} names no offset of a partition: orders-3@1500"
        raise InvalidArgument(msg)
    return parse_partition(label), int(offset)


def resolve(label: PartitionLabel, known: Iterable[TopicIdPartition]) -> TopicIdPartition:
    """
    Return the only *known* partition of the label. Raises `UnknownPartition` for none,
    `InvalidArgument` with all ids of a topic that was made again.
    """
    every = sorted(known, key=lambda one: (one.topic, one.partition, one.topic_id))
    found = [one for one in every if label.names(one)]
    if len(found) == 1:
        return found[0]
    if found:
        msg = f"{label} is one of {len(found)} topics: say {' or '.join(map(str, found))}"
        raise InvalidArgument(msg)
    others = [one for one in every if one.topic == label.topic]
    msg = f"{label}: no event of it was ever stored"
    if others:
        numbers = ", ".join(str(one.partition) for one in others[:_LISTED_MAX])
        more = f" and {len(others) - _LISTED_MAX} more" if len(others) > _LISTED_MAX else ""
        msg += f"; of the topic there are partitions {numbers}{more}"
    raise UnknownPartition(msg)


# -------------------------------------------------------------------------------------- segments


@dataclass(frozen=True, slots=True)
class SegmentLabel:
    """Names a segment by its id, or the start of that, perhaps with its partition."""

    text: str
    partition: PartitionLabel | None = None

    @property
    def uuid(self) -> Uuid | None:
        return Uuid.parse(self.text) if len(self.text) == 22 else None

    def names(self, uuid: Uuid) -> bool:
        whole = self.uuid
        return uuid == whole if whole is not None else str(uuid).startswith(self.text)

    def __str__(self) -> str:
        shown = self.text if len(self.text) == 22 else f"{self.text}..."
        return shown if self.partition is None else f"{self.partition}/{shown}"


def parse_segment(text: str) -> SegmentLabel:
    """Read a segment id of 22 characters or its beginning; `orders-3/ID` with its partition."""
    before, is_partition, uuid = text.strip().rpartition("/")
    if _SEGMENT.fullmatch(uuid) is None:
        msg = (
            f"{text!r} names no segment: an id is 22 characters of URL-safe base64, or its "
            "beginning; with its partition, orders-3/ID"
        )
        raise InvalidArgument(msg)
    return SegmentLabel(uuid, parse_partition(before) if is_partition else None)


def parse_subject(text: str) -> PartitionLabel | SegmentLabel:
    """Read a segment id or a user partition. No id ends in a digit: its last four bits are zero."""
    said = text.strip()
    if "/" in said or (len(said) == 22 and said[-1] in "AQgw"):
        return parse_segment(said)
    try:
        return parse_partition(said)
    except InvalidArgument as error:
        try:
            return parse_segment(said)
        except InvalidArgument:
            msg = f"{text!r} names neither a partition, orders-3, nor the id of a segment"
            raise InvalidArgument(msg) from error
