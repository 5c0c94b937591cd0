"""Kafka's small text files."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Callable

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


OFFSETS = (b"0\n1\norders 1\n", b"0\n1\norders x 1\n", b"0\n1\na 1 x\n")
UNREADABLE: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "version": (parse_epochs, b"1\n0\n"),
    "no count": (parse_epochs, b"0\n"),
    "fewer lines": (parse_epochs, b"0\n2\n4 0\n"),
    "blank last line": (parse_epochs, b"0\n1\n4 0\n\n"),
    "one field": (parse_epochs, b"0\n1\n4\n"),
    "negative": (parse_epochs, b"0\n1\n4 -1\n"),
    "too large": (parse_epochs, b"0\n1\n4 99999999999999999999\n"),
    "thousands of digits": (parse_epochs, b"0\n1\n4 " + b"9" * 5_000 + b"\n"),
    "count of thousands of digits": (parse_epochs, b"0\n" + b"9" * 5_000 + b"\n4 0\n"),
    "zeros": (parse_epochs, b"\0\0\0\0"),
    "no text": (parse_epochs, b"\xff\xfe"),
    **{f"no offset {at}": (parse_offsets, content) for at, content in enumerate(OFFSETS)},
    "metadata: empty": (parse_partition_metadata, b""),
    "metadata: no id": (parse_partition_metadata, b"version: 0\n"),
    "metadata: no version": (parse_partition_metadata, b"topic_id: AAECAwQFBgcICQoLDA0ODw"),
    "metadata: zero id": (
        parse_partition_metadata,
        b"version: 0\ntopic_id: " + b"A" * 22,
    ),
    "metadata: short": (parse_partition_metadata, b"version: 0\ntopic_id: AAEC"),
    "metadata: no base64": (parse_partition_metadata, b"version: 0\ntopic_id: !!!!"),
    "metadata: no text": (parse_partition_metadata, b"\xff"),
}


@pytest.mark.parametrize(("parse", "content"), UNREADABLE.values(), ids=UNREADABLE)
def test_file_when_not_kafkas_then_is_unreadable_as_a_whole(
    parse: Callable[[bytes], object], content: bytes
) -> None:
    """One wrong line makes a check point unreadable, and so is a file without a topic id."""
    assert isinstance(parse(content), CheckpointFault)


def test_offsets_when_written_then_are_read_back() -> None:
    """The file returns one offset for each partition."""
    offsets = {TopicPartition("orders", 1): 120, TopicPartition("a-b", 0): 0}
    content = format_offsets(offsets)
    assert content == b"0\n2\norders 1 120\na-b 0 0\n"
    assert parse_offsets(content) == offsets


def test_partition_metadata_when_written_then_is_kafkas_bytes() -> None:
    """The topic id is written as a broker does, without a last newline."""
    topic_id = bytes(range(16))
    assert format_partition_metadata(topic_id) == KAFKAS_METADATA
    assert parse_partition_metadata(KAFKAS_METADATA) == topic_id
    assert parse_partition_metadata(KAFKAS_METADATA.replace(b" 0", b" 1")) == topic_id
