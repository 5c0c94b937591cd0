"""The partitioner against everything that Kafka's own class answered."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import Uuid
from rlmm.metadata.partitioner import metadata_partition_for

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
def test_f56_partition_when_there_is_none_then_is_refused(
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
