"""Topic names as they stand in records: malformed bytes, growth, and the key of a partition."""

from __future__ import annotations

import pytest

from rlmm.metadata.decoding import decode, decode_name, decode_partition_key
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata
from tests.support.records import value_bytes

ORDERS = TopicIdPartition(Uuid.of(0, 0xCA), "orders", 7)

HUGE = b"\xff\xff\xff\xff\x07"
"""The varint 2,147,483,647."""
OVERLONG = b"\xff\xff\xff\xff\xff\x01"

JAVA_TEXTS = [
    ("00", "\x00"),
    ("80", "?"),
    ("bf", "?"),
    ("c0", "?"),
    ("c080", "??"),
    ("c1bf", "??"),
    ("c2", "?"),
    ("c241", "?A"),
    ("c2c2", "??"),
    ("c3a9", "\u00e9"),
    ("e0", "?"),
    ("e080", "??"),
    ("e08080", "???"),
    ("e09fbf", "???"),
    ("e0a0", "?"),
    ("e0a041", "?A"),
    ("e0a080", "\u0800"),
    ("e182", "?"),
    ("e1e182", "??"),
    ("41e28241", "A?A"),
    ("ed41", "?A"),
    ("ed9fbf", "\ud7ff"),
    ("eda0", "?"),
    ("eda041", "?A"),
    ("eda080", "?"),
    ("edbfbf", "?"),
    ("eda0bdedb880", "??"),
    ("eda0eda080", "??"),
    ("e2eda080", "??"),
    ("ee8080", "\ue000"),
    ("efbfbe", "\ufffe"),
    ("f0", "?"),
    ("f08080", "???"),
    ("f0808080", "????"),
    ("f08fbfbf", "????"),
    ("f090", "?"),
    ("f09080", "?"),
    ("f0908041", "?A"),
    ("f090eda080", "??"),
    ("41f09f4142", "A?AB"),
    ("f09f9880", "\U0001f600"),
    ("f48fbfbf", "\U0010ffff"),
    ("f490", "??"),
    ("f4908080", "????"),
    ("f5808080", "????"),
    ("f8888080af80", "??????"),
    ("fc8080808080", "??????"),
    ("fe", "?"),
    ("ff", "?"),
]
"""Bytes and what Java 17 makes of them as a string, `?` standing for U+FFFD."""


@pytest.mark.parametrize(
    ("raw", "text"), [pytest.param(raw, text, id=raw) for raw, text in JAVA_TEXTS]
)
def test_f64_name_when_malformed_then_is_replaced_as_java_replaces(raw: str, text: str) -> None:
    """Malformed bytes become as many U+FFFD as in Java, so both see the same topic."""
    assert decode_name(bytes.fromhex(raw)) == text.replace("?", "\ufffd")


def test_f64_name_when_it_grows_by_replacement_then_is_still_read() -> None:
    """A name of legal length whose bytes are all malformed is three times as long once read."""
    event = decode(value_bytes.segment_value(name=b"\x80\x80\x02" + 32_767 * b"\x80"))
    assert isinstance(event, SegmentMetadata)
    partition = event.id.partition
    assert partition.topic == 32_767 * "\ufffd"
    assert decode_partition_key(partition.key) == partition


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00" + value_bytes.TOPIC_ID + value_bytes.PARTITION, id="null-name"),
        pytest.param(
            value_bytes.NAME + value_bytes.TOPIC_ID + value_bytes.PARTITION[:-1], id="short"
        ),
        pytest.param(
            value_bytes.NAME + value_bytes.TOPIC_ID + value_bytes.PARTITION + b"\x00", id="long"
        ),
        pytest.param(HUGE + b"orders", id="huge-name"),
        pytest.param(OVERLONG, id="bad-varint"),
    ],
)
def test_partition_key_when_it_is_something_else_then_is_none(key: bytes) -> None:
    """Bytes that are no partition key read as None."""
    assert decode_partition_key(key) is None


def test_partition_key_when_written_then_reads_back() -> None:
    """A key is the record's own fields, and holds the whole identity."""
    key = ORDERS.key
    assert key == value_bytes.NAME + value_bytes.TOPIC_ID + value_bytes.PARTITION
    assert decode_partition_key(key) == ORDERS
