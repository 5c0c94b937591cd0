"""The codec against Kafka's record values, and the refusal of values that stop brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument, NotPublishable
from rlmm.metadata.decoding import decode, decode_name, decode_partition_key
from rlmm.metadata.encoding import encode, encode_any
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.record_layout import VALUE_BYTES_MAX
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.varint import encode_varint
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from tests.support.builders import partition_delete, segment_id, started, tp, update
from tests.support.records import golden, value_bytes

if TYPE_CHECKING:
    from tests.support.records.golden import Golden

UNPUBLISHABLE = {"seg_custom_empty_state3", "snapshot", "snapshot_txn", "upd_unicode_extreme"}
"""Kafka's serialiser makes them, and its consumer stops on them."""


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in golden.ALL])
def test_value_when_kafka_made_it_then_decodes_and_encodes_as_there(one: Golden) -> None:
    """The codec reads every field as Kafka wrote it, and writes the same bytes."""
    event = decode(one.value)
    assert event == one.event
    assert type(event) is type(one.event)
    assert encode_any(one.event).hex() == one.value.hex()
    if one.name not in UNPUBLISHABLE:
        assert encode(one.event) == one.value


def test_values_when_kafka_made_them_then_cover_every_kind_and_state() -> None:
    """The golden values have every record kind and every state."""
    kinds = {type(one.event) for one in golden.ALL}
    assert kinds == {SegmentMetadata, SegmentUpdate, PartitionDelete, SegmentSnapshot}
    states = {one.event.state for one in golden.ALL if type(one.event.state) is SegmentState}
    assert states == set(SegmentState)


def _custom_bytes(custom: bytes | None) -> int:
    if custom is None:
        return 1
    return (1 if len(custom) + 1 < 128 else 2) + len(custom)


@pytest.mark.parametrize("name", ["", "t", "orders", 126 * "n"], ids=len)
@pytest.mark.parametrize(
    "custom",
    [None, b"", b"1", bytes(126), bytes(127)],
    ids=lambda c: "none" if c is None else len(c),
)
def test_size_of_a_value_is_the_sum_of_its_parts(name: str, custom: bytes | None) -> None:
    """The size of a value is the sum of its parts: nothing is padded and nothing is left out."""
    partition = tp(name)
    custom_bytes = _custom_bytes(custom)
    for epochs in (1, 2, 126):
        for txn_index_empty in (False, True):
            event = started(
                segment_id(1, partition),
                epochs=[(epoch, epoch) for epoch in range(epochs)],
                custom_metadata=custom,
                txn_index_empty=txn_index_empty,
            )
            tags = 4 if txn_index_empty else 1
            assert len(encode_any(event)) == 84 + len(name) + 13 * epochs + custom_bytes + tags
    finish = update(
        segment_id(1, partition), SegmentState.COPY_SEGMENT_FINISHED, custom_metadata=custom
    )
    assert len(encode_any(finish)) == 56 + len(name) + custom_bytes
    delete = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, partition)
    assert len(encode_any(delete)) == 39 + len(name)


