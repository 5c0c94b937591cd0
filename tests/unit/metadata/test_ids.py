"""Topic ids, user partitions and segment ids: their bytes, their texts and their refusals."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid, require_int32, require_int64
from rlmm.metadata.partitioner import metadata_partition_for

ZERO = "AAAAAAAAAAAAAAAAAAAAAA"
ORDERS_ID = Uuid.parse("OjSKW9lMTN6VnyEIzEU0nA")

KAFKA_TEXTS = [
    pytest.param("000000000000000000000000000000ca", "AAAAAAAAAAAAAAAAAAAAyg", id="ca"),
    pytest.param("00000000000000000000000000000001", "AAAAAAAAAAAAAAAAAAAAAQ", id="one"),
    pytest.param("00000000000000000000000000000000", ZERO, id="zero"),
    pytest.param("ffffffffffffffffffffffffffffffff", "_____________________w", id="all-ones"),
    pytest.param("7fffffffffffffff8000000000000000", "f_________-AAAAAAAAAAA", id="extremes"),
    pytest.param("069f530ddb894466bd439ae5bc224ec6", "Bp9TDduJRGa9Q5rlvCJOxg", id="random"),
    pytest.param("123e4567e89b42d3a456426614174000", "Ej5FZ-ibQtOkVkJmFBdAAA", id="with-dash"),
    pytest.param("0123456789abcdef0123456789abcdef", "ASNFZ4mrze8BI0VniavN7w", id="digits"),
]


@pytest.mark.parametrize(("hexadecimal", "text"), KAFKA_TEXTS)
def test_uuid_when_printed_then_is_kafkas_text(hexadecimal: str, text: str) -> None:
    """A uuid prints as Kafka prints it, and its text reads back to the same bytes."""
    uuid = Uuid(bytes.fromhex(hexadecimal))
    assert str(uuid) == text
    assert Uuid.parse(text) == uuid
    assert repr(uuid) == f"Uuid({text})"


@pytest.mark.parametrize(
    ("text", "hexadecimal"),
    [
        pytest.param(ZERO + "==", 32 * "0", id="complete-padding"),
        pytest.param(ZERO[:-1] + "B", 32 * "0", id="left-over-bits"),
        pytest.param("_____________________-==", 32 * "f", id="left-over-bits-and-padding"),
    ],
)
def test_uuid_text_when_java_reads_it_leniently_then_so_do_we(text: str, hexadecimal: str) -> None:
    """The parser accepts padding and ignores surplus bits, as Java's URL decoder does."""
    assert Uuid.parse(text) == bytes.fromhex(hexadecimal)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(ZERO[:-1], id="15-bytes"),
        pytest.param(ZERO + "A", id="23-characters"),
        pytest.param(ZERO + "AA", id="18-bytes"),
        pytest.param(ZERO + "=", id="half-padding"),
        pytest.param(ZERO + "===", id="25-characters"),
        pytest.param(ZERO[:-2] + "==", id="padding-too-early"),
        pytest.param("==" + ZERO, id="padding-first"),
        pytest.param("A" * 11 + "=" + "A" * 11, id="padding-inside"),
        pytest.param("+" + ZERO[1:], id="plus-of-the-other-alphabet"),
        pytest.param("/" + ZERO[1:], id="slash-of-the-other-alphabet"),
        pytest.param(" " + ZERO[1:], id="space"),
        pytest.param(ZERO + "\n", id="line-end"),
        pytest.param("\u0661" + ZERO[1:], id="foreign-digit"),
        pytest.param("\u00c4" + ZERO[1:], id="umlaut"),
        pytest.param("00000000-0000-0000-0000-000000000000", id="hexadecimal-form"),
    ],
)
def test_uuid_text_when_kafka_refuses_it_then_is_an_invalid_argument(text: str) -> None:
    """Text that Kafka's parser refuses is refused, and the message shows it."""
    with pytest.raises(InvalidArgument) as caught:
        Uuid.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_uuid_when_not_16_bytes_then_is_refused(size: int) -> None:
    """Every id refuses a uuid of another length than 16 bytes."""
    with pytest.raises(InvalidArgument, match=f"got {size}"):
        Uuid(bytes(size))
    with pytest.raises(InvalidArgument, match=f"got {size}"):
        TopicIdPartition(bytes(size), "orders", 0)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=f"got {size}"):
        SegmentId(TopicIdPartition(ORDERS_ID, "orders", 0), bytes(size))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("msb", "lsb", "hexadecimal"),
    [
        pytest.param(0, 0xCA, "000000000000000000000000000000ca", id="small"),
        pytest.param(-1, -2, "fffffffffffffffffffffffffffffffe", id="negative"),
        pytest.param(-(2**63), 2**63 - 1, "80000000000000007fffffffffffffff", id="extremes"),
    ],
)
def test_uuid_when_made_of_halves_then_is_big_endian(msb: int, lsb: int, hexadecimal: str) -> None:
    """The most significant half comes first, and both halves are signed numbers as in Java."""
    uuid = Uuid.of(msb, lsb)
    assert uuid.hex() == hexadecimal
    assert (uuid.msb, uuid.lsb) == (msb, lsb)


