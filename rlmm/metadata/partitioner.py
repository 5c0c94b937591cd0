"""The partitioner of the metadata topic: Kafka's function, bit for bit; the name plays no part."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import UUID_BYTES, require_int32

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS = Struct(">4I")
_MASK32 = 0xFFFFFFFF
_MURMUR_SEED = 0x9747B28C
_MURMUR_FACTOR = 0x5BD1E995
_MURMUR_SHIFT = 24


def metadata_partition_for(topic_id: bytes, partition: int, count: int) -> int:
    """Return the metadata partition of user partition *partition*, of a topic with *count*."""
    if count <= 0:
        msg = f"the metadata topic needs at least one partition, got {count}"
        raise InvalidArgument(msg)
    return partition_hash(topic_id, partition) % count


def partition_hash(topic_id: bytes, partition: int) -> int:
    """Return the hash of a user partition, whose remainder by the partition count is its place."""
    if len(topic_id) != UUID_BYTES:
        msg = f"a topic id has {UUID_BYTES} bytes, got {len(topic_id)}"
        raise InvalidArgument(msg)
    require_int32("partition", partition)
    return _murmur2_of_int(_java_hash(topic_id, partition)) & 0x7FFFFFFF


def counts_that_fit(found: Iterable[tuple[int, int]], most: int) -> list[int]:
    """Return the partition counts below *most* that give each hash of *found* its place."""
    pairs = list(found)
    return [
        count for count in range(1, most) if all(hashed % count == place for hashed, place in pairs)
    ]


def _java_hash(topic_id: bytes, partition: int) -> int:
    """Java's `Objects.hash(low, high, partition)` modulo 2^32; a half folds to its words' XOR."""
    high_upper, high_lower, low_upper, low_lower = _WORDS.unpack(topic_id)
    total: int = 31 + (low_upper ^ low_lower)
    total = 31 * total + (high_upper ^ high_lower)
    return (31 * total + partition) & _MASK32


def _murmur2_of_int(number: int) -> int:
    """Kafka's murmur2 of the number's four big-endian bytes, one block read little-endian."""
    block = int.from_bytes(number.to_bytes(4), "little")
    block = block * _MURMUR_FACTOR & _MASK32
    block ^= block >> _MURMUR_SHIFT
    block = block * _MURMUR_FACTOR & _MASK32
    mixed = (_MURMUR_SEED ^ 4) * _MURMUR_FACTOR & _MASK32
    mixed ^= block
    mixed ^= mixed >> 13
    mixed = mixed * _MURMUR_FACTOR & _MASK32
    return mixed ^ mixed >> 15
