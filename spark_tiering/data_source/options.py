"""The options of `spark.read.format("rlmm")`, named as in Spark's Kafka source. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from spark_tiering.data_source.bounds import (
    EARLIEST,
    LATEST,
    AtEdge,
    AtOffsets,
    AtTime,
    AtTimes,
    NoOffset,
)
from spark_tiering.data_source.option_values import ReaderOptions, exactly_one
from spark_tiering.data_source.places import PLACE_OPTIONS, TierLocation, parse_place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.data_source.bounds import Bound

WINDOW_BYTES: Final = 4 * 1024 * 1024
PARTITION_BYTES_MAX: Final = 128 * 1024 * 1024
TRIGGER_DELAY_MS: Final = 15 * 60_000
_PATTERN_CHARACTERS_MAX: Final = 1_000

SUBSCRIPTIONS: Final = ("subscribe", "subscribePattern", "assign")
_STARTS: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_STRATEGY: Final = "startingOffsetsByTimestampStrategy"
KNOWN: Final = (
    *SUBSCRIPTIONS, *_STARTS, _STRATEGY, *_ENDS, "failOnDataLoss", "includeHeaders",
    "minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
    "maxTriggerDelay", "isolationLevel", "verify", "pushdown", "timestampDisorderMs",
    "windowBytes", "maxPartitionBytes", "topicIds", *PLACE_OPTIONS,
)  # fmt: skip

REFUSALS: Final = {
    "kafka.isolation.level": "no consumer reads here; isolationLevel says it",
    "kafka.bootstrap.servers": "brokers are never asked; store, sidecar, plan or logDirs say "
    "where the segments are",
    "kafka.": "no consumer of Kafka's reads here",
    "groupIdPrefix": "there is no consumer group",
    "kafkaConsumer.": "no consumer of Kafka's reads here",
    "fetchOffset.": "no broker is asked for offsets",
    "useDeprecatedOffsetFetching": "no broker is asked for offsets",
    "groupId": "there is no consumer group",
}
_OF_SPARK: Final = (
    "path", "serialization.format", "provider", "location", "owner", "comment", "external",
    "is_managed_location",
)  # fmt: skip
"""What Spark adds to the options of a table by itself; and each of them once more, see below."""
_OF_TABLE: Final = "option."


class Isolation(StrEnum):
    UNCOMMITTED = "read_uncommitted"
    COMMITTED = "read_committed"
    """Those that were committed, and none behind the first that is not decided yet."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """Names the partitions to read, in one of three ways; none of them where a plan is given."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """By topic, where a name was given to several topics one after another."""

    def wants(self, topic: str, partition: int) -> bool:
        if self.assigned:
            return any(name == topic and partition in numbers for name, numbers in self.assigned)
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        return not self.topics or topic in self.topics


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    most: int | None = None
    least: int | None = None
    delay_ms: int = TRIGGER_DELAY_MS
    """A batch of fewer than *least* begins all the same when this much time has passed."""


@dataclass(frozen=True, slots=True)
class DataSourceOptions:
    subscription: Subscription
    place: TierLocation
    start: Bound
    end: Bound
    is_streaming: bool = False
    fails_on_data_loss: bool = True
    has_headers: bool = False
    min_partitions: int | None = None
    partition_records_max: int | None = None
    limits: TriggerLimits = TriggerLimits()
    isolation: Isolation = Isolation.UNCOMMITTED
    checks_crc: bool = True
    pushes_down: bool = False
    disorder_ms: int | None = None
    """How much older than a record before it a record is at most; None is unknown."""
    window_bytes: int = WINDOW_BYTES
    partition_bytes_max: int = PARTITION_BYTES_MAX


def parse_options(given: Mapping[str, str], *, is_streaming: bool) -> DataSourceOptions:
    """Raise `ConfigError` for options that are wrong, unknown or a secret."""
    options = ReaderOptions(
        {
            name: value
            for name, value in given.items()
            if name.lower() not in _OF_SPARK and not name.lower().startswith(_OF_TABLE)
        },
        KNOWN,
    )
    place = parse_place(options)
    subscription = _subscription(options, is_needed=not place.plan)
    # The order in which options are looked at is that of the messages, too.
    parsed = DataSourceOptions(
        subscription,
        place,
        _start(options, is_streaming=is_streaming),
        _end(options, is_streaming=is_streaming),
        is_streaming,
        options.flag("failOnDataLoss", default=True),
        options.flag("includeHeaders", default=False),
        options.count("minPartitions"),
        options.count("maxRecordsPerPartition"),
        _limits(options),
        Isolation(options.choice("isolationLevel", *Isolation)),
        options.choice("verify", "crc", "none") == "crc",
        options.flag("pushdown", default=False),
        options.whole("timestampDisorderMs"),
        options.size("windowBytes", WINDOW_BYTES),
        options.size("maxPartitionBytes", PARTITION_BYTES_MAX),
    )
    options.require_empty(REFUSALS)
    return parsed


def _subscription(options: ReaderOptions, *, is_needed: bool) -> Subscription:
    found = _named(options, is_needed=is_needed)
    topics = {topic for topic, _ in found.assigned}
    for topic in found.topic_ids:
        if not (topic in topics if topics else found.wants(topic, 0)):
            msg = f"topicIds names {topic}, which is not read"
            raise ConfigError(msg)
    return found


def _named(options: ReaderOptions, *, is_needed: bool) -> Subscription:
    topic_ids = options.texts("topicIds")
    if not is_needed and not any(name in options for name in SUBSCRIPTIONS):
        return Subscription(topic_ids=topic_ids)
    which = exactly_one(options, SUBSCRIPTIONS)
    if which == "subscribe":
        topics = options.words(which)
        if not topics:
            msg = "subscribe names no topic"
            raise ConfigError(msg)
        return Subscription(topics, topic_ids=topic_ids)
    if which == "assign":
        return Subscription(assigned=options.partitions(which), topic_ids=topic_ids)
    return Subscription(pattern=_pattern(options.text(which)), topic_ids=topic_ids)


def _pattern(text: str) -> str:
    if not 0 < len(text) <= _PATTERN_CHARACTERS_MAX:
        msg = f"subscribePattern is a regular expression, got {len(text)} characters"
        raise ConfigError(msg)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        msg = f"subscribePattern {text!r} is no regular expression: {error}"
        raise ConfigError(msg) from error
    return text


def _start(options: ReaderOptions, *, is_streaming: bool) -> Bound:
    no_offset = NoOffset(options.choice(_STRATEGY, *NoOffset))
    bound = _bound(options, _STARTS, LATEST if is_streaming else EARLIEST, no_offset)
    if not is_streaming:
        _refuse_edge(bound, LATEST, "startingOffsets", "latest", "is no start of a batch")
    return bound


def _end(options: ReaderOptions, *, is_streaming: bool) -> Bound:
    given = [name for name in _ENDS if name in options]
    if is_streaming and given:
        msg = f"a stream has no end: {given[0]} is for batches"
        raise ConfigError(msg)
    bound = _bound(options, _ENDS, LATEST, NoOffset.LATEST)
    _refuse_edge(bound, EARLIEST, "endingOffsets", "earliest", "is no end of a batch")
    return bound


def _bound(
    options: ReaderOptions, names: tuple[str, ...], default: int, no_offset: NoOffset
) -> Bound:
    """Read the first of *names* that is given; the others do not count."""
    of_all, of_each, of_offsets = names
    time_ms = options.whole(of_all)
    times = options.offsets(of_each) if of_each in options else None
    offsets = _offsets(options, of_offsets, default)
    if time_ms is not None:
        return AtTime(of_all, time_ms, no_offset)
    if times is not None:
        for partition, time_of_it in times.items():
            if time_of_it < 0:
                msg = f"{of_each}: {time_of_it} of {partition} is no time in milliseconds"
                raise ConfigError(msg)
        return AtTimes(of_each, times, no_offset)
    return offsets


def _offsets(options: ReaderOptions, name: str, default: int) -> Bound:
    text = options.text(name)
    edges = {"": default, "earliest": EARLIEST, "latest": LATEST}
    if text.lower() in edges:
        return AtEdge(edges[text.lower()])
    offsets = ReaderOptions({name: text}, (name,)).offsets(name)
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            msg = f"{name}: {partition} has no offset {offset}"
            raise ConfigError(msg)
    return AtOffsets(name, offsets)


def _refuse_edge(bound: Bound, edge: int, option: str, word: str, why: str) -> None:
    if isinstance(bound, AtEdge) and bound.offset == edge:
        msg = f"{option}: {word} {why}"
        raise ConfigError(msg)
    if isinstance(bound, AtOffsets):
        for partition, offset in bound.offsets.items():
            if offset == edge:
                msg = f"{option}: {edge} ({word}) of {partition} {why}"
                raise ConfigError(msg)


def _limits(options: ReaderOptions) -> TriggerLimits:
    limits = TriggerLimits(
        options.count("maxOffsetsPerTrigger"),
        options.count("minOffsetsPerTrigger"),
        options.duration_ms("maxTriggerDelay", TRIGGER_DELAY_MS),
    )
    if limits.most is not None and limits.least is not None and limits.least > limits.most:
        msg = f"minOffsetsPerTrigger {limits.least} is more than maxOffsetsPerTrigger {limits.most}"
        raise ConfigError(msg)
    return limits
