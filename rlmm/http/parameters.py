"""
The query parameters of a URL, and how each is read.

Invariant: an unknown parameter, or one given twice, is refused by name, as the answer would
surprise the client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, SegmentId, TopicIdPartition, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rlmm.views.values import View

_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_WORDS: Final = {"true": True, "1": True, "": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    description: str
    schema: View
    read: Callable[[str, str], Any]
    is_required: bool = False


def read_text(name: str, text: str) -> str:
    if not text:
        msg = f"{name} must not be empty"
        raise InvalidArgument(msg)
    return text


def read_uuid(name: str, text: str) -> Uuid:
    try:
        return Uuid.parse(text)
    except InvalidArgument as error:
        msg = f"{name}: {error}"
        raise InvalidArgument(msg) from None


def _whole(most: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if _NUMBER.fullmatch(text) is None or int(text) > most:
            msg = f"{name} must be a number from 0 to {most}, got {text!a:.80}"
            raise InvalidArgument(msg)
        return int(text)

    return read


read_int32, read_int64 = _whole(INT32_MAX), _whole(INT64_MAX)


def read_flag(name: str, text: str) -> bool:
    if text not in _WORDS:
        msg = f"{name} must be true or false, got {text!a:.80}"
        raise InvalidArgument(msg)
    return _WORDS[text]


def read_offsets(name: str, text: str) -> dict[int, int]:
    """Read a read token: `PARTITION:OFFSET`, with commas between them."""
    found: dict[int, int] = {}
    for pair in text.split(","):
        place, colon, offset = pair.strip().partition(":")
        if not colon:
            msg = f"{name} is METADATA_PARTITION:OFFSET, with commas between, got {pair!a:.80}"
            raise InvalidArgument(msg)
        number = read_int32(f"a metadata partition in {name}", place)
        if number in found:
            msg = f"{name} names metadata partition {number} twice"
            raise InvalidArgument(msg)
        # Behind nothing at all stands an offset of -1.
        found[number] = -1 if offset == "-1" else read_int64(f"an offset in {name}", offset)
    return found


UINT31: Final[View] = {"type": "integer", "minimum": 0, "maximum": INT32_MAX}
UINT63: Final[View] = {"type": "integer", "format": "int64", "minimum": 0, "maximum": INT64_MAX}
UUID: Final[View] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{22}(==)?$"}
TEXT: Final[View] = {"type": "string", "minLength": 1}
FLAG: Final[View] = {"anyOf": [{"type": "boolean"}, {"enum": ["", "0", "1"]}]}
_OFFSET_PATTERN: Final = r"\s*(0|[1-9][0-9]{0,9}):(-1|0|[1-9][0-9]{0,18})\s*"
OFFSETS: Final[View] = {
    "type": "string",
    "pattern": f"^{_OFFSET_PATTERN}(,{_OFFSET_PATTERN})*$",
    "examples": ["0:1041,7:3"],
}

CLUSTER: Final = Parameter(
    "cluster",
    "Name or id of the cluster; needed where several are served.",
    TEXT,
    read_text,
)
PARTITION: Final = (
    Parameter("topic_id", "Id of the topic, as Kafka writes it.", UUID, read_uuid, True),
    Parameter("topic", "Name of the topic.", TEXT, read_text, True),
    Parameter("partition", "Number of the partition.", UINT31, read_int32, True),
)
EPOCH: Final = Parameter("epoch", "Leader epoch.", UINT31, read_int32, True)
EPOCH_OR_ALL: Final = Parameter(
    "epoch", "Only what lists this leader epoch; otherwise all.", UINT31, read_int32
)
OFFSET: Final = Parameter("offset", "Offset of a record.", UINT63, read_int64, True)
SEGMENT_ID: Final = Parameter("segment_id", "Id of the segment.", UUID, read_uuid, True)
TIMEOUT: Final = Parameter(
    "timeout_ms",
    "How long the answer may wait for what it depends on, `http.wait_timeout_ms_max` at most; "
    "`gate.wait_timeout_ms` where it is not said.",
    UINT31,
    read_int32,
)
FRESHNESS: Final = (
    Parameter(
        "at_least",
        "Events at these offsets, by metadata partition, must have been applied: what `read-token` "
        "answers, or a write.",
        OFFSETS,
        read_offsets,
    ),
    Parameter(
        "linearizable",
        "Every event that was stored before the question must have been applied.",
        FLAG,
        read_flag,
    ),
    TIMEOUT,
)
FOLDER: Final = Parameter(
    "folder",
    "Log folder of a broker, as `partitions` tells it.",
    TEXT,
    read_text,
    True,
)
FILE_NAME: Final = Parameter("name", "Name of a file of the partition.", TEXT, read_text, True)
VERBOSE: Final = Parameter(
    "verbose", "Also the metadata partitions that are answered from.", FLAG, read_flag
)


def read_parameters(known: Iterable[Parameter], said: Iterable[tuple[str, str]]) -> dict[str, Any]:
    by_name = {one.name: one for one in known}
    values: dict[str, Any] = {}
    for name, text in said:
        parameter = by_name.get(name)
        if parameter is None:
            takes = ", ".join(by_name) or "none"
            msg = f"{name!a:.80} is no parameter here, known are {takes}"
            raise InvalidArgument(msg)
        if name in values:
            msg = f"{name} is said twice"
            raise InvalidArgument(msg)
        values[name] = parameter.read(name, text)
    for name, parameter in by_name.items():
        if parameter.is_required and name not in values:
            msg = f"{name} is missing: {parameter.description}"
            raise InvalidArgument(msg)
    return values


def partition_of(values: Mapping[str, Any]) -> TopicIdPartition:
    return TopicIdPartition(values["topic_id"], values["topic"], values["partition"])


def segment_id_of(values: Mapping[str, Any]) -> SegmentId:
    return SegmentId(partition_of(values), values["segment_id"])


_LOOKUP: Final = {"topic_id": str, "topic": str, "partition": int, "epoch": int, "offset": int}


def read_lookups(body: object, lookups_max: int) -> list[tuple[TopicIdPartition, int, int]]:
    if not isinstance(body, dict) or set(body) != {"lookups"}:
        raise InvalidArgument('the body must be an object {"lookups": [...]}')
    lookups = body["lookups"]
    if not isinstance(lookups, list) or len(lookups) > lookups_max:
        msg = f"lookups must be an array of at most {lookups_max}"
        raise InvalidArgument(msg)
    return [_read_lookup(number, one) for number, one in enumerate(lookups)]


def _read_lookup(number: int, one: object) -> tuple[TopicIdPartition, int, int]:
    where = f"look-up {number}"
    if not isinstance(one, dict) or set(one) != set(_LOOKUP):
        msg = f"{where} must be an object of {', '.join(_LOOKUP)}"
        raise InvalidArgument(msg)
    for name, kind in _LOOKUP.items():
        if kind is int and isinstance(one[name], float) and one[name].is_integer():
            one[name] = int(one[name])  # to JSON Schema 2.0 is an integer
        if type(one[name]) is not kind:
            msg = f"{where}: {name} must be a {'text' if kind is str else 'whole number'}"
            raise InvalidArgument(msg)
    topic_id = read_uuid(f"{where}: topic_id", one["topic_id"])
    partition = TopicIdPartition(topic_id, one["topic"], one["partition"])
    return partition, one["epoch"], one["offset"]
