"""
Names of the folders and files of partitions, as Kafka makes them. Pure.

A partition's folder is `<topic>-<number>`, a segment's files carry its base offset in 20 digits.
Other forms (`...-delete`, `...-future`, `.deleted`, `.swap`) are no part of a log.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rlmm.base.topic_names import TOPIC_NAME, require_topic_name
from rlmm.errors import InvalidArgument

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
COMPANIONS = (OFFSET_INDEX, TIME_INDEX, ".txnindex", ".snapshot")
"""Suffixes of the files that live and die with a segment's `.log`."""

EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEAN_END = ".kafka_cleanshutdown"
LOCK = ".lock"

PARTITION_MAX = 2**31 - 1
_FOLDER = re.compile(rf"(?P<topic>{TOPIC_NAME})-(?P<number>0|[1-9][0-9]{{0,9}})")
_SEGMENT = re.compile(r"(?P<base_offset>[0-9]{20})(?P<suffix>\.[a-z]+)")


class TopicPartition(NamedTuple):
    """A partition of a topic, by name."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


def topic_partition(topic: str, number: int) -> TopicPartition:
    """Check a name that comes from outside: a folder of that name must be Kafka's, and ours."""
    require_topic_name(topic)
    if type(number) is not int or not 0 <= number <= PARTITION_MAX:
        raise InvalidArgument(f"a partition is numbered 0 to {PARTITION_MAX}, got {number!r}")
    return TopicPartition(topic, number)


def parse_folder(name: str) -> TopicPartition | None:
    """Read a folder's name; None when it is no partition's."""
    found = _FOLDER.fullmatch(name)
    if found is None or int(found["number"]) > PARTITION_MAX:
        return None
    return TopicPartition(found["topic"], int(found["number"]))


def segment_file(base_offset: int, suffix: str) -> str:
    """Name one file of the segment that begins at *base_offset*."""
    return f"{base_offset:020d}{suffix}"


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """Read base offset and suffix from a file's name; None when it is no segment's."""
    found = _SEGMENT.fullmatch(name)
    if found is None:
        return None
    return int(found["base_offset"]), found["suffix"]
