"""Requests about topics themselves: create one, read their settings, change some of one's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TOPIC_RESOURCE = 2
_SET, _UNSET = 0, 1
_SET_FOR_THE_TOPIC = 1
"""Every other source of a setting's value is the broker's configuration, or Kafka's default."""


@dataclass(frozen=True, slots=True)
class TopicRequestOutcome:
    """What became of a request; *reason* is the broker's own sentence, if it gave one."""

    code: int
    reason: str | None


class CreateTopicsRequest(Request[TopicRequestOutcome]):
    """Asks any broker to have the topic created."""

    api = MessageType("CreateTopics", 19, (7, 5))

    def __init__(
        self,
        topic: str,
        *,
        partition_count: int,
        replication_factor: int,
        settings: Mapping[str, str],
        timeout_ms: int,
    ) -> None:
        self._topic = topic
        self._partition_count = partition_count
        self._replication_factor = replication_factor
        self._settings = settings
        self._timeout_ms = timeout_ms

    def write(self, out: MessageWriter, version: int) -> None:
        out.array([self._topic], lambda topic: self._write_topic(out, topic))
        out.int32(self._timeout_ms)
        out.boolean(False)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, topic: str) -> None:
        out.text(topic)
        out.int32(self._partition_count)
        out.int16(self._replication_factor)
        out.array([], out.int32)
        out.array(self._settings.items(), lambda setting: _write_setting(out, *setting))
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> TopicRequestOutcome:
        """Read the body of the answer, as far as it is wanted."""
        answer.int32()
        outcomes = answer.array(lambda: _created(answer, version))
        return outcomes[0]


def _write_setting(out: MessageWriter, name: str, value: str) -> None:
    out.text(name)
    out.text(value)
    out.no_tags()


def _created(answer: MessageReader, version: int) -> TopicRequestOutcome:
    answer.text()
    if version >= 7:
        answer.uuid()
    outcome = TopicRequestOutcome(answer.int16(), answer.nullable_text())
    answer.int32()
    answer.int16()
    answer.array(lambda: _created_setting(answer))
    answer.tags()
    return outcome


def _created_setting(answer: MessageReader) -> None:
    answer.text()
    answer.nullable_text()
    answer.boolean()
    answer.int8()
    answer.boolean()
    answer.tags()


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A setting of the topic as it is in force."""

    value: str | None
    is_default: bool
    """Whether it was not set for this topic."""


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """The settings asked for, or the code that stands instead of them."""

    code: int
    reason: str | None
    name: str
    settings: Mapping[str, TopicSetting]


class DescribeTopicsRequest(Request[list[DescribedTopic]]):
    """Asks any broker for the named settings of some topics, or for all that it knows."""

    api = MessageType("DescribeConfigs", 32, (4,))

    def __init__(self, topics: Sequence[str], names: Sequence[str] | None) -> None:
        self._topics = topics
        self._names = names

    def write(self, out: MessageWriter, version: int) -> None:
        out.array(self._topics, lambda topic: self._write_topic(out, topic))
        out.boolean(False)
        out.boolean(False)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, topic: str) -> None:
        out.int8(_TOPIC_RESOURCE)
        out.text(topic)
        out.array(self._names, out.text)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> list[DescribedTopic]:
        """Read the body of the answer."""
        answer.int32()
        return answer.array(lambda: _described(answer))


def _described(answer: MessageReader) -> DescribedTopic:
    code, reason = answer.int16(), answer.nullable_text()
    answer.int8()
    name = answer.text()
    settings = dict(answer.array(lambda: _setting(answer)))
    answer.tags()
    return DescribedTopic(code, reason, name, settings)


def _setting(answer: MessageReader) -> tuple[str, TopicSetting]:
    name, value = answer.text(), answer.nullable_text()
    answer.boolean()
    source = answer.int8()
    answer.boolean()
    answer.array(lambda: (answer.text(), answer.nullable_text(), answer.int8(), answer.tags()))
    answer.int8()
    answer.nullable_text()
    answer.tags()
    return name, TopicSetting(value, source != _SET_FOR_THE_TOPIC)


class AlterTopicRequest(Request[TopicRequestOutcome]):
    """
    Asks any broker to have some settings of a topic changed, all of them or none.

    Those not named stay as they are: the older request of Kafka's that replaces all settings would
    lose them. *unset* are to follow the broker's configuration again.
    """

    api = MessageType("IncrementalAlterConfigs", 44, (1,))

    def __init__(
        self,
        topic: str,
        given: Mapping[str, str],
        unset: Sequence[str] = (),
        *,
        is_only_checked: bool = False,
    ) -> None:
        self._topic = topic
        self._given = given
        self._unset = unset
        self._is_only_checked = is_only_checked

    def write(self, out: MessageWriter, version: int) -> None:
        out.array([self._topic], lambda topic: self._write_topic(out, topic))
        out.boolean(self._is_only_checked)
        out.no_tags()

    def _write_topic(self, out: MessageWriter, topic: str) -> None:
        changes: list[tuple[str, int, str | None]] = [
            *((name, _SET, value) for name, value in self._given.items()),
            *((name, _UNSET, None) for name in self._unset),
        ]
        out.int8(_TOPIC_RESOURCE)
        out.text(topic)
        out.array(changes, lambda change: _write_change(out, *change))
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> TopicRequestOutcome:
        """Read the body of the answer."""
        answer.int32()
        return answer.array(lambda: _altered(answer))[0]


def _write_change(out: MessageWriter, name: str, operation: int, value: str | None) -> None:
    out.text(name)
    out.int8(operation)
    out.text(value)
    out.no_tags()


def _altered(answer: MessageReader) -> TopicRequestOutcome:
    outcome = TopicRequestOutcome(answer.int16(), answer.nullable_text())
    answer.int8()
    answer.text()
    answer.tags()
    return outcome
