"""Log directories of a broker, and the bytes of each partition in them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class DescribedLogDir:
    """One log directory; the bytes of its disk are None where the broker does not know them."""

    code: int
    path: str
    sizes: Mapping[tuple[str, int], int]
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True)
class DescribedLogDirs:
    """All log directories of a broker, or a code instead of them."""

    code: int
    log_dirs: tuple[DescribedLogDir, ...]


class LogDirsRequest(Request[DescribedLogDirs]):
    """Asks a broker for its log directories and everything in them."""

    api = MessageType("DescribeLogDirs", 35, (4, 3))

    def write(self, out: MessageWriter, version: int) -> None:
        out.array(None, out.text)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> DescribedLogDirs:
        answer.int32()
        code = answer.int16()
        log_dirs = answer.structs(lambda log_dir: _read_log_dir(log_dir, version))
        return DescribedLogDirs(code, tuple(log_dirs))


def _read_log_dir(answer: MessageReader, version: int) -> DescribedLogDir:
    code, path = answer.int16(), answer.text()
    topics = answer.by_topic(_read_size)
    total, usable = (answer.int64(), answer.int64()) if version >= 4 else (-1, -1)
    sizes = {(name, number): size for name, held in topics.items() for number, size in held.items()}
    return DescribedLogDir(
        code, path, sizes, total if total >= 0 else None, usable if usable >= 0 else None
    )


def _read_size(answer: MessageReader) -> tuple[int, int]:
    partition, size = answer.int32(), answer.int64()
    answer.int64()
    answer.boolean()
    return partition, size
