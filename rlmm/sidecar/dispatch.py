"""
The dispatch of reads: a table of functions from method and arguments to an answer.

Invariant: a request is refused for its form first, then for the role of the client, then for
assignment and readiness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlmm.base.topic_names import require_topic_name
from rlmm.errors import InvalidArgument, NotAssigned, RlmmError, Stopped, Superseded
from rlmm.gate.admission import Gate
from rlmm.gate.reads import PartitionQueries
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import INT32_MAX
from rlmm.metadata.paging import Page, PageKey
from rlmm.wire.errors import error_value
from rlmm.wire.messages import packed, packed_array
from rlmm.wire.methods import METHODS
from rlmm.wire.operator_queries import PIECE_BYTES_MAX, read_summary_key
from rlmm.wire.queries import page_value, read_lookups, read_page_key
from rlmm.wire.rows import packed_row
from rlmm.wire.value_checks import array_up_to, flag, refuse, uint31, uint63, uuid
from rlmm.wire.values import (
    deletion_value,
    read_delete,
    read_partition,
    read_partitions,
    read_segment,
    read_segment_id,
    read_update,
    segment_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from rlmm.gate.reads import Lookup
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.sidecar.settings import SidecarSettings

Args = list[Any]
_SEGMENT_BYTES: Final = 130
"""Most bytes of a segment's fixed fields on the wire."""
_EPOCH_BYTES: Final = 15
_FOUND: Final = b"\x92\xc0"
"""The answer to one of several look-ups in front of its segment: an array of no error and that."""
_NOTHING: Final = b"\x92\xc0\xc0"
_ANSWER_ROOM: Final = 1_024
LOOKUPS_AT_ONCE: Final = 128
"""Look-ups of one frame that are answered before others have their turn."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    lookups_max: int
    page_max: int
    answer_bytes_max: int
    assign_max: int
    timeout_ms_max: int

    @classmethod
    def of(cls, settings: SidecarSettings) -> RequestLimits:
        return cls(
            settings.lookups_max,
            settings.page_max,
            settings.frame_bytes_max - _ANSWER_ROOM,
            settings.assign_max,
            settings.timeout_ms_max,
        )


def _segment_for(reads: PartitionQueries, args: Args, _: RequestLimits) -> object:
    partition, epoch, offset = args
    found = reads.row_for(read_partition(partition), epoch, offset)
    return None if found is None else packed_row(*found)


def _segment(reads: PartitionQueries, args: Args, _: RequestLimits) -> object:
    partition, uuid = args
    found = reads.segment(read_segment_id(read_partition(partition), uuid))
    return None if found is None else segment_value(found)


def _segments_for(reads: PartitionQueries, args: Args, bounds: RequestLimits) -> object:
    lookups = read_lookups(args[0], bounds.lookups_max)
    steps = _answers_in_steps(reads, lookups, bounds)
    if len(lookups) > LOOKUPS_AT_ONCE:
        return steps
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    raise AssertionError


def _answers_in_steps(
    reads: PartitionQueries, lookups: list[Lookup], bounds: RequestLimits
) -> Generator[None, None, bytes]:
    """Answer *lookups*, and give way after each so many: a thousand refusals take milliseconds."""
    answers: list[bytes] = []
    size = 0
    for number, (partition, epoch, offset) in enumerate(lookups):
        if number and not number % LOOKUPS_AT_ONCE:
            yield
        try:
            found = reads.row_for(partition, epoch, offset)
        except (Superseded, Stopped):  # they say nothing of the partition
            raise
        except RlmmError as error:
            answer: bytes = packed((error_value(error), None))
        else:
            answer = _NOTHING if found is None else _FOUND + packed_row(*found)
        answers.append(answer)
        size += len(answer)
        if size > bounds.answer_bytes_max:
            msg = f"{len(lookups)} look-ups have no room in one answer, ask for fewer at once"
            raise InvalidArgument(msg)
    return packed_array(answers)


def _next_segment_with_txn_index(reads: PartitionQueries, args: Args, _: RequestLimits) -> object:
    partition, epoch, offset = args
    found = reads.next_segment_with_txn_index(read_partition(partition), epoch, offset)
    return None if found is None else segment_value(found)


def _list_segments(reads: PartitionQueries, args: Args, bounds: RequestLimits) -> object:
    partition, after, limit = args
    return _page(reads, read_partition(partition), None, after, limit, bounds)


def _list_segments_by_epoch(reads: PartitionQueries, args: Args, bounds: RequestLimits) -> object:
    partition, epoch, after, limit = args
    asked = read_partition(partition)
    if epoch is None:
        refuse("a leader epoch", f"a number from 0 to {INT32_MAX}", epoch)
    return _page(reads, asked, epoch, after, limit, bounds)


def _page(
    reads: PartitionQueries,
    partition: TopicIdPartition,
    epoch: int | None,
    after: object,
    limit: object,
    bounds: RequestLimits,
) -> object:
    """Return a page, cut where it would not fit into a frame; one segment always fits."""
    key = read_page_key(after)
    page = reads.page(partition, epoch, after=key, limit=min(_limit(limit), bounds.page_max))
    size = 0
    for number, segment in enumerate(page.segments):
        size += _size_of(segment)
        if size > bounds.answer_bytes_max and number:
            shown = page.segments[:number]
            behind = PageKey(shown[-1].start_offset, shown[-1].id.uuid)
            return page_value(Page(shown, behind, is_last=False))
    return page_value(page)


def _limit(value: object) -> int:
    if type(value) is not int or not 1 <= value <= INT32_MAX:
        refuse("the limit of a page", f"a number from 1 to {INT32_MAX}", value)
    return value


def _size_of(segment: SegmentMetadata) -> int:
    custom = segment.custom_metadata or b""
    return _SEGMENT_BYTES + _EPOCH_BYTES * len(segment.epochs) + len(custom)


def _remote_log_size(reads: PartitionQueries, args: Args, _: RequestLimits) -> object:
    partition, epoch = args
    asked = read_partition(partition)
    return reads.size(asked) if epoch is None else reads.size_of_epoch(asked, epoch)


def _partition_delete(reads: PartitionQueries, args: Args, _: RequestLimits) -> object:
    found = reads.partition_delete(read_partition(args[0]))
    return None if found is None else deletion_value(found)


READS: Final[Mapping[str, Callable[[PartitionQueries, Args, RequestLimits], object]]] = {
    "segment_for": _segment_for,
    "segment": _segment,
    "segments_for": _segments_for,
    "highest_offset": lambda reads, args, _: reads.highest_offset(read_partition(args[0]), args[1]),
    "next_segment_with_txn_index": _next_segment_with_txn_index,
    "list_segments": _list_segments,
    "list_segments_by_epoch": _list_segments_by_epoch,
    "remote_log_size": _remote_log_size,
    "partition_delete": _partition_delete,
    "is_ready": lambda reads, args, _: reads.is_ready(read_partition(args[0])),
}
COUNTS: Final = {name: len(METHODS[name].args) for name in READS}


def _pass(_: TopicIdPartition) -> Shard:
    raise NotAssigned("")


_SIEVE: Final = PartitionQueries(Gate(), _pass)


def require_sound(method: str, args: Args, bounds: RequestLimits) -> None:
    """Refuse a malformed read before it waits."""
    try:
        READS[method](_SIEVE, args, bounds)
    except NotAssigned:
        return


def partitions_of(method: str, args: Args) -> list[TopicIdPartition]:
    if method == "segments_for":
        return [partition for partition, _, _ in read_lookups(args[0])]
    return [read_partition(args[0])]


# ------------------------------------------------------------------------------------- writes


_EVENTS: Final[Mapping[str, Callable[[Args], Event]]] = {
    "add_segment": lambda args: read_segment(read_partition(args[0]), args[1]),
    "update_segment": lambda args: read_update(args[:6]),
    "put_partition_delete": lambda args: read_delete(args[:4]),
}


def read_event(method: str, args: Args) -> Event:
    event = _EVENTS[method](args)
    encode(event)
    return event


def event_partition(event: Any) -> TopicIdPartition:
    partition: TopicIdPartition = getattr(event, "partition", None) or event.id.partition
    return partition


def event_broker(event: Any) -> int:
    broker_id: int = event.broker_id
    return broker_id


# ---------------------------------------------------------------------------------- assignment


def read_assign(args: Args, bounds: RequestLimits) -> tuple[list[TopicIdPartition], bool]:
    """Return the partitions of a broker, leaders and followers alike, and whether they are all."""
    leaders, followers, complete = args
    most = bounds.assign_max
    led = array_up_to(leaders, "the leaders", most)
    followed = array_up_to(followers, "the followers", most)
    if len(led) + len(followed) > most:
        msg = f"{len(led) + len(followed)} leaders and followers, at most {most} are said at once"
        raise InvalidArgument(msg)
    partitions = [*read_partitions(led), *read_partitions(followed)]
    for topic in {partition.topic for partition in partitions}:
        require_topic_name(topic)
    return partitions, flag(complete, "complete")


def read_stop(args: Args, bounds: RequestLimits) -> list[TopicIdPartition]:
    return read_partitions(array_up_to(args[0], "the partitions", bounds.assign_max))


# ------------------------------------------------------------------------------------- looking


def read_listing(args: Args) -> tuple[int, bytes | None, int]:
    place, after, limit = args
    return uint31(place, "a metadata partition"), read_summary_key(after), _limit(limit)


def read_size(value: object, bounds: RequestLimits) -> int:
    if type(value) is not int or not 1 <= value <= INT32_MAX:
        refuse("a number of bytes", f"a number from 1 to {INT32_MAX}", value)
    return min(value, PIECE_BYTES_MAX, bounds.answer_bytes_max)


def read_log_question(args: Args, bounds: RequestLimits) -> tuple[Uuid, int, int, int, int]:
    topic_id, place, position, skip, size = args
    return (
        uuid(topic_id, "the topic id of a log"),
        uint31(place, "a metadata partition"),
        uint63(position, "an offset"),
        uint63(skip, "a number of bytes"),
        read_size(size, bounds),
    )