@pytest.mark.parametrize("half", [2**63, -(2**63) - 1])
def test_uuid_when_a_half_is_too_large_then_is_refused(half: int) -> None:
    """A uuid refuses a half that does not fit Java's long."""
    with pytest.raises(InvalidArgument, match="least significant half"):
        Uuid.of(0, half)
    with pytest.raises(InvalidArgument, match=r"most significant half"):
        Uuid.of(half, 0)


def test_uuid_when_compared_with_its_bytes_then_is_equal() -> None:
    """A uuid equals its bytes as a key of a dict."""
    assert {bytes(ORDERS_ID): 1}[ORDERS_ID] == 1


def test_user_partition_when_renamed_then_is_another() -> None:
    """Id, name and number make the identity, as in Kafka."""
    partition = TopicIdPartition(ORDERS_ID, "orders", 3)
    assert partition == TopicIdPartition(Uuid(bytes(ORDERS_ID)), "orders", 3)
    others = {
        TopicIdPartition(ORDERS_ID, "payments", 3),
        TopicIdPartition(ORDERS_ID, "orders", 4),
        TopicIdPartition(Uuid.of(0, 1), "orders", 3),
    }
    assert partition not in others
    assert len(others) == 3


def test_ids_when_printed_then_are_kafkas_text() -> None:
    """A user partition prints as `<id>:<name>-<number>`, a segment adds its own uuid."""
    partition = TopicIdPartition(ORDERS_ID, "orders", 3)
    assert str(partition) == "OjSKW9lMTN6VnyEIzEU0nA:orders-3"
    segment = SegmentId(partition, Uuid.parse("7V870kP2RF2vkhemwSMxug"))
    assert str(segment) == "OjSKW9lMTN6VnyEIzEU0nA:orders-3/7V870kP2RF2vkhemwSMxug"


@pytest.mark.parametrize("number", [-(2**31), -1, 0, 2**31 - 1])
def test_user_partition_when_its_number_is_odd_but_fits_then_is_accepted(number: int) -> None:
    """A negative partition number is accepted, as in Kafka."""
    assert TopicIdPartition(ORDERS_ID, "", number).partition == number


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(2**31, id="too-large"),
        pytest.param(-(2**31) - 1, id="too-small"),
        pytest.param(True, id="bool"),
        pytest.param(1.0, id="float"),
        pytest.param("1", id="text"),
        pytest.param(None, id="none"),
    ],
)
def test_user_partition_when_its_number_is_no_int32_then_is_refused(number: Any) -> None:
    """A number that the record's field cannot hold is refused before any I/O."""
    with pytest.raises(InvalidArgument, match="partition must be a 32-bit integer"):
        TopicIdPartition(ORDERS_ID, "orders", number)


def test_user_partition_when_its_name_has_no_utf8_form_then_is_refused() -> None:
    """A lone surrogate cannot be written into a record, so no partition carries one."""
    with pytest.raises(InvalidArgument, match="UTF-8"):
        TopicIdPartition(ORDERS_ID, "a\ud800", 0)


