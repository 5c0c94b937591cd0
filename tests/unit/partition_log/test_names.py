"""Kafka's names of folders and files."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from rlmm.partition_log.names import (
    TopicPartition,
    parse_folder,
    parse_segment_file,
    segment_file,
    topic_partition,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("orders-0", TopicPartition("orders", 0), id="plain"),
        pytest.param("a-b-12", TopicPartition("a-b", 12), id="dashes"),
        pytest.param("__offsets-49", TopicPartition("__offsets", 49), id="internal"),
        pytest.param("orders-2147483647", TopicPartition("orders", 2**31 - 1), id="largest"),
        pytest.param("orders-2147483648", None, id="too-large"),
        pytest.param("orders-00", None, id="leading-zero"),
        pytest.param("orders", None, id="no-number"),
        pytest.param("orders-0.1224dda87bcf4a90a1e1b48867104d54-delete", None, id="deleted"),
        pytest.param("orders-0.1224dda87bcf4a90a1e1b48867104d54-future", None, id="future"),
        pytest.param("orders-0-stray", None, id="stray"),
        pytest.param("or ders-0", None, id="space"),
    ],
)  # fmt: skip
def test_folder_name_when_parsed_names_one(name: str, expected: TopicPartition | None) -> None:
    """The parser accepts exactly Kafka's names of partition folders."""
    assert parse_folder(name) == expected
    if expected is not None:
        assert str(expected) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("00000000000000000120.log", (120, ".log"), id="log"),
        pytest.param("00000000000000000120.timeindex", (120, ".timeindex"), id="timeindex"),
        pytest.param("00000000000000000120.log.deleted", None, id="deleted"),
        pytest.param("120.log", None, id="short"),
        pytest.param("leader-epoch-checkpoint", None, id="other"),
    ],
)
def test_segment_file_when_parsed_then_gives_its_base_offset(
    name: str, expected: tuple[int, str] | None
) -> None:
    """A segment's file carries its base offset in 20 digits."""
    assert parse_segment_file(name) == expected
    if expected is not None:
        assert segment_file(*expected) == name


@pytest.mark.parametrize("topic", ["", "..", "a/b", "a" * 250, "ä"])
def test_topic_when_it_could_name_another_folder_then_is_refused(topic: str) -> None:
    """A topic name that leads out of the folder is refused."""
    with pytest.raises(InvalidArgument, match="topic name"):
        topic_partition(topic, 0)


@pytest.mark.parametrize("number", [-1, 2**31, True])
def test_partition_number_when_kafka_has_none_such_then_is_refused(number: int) -> None:
    """Partitions are numbered from 0 in 32 bits."""
    with pytest.raises(InvalidArgument, match="partition"):
        topic_partition("orders", number)
