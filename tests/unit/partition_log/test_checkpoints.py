"""Kafka's small text files."""

from __future__ import annotations

import pytest

from rlmm.partition_log.checkpoints import (
    CheckpointFault,
    format_epochs,
    format_offsets,
    format_partition_metadata,
    parse_epochs,
    parse_offsets,
    parse_partition_metadata,
)
from rlmm.partition_log.names import TopicPartition

KAFKAS_EPOCHS = bytes.fromhex("300a320a3420300a36203235310a")
KAFKAS_METADATA = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"


def test_epochs_when_written_then_are_kafkas_bytes() -> None:
    """The check point of leader epochs is byte for byte a broker's."""
    assert format_epochs([(4, 0), (6, 251)]) == KAFKAS_EPOCHS
    assert parse_epochs(KAFKAS_EPOCHS) == [(4, 0), (6, 251)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", [], id="empty-file"),
        pytest.param(b"0\n0\n", [], id="none"),
        pytest.param(b"0\n1\n4 0", [(4, 0)], id="no-last-newline"),
        pytest.param(b"0\r\n1\r\n4 0\r\n", [(4, 0)], id="crlf"),
    ],
)
def test_epochs_when_kafka_reads_them_then_so_do_we(
    content: bytes, expected: list[tuple[int, int]]
) -> None:
    """The parser reads every file of epochs that a broker reads."""
    assert parse_epochs(content) == expected


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"1\n0\n", id="version"),
        pytest.param(b"0\n", id="no-count"),
        pytest.param(b"0\n2\n4 0\n", id="fewer-lines"),
        pytest.param(b"0\n1\n4 0\n\n", id="blank-last-line"),
        pytest.param(b"0\n1\n4\n", id="one-field"),
        pytest.param(b"0\n1\n4 -1\n", id="negative"),
        pytest.param(b"0\n1\n4 99999999999999999999\n", id="too-large"),
        pytest.param(b"0\n1\n4 " + b"9" * 5_000 + b"\n", id="thousands-of-digits"),
        pytest.param(b"0\n" + b"9" * 5_000 + b"\n4 0\n", id="count-of-thousands-of-digits"),
        pytest.param(b"\0\0\0\0", id="zeros"),
        pytest.param(b"\xff\xfe", id="no-text"),
    ],
)
def test_epochs_when_not_kafkas_then_are_unreadable(content: bytes) -> None:
    """A damaged check point is unreadable as a whole."""
    assert isinstance(parse_epochs(content), CheckpointFault)


def test_offsets_when_written_then_are_read_back() -> None:
    """The file returns one offset for each partition."""
    offsets = {TopicPartition("orders", 1): 120, TopicPartition("a-b", 0): 0}
    content = format_offsets(offsets)
    assert content == b"0\n2\norders 1 120\na-b 0 0\n"
    assert parse_offsets(content) == offsets


@pytest.mark.parametrize("content", [b"0\n1\norders 1\n", b"0\n1\norders x 1\n", b"0\n1\na 1 x\n"])
def test_offsets_when_a_line_is_no_offset_then_are_unreadable(content: bytes) -> None:
    """One wrong line makes the whole check point unreadable."""
    assert isinstance(parse_offsets(content), CheckpointFault)


def test_partition_metadata_when_written_then_is_kafkas_bytes() -> None:
    """The topic id is written as a broker does, without a last newline."""
    topic_id = bytes(range(16))
    assert format_partition_metadata(topic_id) == KAFKAS_METADATA
    assert parse_partition_metadata(KAFKAS_METADATA) == topic_id
    assert parse_partition_metadata(KAFKAS_METADATA.replace(b" 0", b" 1")) == topic_id


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"version: 0\n", id="no-id"),
        pytest.param(b"topic_id: AAECAwQFBgcICQoLDA0ODw", id="no-version"),
        pytest.param(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", id="zero-id"),
        pytest.param(b"version: 0\ntopic_id: AAEC", id="short"),
        pytest.param(b"version: 0\ntopic_id: !!!!", id="no-base64"),
        pytest.param(b"\xff", id="no-text"),
    ],
)
def test_partition_metadata_when_it_names_no_topic_then_is_unreadable(content: bytes) -> None:
    """A file without a topic id is unreadable."""
    assert isinstance(parse_partition_metadata(content), CheckpointFault)