@pytest.mark.parametrize(
    ("require", "bits"),
    [pytest.param(require_int32, 32, id="int32"), pytest.param(require_int64, 64, id="int64")],
)
def test_number_at_its_bounds_then_fits_and_beyond_does_not(require: Any, bits: int) -> None:
    """Both bounds of a signed field are inclusive, and the error names the field."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    require("size", low)
    require("size", high)
    for value in (low - 1, high + 1, True, 1.0, None):
        with pytest.raises(InvalidArgument, match=f"size must be a {bits}-bit integer"):
            require("size", value)


def test_ids_when_made_then_cannot_be_changed() -> None:
    """Identities are values: they are keys of dictionaries and never change."""
    segment = SegmentId(TopicIdPartition(ORDERS_ID, "orders", 3), Uuid.of(0, 1))
    with pytest.raises(AttributeError):
        segment.uuid = Uuid.of(0, 2)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        segment.partition.topic = "payments"  # type: ignore[misc]


RANDOM = "069f530ddb894466bd439ae5bc224ec6"
VERSION_4 = "123e4567e89b42d3a456426614174000"

ALL = 2**31
"""A count above every hash, which shows all 31 bits of it."""
VECTORS = [
    ("000000000000000000000000000000ca", 7, {50: 31, 5: 1, 3: 2, 1: 0, ALL: 679247681}),
    ("00000000000000000000000000000001", 0, {50: 35, 5: 0, 3: 1, 1: 0, ALL: 1180230835}),
    ("00000000000000000000000000000000", 0, {50: 6, 5: 1, 3: 0, 1: 0, ALL: 2043291756}),
    ("00000000000000000000000000000000", 1, {50: 30, 5: 0, 3: 1, 1: 0, ALL: 56723830}),
    ("ffffffffffffffffffffffffffffffff", 0, {50: 6, 5: 1, 3: 0, 1: 0, ALL: 2043291756}),
    ("7fffffffffffffff8000000000000000", 2147483647, {50: 10, 5: 0, 3: 2, 1: 0, ALL: 27631910}),
    (RANDOM, 0, {50: 47, 5: 2, 3: 1, 1: 0, ALL: 1828911547}),
    (RANDOM, 1, {50: 37, 5: 2, 3: 1, 1: 0, ALL: 790541437}),
    (RANDOM, 2, {50: 12, 5: 2, 3: 0, 1: 0, ALL: 2119641612}),
    (RANDOM, 3, {50: 24, 5: 4, 3: 0, 1: 0, ALL: 338316174}),
    (VERSION_4, 0, {50: 42, 5: 2, 3: 1, 1: 0, ALL: 88168792}),
    (VERSION_4, 1, {50: 30, 5: 0, 3: 0, 1: 0, ALL: 566197230}),
    (VERSION_4, 49, {50: 25, 5: 0, 3: 1, 1: 0, ALL: 626526475}),
    ("0123456789abcdef0123456789abcdef", 5, {50: 20, 5: 0, 3: 0, 1: 0, ALL: 2113508970}),
    ("123456789abcdef00011223344556677", 0, {50: 6}),
    ("123456789abcdef00011223344556677", 1, {50: 36}),
    ("123456789abcdef00011223344556677", 3, {50: 2}),
    ("123456789abcdef00011223344556677", 7, {50: 26}),
    ("00000000000000000000000000000000", -2147483648, {97: 96}),
    ("ffffffffffffffffffffffffffffffff", 2147483647, {97: 5}),
    ("ffffffffffffffff8000000000000000", -2147483648, {97: 45}),
]
"""Topic id, partition, and count of metadata partitions -> answer of Kafka's own class."""


@pytest.mark.parametrize(
    ("topic_id", "partition", "count", "expected"),
    [
        pytest.param(topic_id, partition, count, expected, id=f"{topic_id}-{partition}-of-{count}")
        for topic_id, partition, answers in VECTORS
        for count, expected in answers.items()
    ],
)
def test_f56_partition_when_kafka_answered_then_we_answer_the_same(
    topic_id: str, partition: int, count: int, expected: int
) -> None:
    """The metadata partition is that of Kafka's own class, for every vector."""
    assert metadata_partition_for(bytes.fromhex(topic_id), partition, count) == expected


@pytest.mark.parametrize(
    ("topic_id", "partition", "count", "message"),
    [
        pytest.param(bytes(16), 0, 0, "at least one partition, got 0", id="none"),
        pytest.param(bytes(16), 0, -1, "at least one partition, got -1", id="fewer"),
        pytest.param(bytes(16), 0, -(2**31), "at least one partition, got -2147483648", id="least"),
        pytest.param(bytes(16), 2**31, 50, "partition must be a 32-bit integer", id="too-large"),
        pytest.param(bytes(16), -(2**31) - 1, 50, "partition must be a 32-bit", id="too-small"),
        pytest.param(bytes(16), None, 50, "partition must be a 32-bit integer", id="no-partition"),
        pytest.param(bytes(16), 1.0, 50, "partition must be a 32-bit integer", id="float"),
        pytest.param(b"", 0, 50, "got 0", id="empty-topic-id"),
        pytest.param(bytes(15), 0, 50, "got 15", id="short-topic-id"),
        pytest.param(bytes(17), 0, 50, "got 17", id="long-topic-id"),
    ],
)
def test_f56_partition_of_none_is_refused(
    topic_id: bytes, partition: Any, count: int, message: str
) -> None:
    """Counts, numbers and ids that Kafka cannot have are refused, and nothing wraps."""
    with pytest.raises(InvalidArgument, match=message):
        metadata_partition_for(topic_id, partition, count)


class _Unhashable(Uuid):
    def __hash__(self) -> NoReturn:
        msg = "the language's own hash was asked"
        raise AssertionError(msg)


def test_f56_partition_when_computed_then_the_languages_own_hash_is_never_asked() -> None:
    """The answer is a function of the bytes alone, in every process and version."""
    topic_id = _Unhashable(bytes.fromhex(RANDOM))
    assert metadata_partition_for(topic_id, 0, 50) == 47
