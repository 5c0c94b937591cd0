"""The choice of segments, by partition and offset, in units; runs go on behind one. Pure."""

from __future__ import annotations

import hashlib
import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import ConfigError
from spark_tiering.layout.object_names import ObjectKind, main_key, parse_object_key
from spark_tiering.layout.range_reading import FETCH_BYTES
from spark_tiering.layout.segment_indexes import INDEX_PARTS
from spark_tiering.maintenance.verify.object_checks import REQUESTS
from spark_tiering.segment_reading.protocol import SegmentUnreadable
from spark_tiering.segment_reading.tiered import KeyPlaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.verify.values import SegmentSample, VerifyOptions

SEGMENTS_MAX: Final = 100
"""Segments of a unit: some seconds of requests."""
DEEP_BYTES_MAX: Final = 1024 * 1024 * 1024
"""Bytes of the logs that a unit reads, one segment at least: some seconds as well."""
HASH_BYTES: Final = 8


class SegmentRank(NamedTuple):
    topic: str
    partition: int
    topic_id: bytes
    start_offset: int
    uuid: bytes

    @classmethod
    def of(cls, segment_id: SegmentId, start_offset: int) -> SegmentRank:
        own = segment_id.partition
        uuid = bytes(segment_id.uuid)
        return cls(own.topic, own.partition, bytes(own.topic_id), start_offset, uuid)


def parse_after(token: str) -> SegmentRank | None:
    """Return the place behind which a run begins, None for an empty text. Raise `ConfigError`."""
    if not token:
        return None
    found = parse_object_key(f"{token}.{ObjectKind.LOG}")
    if found is None:
        msg = f"{token[:300]!r} is no place to go on behind: a report has one as `after`"
        raise ConfigError(msg)
    return SegmentRank.of(found.segment_id, found.start_offset)


def token_of(segment: SegmentMetadata) -> str:
    """Return the text of a place: as keys of the segment begin."""
    return main_key(segment.id, segment.start_offset)


def is_passed(partition: TopicIdPartition, after: SegmentRank | None) -> bool:
    """Return whether all of a partition lies before the place."""
    own = (partition.topic, partition.partition, bytes(partition.topic_id))
    return after is not None and own < after[:3]


def behind(
    segments: Iterable[SegmentMetadata], after: SegmentRank | None
) -> Iterator[SegmentMetadata]:
    for one in segments:
        if after is None or SegmentRank.of(one.id, one.start_offset) > after:
            yield one


def sampled(
    segments: Iterable[SegmentMetadata], sample: SegmentSample | None
) -> Iterable[SegmentMetadata]:
    """
    Yield the drawn segments, in order, one at least where there is one. A sample by number needs
    all segments to pass first.
    """
    if sample is None:
        return segments
    seed = sample.seed.to_bytes(HASH_BYTES, signed=True)

    def drawn(segment: SegmentMetadata) -> int:
        own = hashlib.blake2b(bytes(segment.id.uuid), digest_size=HASH_BYTES, key=seed)
        return int.from_bytes(own.digest())

    if sample.share is not None:
        return _share(segments, drawn, int(sample.share * 2 ** (8 * HASH_BYTES)))
    least = heapq.nsmallest(sample.count or 1, segments, key=drawn)
    return iter(sorted(least, key=lambda one: SegmentRank.of(one.id, one.start_offset)))


def _share(
    segments: Iterable[SegmentMetadata], drawn: Callable[[SegmentMetadata], int], below: int
) -> Iterator[SegmentMetadata]:
    least: tuple[int, SegmentMetadata] | None = None
    is_any = False
    for one in segments:
        rank = drawn(one)
        if rank < below:
            is_any = True
            yield one
        elif not is_any and (least is None or rank < least[0]):
            least = rank, one
    if least is not None and not is_any:
        yield least[1]


def expected_of(total: int, sample: SegmentSample | None) -> int:
    """Return about how many of *total* segments are checked."""
    if sample is None:
        return total
    if sample.count is not None:
        return min(total, sample.count)
    return min(total, max(1, round(total * (sample.share or 1.0))))


def requests_of(segment: SegmentMetadata, options: VerifyOptions) -> int:
    """Return the most requests of a faultless segment: a manifest may be under the last prefix."""
    places = KeyPlaces(("", *options.old_prefixes))
    try:
        found = places.candidates(segment.id, segment.start_offset, segment.custom_metadata)
    except SegmentUnreadable:
        return 0
    looks = REQUESTS - 1 + len(found)
    if not options.is_deep:
        return looks
    return looks + len(INDEX_PARTS) + 2 * max(segment.size_bytes, 0) // FETCH_BYTES + 2


def in_groups(
    segments: Iterable[SegmentMetadata], options: VerifyOptions
) -> Iterator[tuple[SegmentMetadata, ...]]:
    group: list[SegmentMetadata] = []
    size_bytes = 0
    for one in segments:
        is_large = options.is_deep and size_bytes + one.size_bytes > DEEP_BYTES_MAX
        if group and (len(group) >= SEGMENTS_MAX or is_large):
            yield tuple(group)
            group, size_bytes = [], 0
        group.append(one)
        size_bytes += one.size_bytes
    if group:
        yield tuple(group)
