"""Requests to one broker about itself: its settings, and the disks that its logs lie on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

_BROKER_RESOURCE = 4
_OF_THE_BROKER = {2, 4}
"""Where a setting's value comes from: what was changed while it ran, and its own file."""


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """A setting of a broker as it is in force; no value for a secret."""

    value: str | None
    is_explicit: bool
    """Whether it was set for this very broker, and not for all or by Kafka."""


@dataclass(frozen=True, slots=True)
class DescribedBroker:
    """All settings of a broker, or the code that stands instead of them."""

    code: int
    reason: str | None
    settings: Mapping[str, BrokerSetting]


class DescribeBrokerRequest(Request[DescribedBroker]):
    """Asks a broker for all its settings; no other one knows them."""

    api = MessageType("DescribeConfigs", 32, (4,))

    def __init__(self, broker: int) -> None:
        self._broker = broker

    def write(self, out: MessageWriter, version: int) -> None:
        out.array([self._broker], lambda broker: _write_broker(out, broker))
        out.boolean(False)
        out.boolean(False)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> DescribedBroker:
        """Read the body of the answer."""
        answer.int32()
        return answer.array(lambda: _described(answer))[0]


def _write_broker(out: MessageWriter, broker: int) -> None:
    out.int8(_BROKER_RESOURCE)
    out.text(str(broker))
    out.array(None, out.text)
    out.no_tags()


def _described(answer: MessageReader) -> DescribedBroker:
    code, reason = answer.int16(), answer.nullable_text()
    answer.int8()
    answer.text()
    settings = dict(answer.array(lambda: _setting(answer)))
    answer.tags()
    return DescribedBroker(code, reason, settings)


def _setting(answer: MessageReader) -> tuple[str, BrokerSetting]:
    name, value = answer.text(), answer.nullable_text()
    answer.boolean()
    source = answer.int8()
    is_secret = answer.boolean()
    answer.array(lambda: (answer.text(), answer.nullable_text(), answer.int8(), answer.tags()))
    answer.int8()
    answer.nullable_text()
    answer.tags()
    return name, BrokerSetting(None if is_secret else value, source in _OF_THE_BROKER)


@dataclass(frozen=True, slots=True)
class DescribedLogDir:
    """One log folder: its disk, where that is told, and the bytes of each partition in it."""

    code: int
    path: str
    sizes: Mapping[tuple[str, int], int]
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True)
class DescribedLogDirs:
    """All log folders of a broker, or the code that stands instead of them."""

    code: int
    log_dirs: tuple[DescribedLogDir, ...]


class LogDirsRequest(Request[DescribedLogDirs]):
    """Asks a broker for its log folders, with all that is in them."""

    api = MessageType("DescribeLogDirs", 35, (4, 3))

    def write(self, out: MessageWriter, version: int) -> None:
        out.array(None, out.text)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> DescribedLogDirs:
        """Read the body of the answer."""
        answer.int32()
        code = answer.int16()
        return DescribedLogDirs(code, tuple(answer.array(lambda: _log_dir(answer, version))))


def _log_dir(answer: MessageReader, version: int) -> DescribedLogDir:
    code, path = answer.int16(), answer.text()
    sizes: dict[tuple[str, int], int] = {}
    answer.array(lambda: _add_topic(answer, sizes))
    total, usable = (answer.int64(), answer.int64()) if version >= 4 else (-1, -1)
    answer.tags()
    return DescribedLogDir(
        code, path, sizes, total if total >= 0 else None, usable if usable >= 0 else None
    )


def _add_topic(answer: MessageReader, sizes: dict[tuple[str, int], int]) -> None:
    topic = answer.text()
    answer.array(lambda: _add_partition(answer, topic, sizes))
    answer.tags()


def _add_partition(answer: MessageReader, topic: str, sizes: dict[tuple[str, int], int]) -> None:
    partition, size = answer.int32(), answer.int64()
    answer.int64()
    answer.boolean()
    answer.tags()
    sizes[topic, partition] = size
