"""Partition count of a metadata topic, derived from where its records are. Pure."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from rlmm.log.files.log_folder import PARTITION_COUNT
from rlmm.log.request_checks import PARTITION_COUNT_MAX
from rlmm.metadata.partitioner import metadata_partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.ids import TopicIdPartition

_WHOLE: Final = 1 << 31
"""A topic of so many partitions shows Kafka's hash as it is, whatever the number is really."""


def fitting_count(
    found: Iterable[tuple[TopicIdPartition, int]],
    least: int,
    first: int | None = PARTITION_COUNT,
) -> int | None:
    """
    Return the count that places each partition where it was *found*, at least *least*.

    *first*, Kafka's default, is preferred, else the smallest that fits, because a count that is too
    small hides missing partitions, while one that is too large shows them. None if none fits.
    """
    hashes = {
        (metadata_partition_for(one.topic_id, one.partition, _WHOLE), place) for one, place in found
    }
    for count in chain((first or least,), range(least, PARTITION_COUNT_MAX + 1)):
        if count >= least and all(number % count == place for number, place in hashes):
            return count
    return None
