"""Topics created, and settings of topics and brokers read and changed. Pure."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_TOPIC_RESOURCE = 2
_BROKER_RESOURCE = 4
_TOPICS_MAX = 500
_SET, _UNSET = 0, 1
_SET_FOR_THE_TOPIC = 1
"""Every other source of a topic's value is the broker's configuration, or Kafka's default."""
_SET_FOR_THE_BROKER = {2, 4}
"""Sources of a broker's value: changed while it ran, and the broker's own file."""
_DESCRIBE_CONFIGS = MessageType("DescribeConfigs", 32, (4,))


@dataclass(frozen=True, slots=True)
class TopicRequestOutcome:
    """The outcome of a request; *reason* is the broker's own sentence, if it gave one."""

    code: int
    reason: str | None


@dataclass(frozen=True)
class CreateTopicsRequest(Request[TopicRequestOutcome]):
    """Asks any broker to create a topic."""

    api = MessageType("CreateTopics", 19, (7, 5))
    topic: str
    _: KW_ONLY
    partition_count: int
    replication_factor: int
    settings: Mapping[str, str]
    timeout_ms: int

    def write(self, out: MessageWriter, version: int) -> None:
        out.structs([self.topic], self._write_topic)
        out.int32(self.timeout_ms)
        out.boolean(False)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, topic: str) -> None:
        out.text(topic)
        out.int32(self.partition_count)
        out.int16(self.replication_factor)
        out.array([], out.int32)
        out.structs(self.settings.items(), _write_setting)

    def read(self, answer: MessageReader, version: int) -> TopicRequestOutcome:
        answer.int32()
        return answer.structs(lambda topic: _read_created(topic, version))[0]


def _write_setting(out: MessageWriter, setting: tuple[str, str]) -> None:
    out.text(setting[0])
    out.text(setting[1])


def _read_created(answer: MessageReader, version: int) -> TopicRequestOutcome:
    answer.text()
    if version >= 7:
        answer.uuid()
    outcome = TopicRequestOutcome(answer.int16(), answer.nullable_text())
    answer.int32()
    answer.int16()
    answer.structs(_skip_created_setting)
    return outcome


def _skip_created_setting(answer: MessageReader) -> None:
    answer.text()
    answer.nullable_text()
    answer.boolean()
    answer.int8()
    answer.boolean()


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A setting of a topic as it is in force."""

    value: str | None
    is_default: bool
    """Whether it was not set for this topic."""


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """The settings of a topic, or a code instead of them."""

    code: int
    reason: str | None
    name: str
    settings: Mapping[str, TopicSetting]


@dataclass(frozen=True)
class DescribeTopicsRequest(Request[list[DescribedTopic]]):
    """Asks any broker for the named settings of some topics, or for all that it knows (None)."""

    api = _DESCRIBE_CONFIGS
    topics: Sequence[str]
    names: Sequence[str] | None

    @classmethod
    def in_parts(cls, topics: Iterable[str], names: Sequence[str] | None) -> Iterator[Self]:
        """Yield requests for 500 topics each at most: their answers stay small."""
        ordered = sorted(topics)
        for first in range(0, len(ordered), _TOPICS_MAX):
            yield cls(ordered[first : first + _TOPICS_MAX], names)

    def write(self, out: MessageWriter, version: int) -> None:
        _write_resources(out, _TOPIC_RESOURCE, self.topics, self.names)

    def read(self, answer: MessageReader, version: int) -> list[DescribedTopic]:
        return [
            DescribedTopic(
                resource.code,
                resource.reason,
                resource.name,
                {
                    name: TopicSetting(value, source != _SET_FOR_THE_TOPIC)
                    for name, value, source, _ in resource.settings
                },
            )
            for resource in _read_resources(answer)
        ]


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """A setting of a broker as it is in force; the value of a secret is None."""

    value: str | None
    is_explicit: bool
    """Whether it was set for this very broker, not for all brokers or by Kafka."""


@dataclass(frozen=True, slots=True)
class DescribedBroker:
    """All settings of a broker, or a code instead of them."""

    code: int
    reason: str | None
    settings: Mapping[str, BrokerSetting]


@dataclass(frozen=True)
class DescribeBrokerRequest(Request[DescribedBroker]):
    """Asks a broker for all its settings; no other broker knows them."""

    api = _DESCRIBE_CONFIGS
    broker: int

    def write(self, out: MessageWriter, version: int) -> None:
        _write_resources(out, _BROKER_RESOURCE, [str(self.broker)], None)

    def read(self, answer: MessageReader, version: int) -> DescribedBroker:
        resource = _read_resources(answer)[0]
        settings = {
            name: BrokerSetting(None if is_secret else value, source in _SET_FOR_THE_BROKER)
            for name, value, source, is_secret in resource.settings
        }
        return DescribedBroker(resource.code, resource.reason, settings)


class _Resource(NamedTuple):
    """A topic or broker in a response; each setting has name, value, source, and is secret."""

    code: int
    reason: str | None
    name: str
    settings: list[tuple[str, str | None, int, bool]]


def _write_resources(
    out: MessageWriter, kind: int, resources: Iterable[str], names: Sequence[str] | None
) -> None:
    def write(out: MessageWriter, resource: str) -> None:
        out.int8(kind)
        out.text(resource)
        out.array(names, out.text)

    out.structs(resources, write)
    out.boolean(False)
    out.boolean(False)
    out.no_tags()


def _read_resources(answer: MessageReader) -> list[_Resource]:
    answer.int32()
    return answer.structs(_read_resource)


def _read_resource(answer: MessageReader) -> _Resource:
    code, reason = answer.int16(), answer.nullable_text()
    answer.int8()
    return _Resource(code, reason, answer.text(), answer.structs(_read_setting))


def _read_setting(answer: MessageReader) -> tuple[str, str | None, int, bool]:
    name, value = answer.text(), answer.nullable_text()
    answer.boolean()
    source, is_secret = answer.int8(), answer.boolean()
    answer.structs(lambda synonym: (synonym.text(), synonym.nullable_text(), synonym.int8()))
    answer.int8()
    answer.nullable_text()
    return name, value, source, is_secret


@dataclass(frozen=True)
class AlterTopicRequest(Request[TopicRequestOutcome]):
    """Asks to change and unset named settings, all or none; those not named stay."""

    api = MessageType("IncrementalAlterConfigs", 44, (1,))
    topic: str
    given: Mapping[str, str]
    unset: Sequence[str] = ()
    is_only_checked: bool = False

    def write(self, out: MessageWriter, version: int) -> None:
        out.structs([self.topic], self._write_topic)
        out.boolean(self.is_only_checked)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, topic: str) -> None:
        changes: list[tuple[str, int, str | None]] = [
            *((name, _SET, value) for name, value in self.given.items()),
            *((name, _UNSET, None) for name in self.unset),
        ]
        out.int8(_TOPIC_RESOURCE)
        out.text(topic)
        out.structs(changes, _write_change)

    def read(self, answer: MessageReader, version: int) -> TopicRequestOutcome:
        answer.int32()
        return answer.structs(_read_altered)[0]


def _write_change(out: MessageWriter, change: tuple[str, int, str | None]) -> None:
    name, operation, value = change
    out.text(name)
    out.int8(operation)
    out.text(value)


def _read_altered(answer: MessageReader) -> TopicRequestOutcome:
    outcome = TopicRequestOutcome(answer.int16(), answer.nullable_text())
    answer.int8()
    answer.text()
    return outcome
