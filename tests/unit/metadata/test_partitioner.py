"""The partitioner against everything that Kafka's own class answered."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import Uuid
from rlmm.metadata.partitioner import metadata_partition_for

RANDOM = "069f530ddb894466bd439ae5bc224ec6"
VERSION_4 = "123e4567e89b42d3a456426614174000"

VECTORS = [
    ("000000000000000000000000000000ca", 7, {50: 31, 5: 1, 3: 2, 1: 0}),
    ("00000000000000000000000000000001", 0, {50: 35, 5: 0, 3: 1, 1: 0}),
    ("00000000000000000000000000000000", 0, {50: 6, 5: 1, 3: 0, 1: 0}),
    ("00000000000000000000000000000000", 1, {50: 30, 5: 0, 3: 1, 1: 0}),
    ("ffffffffffffffffffffffffffffffff", 0, {50: 6, 5: 1, 3: 0, 1: 0}),
    ("7fffffffffffffff8000000000000000", 2147483647, {50: 10, 5: 0, 3: 2, 1: 0}),
    (RANDOM, 0, {50: 47, 5: 2, 3: 1, 1: 0}),
    (RANDOM, 1, {50: 37, 5: 2, 3: 1, 1: 0}),
    (RANDOM, 2, {50: 12, 5: 2, 3: 0, 1: 0}),
    (RANDOM, 3, {50: 24, 5: 4, 3: 0, 1: 0}),
    (VERSION_4, 0, {50: 42, 5: 2, 3: 1, 1: 0}),
    (VERSION_4, 1, {50: 30, 5: 0, 3: 0, 1: 0}),
    (VERSION_4, 49, {50: 25, 5: 0, 3: 1, 1: 0}),
    ("0123456789abcdef0123456789abcdef", 5, {50: 20, 5: 0, 3: 0, 1: 0}),
    ("123456789abcdef00011223344556677", 0, {50: 6}),
    ("123456789abcdef00011223344556677", 1, {50: 36}),
    ("123456789abcdef00011223344556677", 3, {50: 2}),
    ("123456789abcdef00011223344556677", 7, {50: 26}),
    ("00000000000000000000000000000000", -2147483648, {97: 96}),
    ("ffffffffffffffffffffffffffffffff", 2147483647, {97: 5}),
    ("ffffffffffffffff8000000000000000", -2147483648, {97: 45}),
]
"""Topic id, partition, and count of metadata partitions -> answer of Kafka's own class."""

POSITIVE = [
    ("000000000000000000000000000000ca", 7, 679247681),
    ("00000000000000000000000000000001", 0, 1180230835),
    ("00000000000000000000000000000000", 0, 2043291756),
    ("00000000000000000000000000000000", 1, 56723830),
    ("ffffffffffffffffffffffffffffffff", 0, 2043291756),
    ("7fffffffffffffff8000000000000000", 2147483647, 27631910),
    (RANDOM, 0, 1828911547),
    (RANDOM, 1, 790541437),
    (RANDOM, 2, 2119641612),
    (RANDOM, 3, 338316174),
    (VERSION_4, 0, 88168792),
    (VERSION_4, 1, 566197230),
    (VERSION_4, 49, 626526475),
    ("0123456789abcdef0123456789abcdef", 5, 2113508970),
]
"""Topic id, partition, and the hash before it is cut down to the count."""


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
    ("topic_id", "partition", "positive"),
    [
        pytest.param(topic_id, partition, positive, id=f"{topic_id}-{partition}")
        for topic_id, partition, positive in POSITIVE
    ],
)
def test_f56_hash_when_not_cut_down_then_is_kafkas_to_the_last_bit(
    topic_id: str, partition: int, positive: int
) -> None:
    """A count above every hash shows all 31 bits of it."""
    assert metadata_partition_for(bytes.fromhex(topic_id), partition, 2**31) == positive


@pytest.mark.parametrize("count", [0, -1, -(2**31)])
def test_f56_partition_when_the_topic_has_none_then_is_refused(count: int) -> None:
    """A count that is not positive is an error, never a division or a negative partition."""
    with pytest.raises(InvalidArgument, match=f"at least one partition, got {count}"):
        metadata_partition_for(bytes(16), 0, count)


@pytest.mark.parametrize(
    "partition",
    [
        pytest.param(2**31, id="too-large"),
        pytest.param(-(2**31) - 1, id="too-small"),
        pytest.param(None, id="none"),
        pytest.param(1.0, id="float"),
    ],
)
def test_f56_partition_when_its_number_is_no_int32_then_is_refused(partition: Any) -> None:
    """Java would have wrapped the number into another one; it is refused instead."""
    with pytest.raises(InvalidArgument, match="partition must be a 32-bit integer"):
        metadata_partition_for(bytes(16), partition, 50)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_f56_partition_when_the_topic_id_is_no_uuid_then_is_refused(size: int) -> None:
    """A topic id of any other length is not hashed."""
    with pytest.raises(InvalidArgument, match=f"got {size}"):
        metadata_partition_for(bytes(size), 0, 50)


class _Unhashable(Uuid):
    def __hash__(self) -> NoReturn:
        msg = "the language's own hash was asked"
        raise AssertionError(msg)


def test_f56_partition_when_computed_then_the_languages_own_hash_is_never_asked() -> None:
    """The answer is a function of the bytes alone, in every process and version."""
    topic_id = _Unhashable(bytes.fromhex(RANDOM))
    assert metadata_partition_for(topic_id, 0, 50) == 47
