"""The identities of Kafka's tiered storage. A user partition is (topic id, name, partition)."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Self

from rlmm.base.topic_names import is_topic_name, require_topic_name
from rlmm.errors import InvalidArgument
from rlmm.metadata.varint import encode_varint

UUID_BYTES = 16
NAME_BYTES_MAX = 32_767
"""Longest topic name, in UTF-8 bytes, that Kafka's string form can carry."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_UUID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")


def require_int32(name: str, value: int) -> None:
    if type(value) is not int or not INT32_MIN <= value <= INT32_MAX:
        msg = f"{name} must be a 32-bit integer, got {value!r}"
        raise InvalidArgument(msg)


def require_int64(name: str, value: int) -> None:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        msg = f"{name} must be a 64-bit integer, got {value!r}"
        raise InvalidArgument(msg)


def require_uuid(name: str, value: object) -> None:
    if not isinstance(value, bytes) or len(value) != UUID_BYTES:
        got = f"{len(value)}" if isinstance(value, bytes) else repr(value)
        msg = f"a {name} has {UUID_BYTES} bytes, got {got}"
        raise InvalidArgument(msg)


class Uuid(bytes):
    """
    Kafka's Uuid: 16 bytes, most significant half first, printed as 22 characters of URL-safe
    base64.
    """

    __slots__ = ()

    def __new__(cls, value: bytes) -> Self:
        if len(value) != UUID_BYTES:
            msg = f"a uuid has {UUID_BYTES} bytes, got {len(value)}"
            raise InvalidArgument(msg)
        return super().__new__(cls, value)

    @classmethod
    def of(cls, msb: int, lsb: int) -> Self:
        require_int64("most significant half", msb)
        require_int64("least significant half", lsb)
        return cls(msb.to_bytes(8, signed=True) + lsb.to_bytes(8, signed=True))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Kafka's text form: padding absent or complete, and bits beyond 16 bytes dropped."""
        if _UUID_TEXT.fullmatch(text) is None:
            msg = f"a uuid is written as 22 characters of URL-safe base64, got {text!r}"
            raise InvalidArgument(msg)
        return cls(base64.urlsafe_b64decode(text[:22] + "=="))

    @property
    def msb(self) -> int:
        return int.from_bytes(self[:8], signed=True)

    @property
    def lsb(self) -> int:
        return int.from_bytes(self[8:], signed=True)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).rstrip(b"=").decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({self})"


@dataclass(frozen=True, slots=True)
class TopicIdPartition:
    topic_id: Uuid
    topic: str
    partition: int
    key: bytes = field(init=False, repr=False, compare=False)
    """The canonical key: name, id and number as in a record, made once for all questions."""

    def __post_init__(self) -> None:
        require_uuid("topic id", self.topic_id)
        require_int32("partition", self.partition)
        try:
            name = self.topic.encode()
        except (UnicodeEncodeError, AttributeError) as error:
            msg = f"topic name cannot be written as UTF-8: {self.topic!r}"
            raise InvalidArgument(msg) from error
        number = self.partition.to_bytes(4, signed=True)
        object.__setattr__(
            self, "key", b"".join((encode_varint(len(name) + 1), name, self.topic_id, number))
        )

    def __str__(self) -> str:
        return f"{self.topic_id}:{self.topic}-{self.partition}"


def is_possible(partition: TopicIdPartition) -> bool:
    """Return whether a broker can have *partition*; the log may hold events of any other."""
    return partition.partition >= 0 and is_topic_name(partition.topic)


def require_possible(partition: TopicIdPartition) -> None:
    """Raise `InvalidArgument` for a partition that no broker can have."""
    require_topic_name(partition.topic)
    if partition.partition < 0:
        msg = f"a partition has a number from 0, got {partition.partition} of {partition.topic}"
        raise InvalidArgument(msg)


@dataclass(frozen=True, slots=True)
class SegmentId:
    """One attempt to copy a log segment: every attempt has an id of its own."""

    partition: TopicIdPartition
    uuid: Uuid

    def __post_init__(self) -> None:
        require_partition(self.partition)
        require_uuid("segment id", self.uuid)

    def __str__(self) -> str:
        return f"{self.partition}/{self.uuid}"


def require_partition(value: object) -> None:
    if not isinstance(value, TopicIdPartition):
        msg = f"a user partition must be a TopicIdPartition, got {value!r}"
        raise InvalidArgument(msg)


def require_segment_id(value: object) -> None:
    if not isinstance(value, SegmentId):
        msg = f"a segment's id must be a SegmentId, got {value!r}"
        raise InvalidArgument(msg)


_SET_PARTITION = SegmentId.__dict__["partition"].__set__
_SET_UUID = SegmentId.__dict__["uuid"].__set__


def trusted_segment_id(partition: TopicIdPartition, uuid: bytes) -> SegmentId:
    """Return the id of a segment whose 16 bytes of *uuid* were checked before."""
    segment_id = object.__new__(SegmentId)
    _SET_PARTITION(segment_id, partition)
    _SET_UUID(segment_id, bytes.__new__(Uuid, uuid))
    return segment_id
