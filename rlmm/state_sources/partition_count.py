"""
How many partitions a metadata topic has, by where its records lie. Pure.

The number decides where a user partition's events are, and copied folders do not say it. But every
user partition that was found says which numbers it can be.
"""

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
    The number of partitions by which each user partition lies where it was *found*, not below
    *least*: *first*, Kafka's default, where that fits, else the smallest that does; None where none
    does.

    The default is tried before smaller numbers because of what a wrong one does: by one that is too
    large something seems to be missing, by one that is too small nothing does.
    """
    hashes = {
        (metadata_partition_for(one.topic_id, one.partition, _WHOLE), place) for one, place in found
    }
    for count in chain((first or least,), range(least, PARTITION_COUNT_MAX + 1)):
        if count >= least and all(number % count == place for number, place in hashes):
            return count
    return None