@pytest.mark.parametrize(
    ("number", "hexadecimal"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (16_256, "807f"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2_097_151, "ffff7f"),
        (2_097_152, "80808001"),
        (2**31 - 1, "ffffffff07"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_varint_when_written_then_is_minimal(number: int, hexadecimal: str) -> None:
    """Seven bits a byte, the low ones first, and no byte more than it takes."""
    assert encode_varint(number).hex() == hexadecimal


@pytest.mark.parametrize(
    ("count", "length_field"), [(126, b"\x7f"), (127, b"\x80\x01"), (128, b"\x81\x01")]
)
def test_array_of_more_than_126_has_a_count_of_two_bytes(count: int, length_field: bytes) -> None:
    """Counts and lengths of names and epochs grow as those of custom metadata do."""
    pairs = [(epoch, epoch) for epoch in range(count)]
    event = started(segment_id(1, tp(count * "n")), epochs=pairs)
    value = encode(event)
    assert value[3:].startswith(length_field + b"nn")
    at = len(value) - 13 * count - 4 - 1 - 1 - 1 - len(length_field)
    assert value[at:].startswith(length_field + b"\x00\x00\x00\x00")
    assert decode(value) == event


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


@pytest.mark.parametrize(
    ("event", "message"),
    [
        *(
            pytest.param(
                started("a", state=state),
                rf"its first record must be COPY_SEGMENT_STARTED, not {state.name}",
                id=f"first-record-{state.name}",
            )
            for state in SegmentState
            if state is not SegmentState.COPY_SEGMENT_STARTED
        ),
        pytest.param(
            update("a", SegmentState.COPY_SEGMENT_STARTED),
            "an update to COPY_SEGMENT_STARTED stops a broker's consumer",
            id="update-to-started",
        ),
        pytest.param(golden.SNAPSHOT.event, "a snapshot record names no partition", id="snapshot"),
        pytest.param(
            started("a", custom_metadata=bytes(VALUE_BYTES_MAX)),
            rf"record value of \d+ bytes, at most {VALUE_BYTES_MAX}",
            id="value-too-large",
        ),
        pytest.param(None, "NoneType", id="tombstone"),
        pytest.param(b"\x01\x00\x00", "bytes", id="bytes"),
        pytest.param(Undecodable(UndecodableReason.TOMBSTONE), "Undecodable", id="undecodable"),
    ],
)
def test_f59_event_when_a_brokers_consumer_would_stop_then_is_not_encoded(
    event: Any, message: str
) -> None:
    """The encoder refuses an event that would stop a stock broker's consumer for good."""
    with pytest.raises(NotPublishable, match=message):
        encode(event)


@pytest.mark.parametrize(
    "partition",
    [
        *(
            pytest.param(tp(name), id=repr(name[:20]))
            for name in (
                "",
                ".",
                "..",
                "a/b",
                "../../x",
                "a b",
                "a\x00",
                "a\n",
                "\u00e9",
                250 * "n",
            )
        ),
        pytest.param(tp("orders", -1), id="negative-number"),
    ],
)
def test_event_when_no_broker_can_have_its_partition_then_is_not_encoded(
    partition: TopicIdPartition,
) -> None:
    """No event is published about a partition that no broker can have."""
    for event in (
        started(segment_id("a", partition)),
        update(segment_id("a", partition), SegmentState.COPY_SEGMENT_FINISHED),
        partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, partition),
    ):
        with pytest.raises(InvalidArgument, match=r"a topic name is 1 to 249 of|a number from 0"):
            encode(event)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(started("a"), id="first-record"),
        *(
            pytest.param(update("a", state), id=f"update-{state.name}")
            for state in SegmentState
            if state is not SegmentState.COPY_SEGMENT_STARTED
        ),
        *(pytest.param(partition_delete(state), id=state.name) for state in PartitionDeleteState),
        pytest.param(started(segment_id("a", tp(249 * "n"))), id="longest-name"),
        pytest.param(started(segment_id("a", tp("A-z0._"))), id="every-character"),
        pytest.param(started("a", custom_metadata=bytes(200_000)), id="large-custom-metadata"),
    ],
)
def test_f59_event_when_brokers_write_it_too_then_is_frame_1_version_0(event: Any) -> None:
    """Published events have the form of brokers, and decode to the same event."""
    value = encode(event)
    assert value[0] == 1
    assert value[1] in (0, 1, 2)
    assert value[2] == 0
    assert decode(value) == event


def test_f59_value_when_at_the_limit_then_is_encoded_and_read() -> None:
    """The largest value that is written is one that is read."""
    event = started("a", custom_metadata=b"")
    room = VALUE_BYTES_MAX - len(encode(event)) - 3  # three more bytes for the length itself
    largest = replace(event, custom_metadata=bytes(room))
    value = encode(largest)
    assert len(value) == VALUE_BYTES_MAX
    assert decode(value) == largest
    with pytest.raises(NotPublishable, match="record value"):
        encode(replace(event, custom_metadata=bytes(room + 1)))
