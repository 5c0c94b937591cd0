"""
Queries on the wire: look-ups, pages of a listing, read tokens, and their answers.

Invariant: only this module knows what the key of a page means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.errors import RlmmError
from rlmm.metadata.ids import INT32_MAX
from rlmm.metadata.paging import PageKey
from rlmm.wire.errors import error_value, read_error
from rlmm.wire.value_checks import array, array_up_to, int32, int64, refuse, uint63, uuid
from rlmm.wire.values import (
    partition_value,
    read_optional_segment,
    read_partition,
    read_segment,
    segment_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.paging import Page
    from rlmm.metadata.segment import SegmentMetadata

NEXT_BYTES: Final = 24


def lookup_value(partition: TopicIdPartition, epoch: int, offset: int) -> list[object]:
    return [partition_value(partition), epoch, offset]


def read_lookups(
    value: object, count_max: int = INT32_MAX
) -> list[tuple[TopicIdPartition, int, int]]:
    """
    Return the look-ups of `segments_for`; more than *count_max* are refused unread.

    A negative epoch or offset is refused in its own answer, not here.
    """
    lookups = []
    for one in array_up_to(value, "the look-ups", count_max):
        partition, epoch, offset = array(one, "a look-up", 3)
        lookups.append(
            (
                read_partition(partition),
                int32(epoch, "the leader epoch of a look-up"),
                int64(offset, "the offset of a look-up"),
            )
        )
    return lookups


def page_value(page: Page) -> list[object]:
    """Return the segments of a page, and the key for the next one; nil: there is none."""
    return [[segment_value(one) for one in page.segments], next_value(page)]


def next_value(page: Page) -> bytes | None:
    if page.is_last:
        return None
    return b"" if page.after is None else page_key_value(page.after)


def page_key_value(after: PageKey) -> bytes:
    return after.start_offset.to_bytes(8) + after.uuid


def read_page_key(value: object) -> PageKey | None:
    """Return the key of the next page; `None`: it is the first."""
    if value is None or value == b"":
        return None
    if type(value) is not bytes or len(value) != NEXT_BYTES:
        refuse("what a page goes on behind", "nil, or bytes as they were answered", value)
    start = int.from_bytes(value[:8])
    uint63(start, "the offset that a page goes on behind")
    return PageKey(start, uuid(value[8:], "the id that a page goes on behind"))


def read_page(
    partition: TopicIdPartition, value: object
) -> tuple[list[SegmentMetadata], bytes | None]:
    """Return the segments of a page, and the key for the next one; `None`: there is none."""
    segments, after = array(value, "a page", 2)
    if after is not None and type(after) is not bytes:
        refuse("what the next page is asked for with", "bytes or nil", after)
    return [
        read_segment(partition, one) for one in array(segments, "the segments of a page")
    ], after


def read_token(value: object, what: str = "a read token") -> dict[int, int]:
    """Offsets by metadata partition, as `read_token` answers and `at_least` takes them."""
    if type(value) is not dict:
        refuse(what, "a map of metadata partitions to offsets", value)
    for place, offset in value.items():
        if type(place) is not int or not 0 <= place <= INT32_MAX:
            refuse(f"a metadata partition in {what}", f"a number from 0 to {INT32_MAX}", place)
        int64(offset, f"an offset in {what}")
    return value


def segment_answer_value(answer: SegmentMetadata | RlmmError | None) -> list[object]:
    if isinstance(answer, RlmmError):
        return [error_value(answer), None]
    return [None, None if answer is None else segment_value(answer)]


def read_segment_answers(
    partitions: Sequence[TopicIdPartition], value: object
) -> list[SegmentMetadata | RlmmError | None]:
    answers = array(value, "the answers to look-ups", len(partitions))
    found: list[SegmentMetadata | RlmmError | None] = []
    for partition, answer in zip(partitions, answers, strict=True):
        error, segment = array(answer, "the answer to a look-up", 2)
        if error is not None:
            found.append(read_error(error))
        else:
            found.append(read_optional_segment(partition, segment))
    return found
