"""Kafka's names of folders and files, and its small text files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from rlmm.partition_log.checkpoints import (
    CheckpointFault,
    format_epochs,
    format_offsets,
    format_partition_metadata,
    parse_epochs,
    parse_offsets,
    parse_partition_metadata,
)
from rlmm.partition_log.names import (
    TopicPartition,
    parse_folder,
    parse_segment_file,
    segment_file,
    topic_partition,
)

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """A name that leads out of the folder is refused, and a number outside 32 bits."""
    with pytest.raises(InvalidArgument, match="topic name"):
        topic_partition(topic, 0)
    for number in (-1, 2**31, True):
        with pytest.raises(InvalidArgument, match="partition"):
            topic_partition("orders", number)


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
    "metadata: zero id": (parse_partition_metadata, b"version: 0\ntopic_id: " + b"A" * 22),
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
