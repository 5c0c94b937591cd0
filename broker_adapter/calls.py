"""
Calls: each verb's method, its arguments on the wire, and how its answer is read. Pure.

A malformed event is refused before it is sent; the service judges everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from rlmm.errors import InvalidArgument, ProtocolError
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata
from rlmm.wire import queries, values
from rlmm.wire.value_checks import flag, mapping, refuse, uint63

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from rlmm.errors import RlmmError
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.wire.hello import ServiceLimits
    from rlmm.wire.values import WriteAnswer

A_co = TypeVar("A_co", covariant=True)

Event = SegmentMetadata | SegmentUpdate | PartitionDelete
Lookup = tuple["TopicIdPartition", int, int]
"""User partition, leader epoch, offset."""
SegmentPage = tuple[list[SegmentMetadata], "bytes | None"]
"""Segments of a page, and what the next one is asked for with; `None`: there is none."""

_AROUND_BYTES: Final = 128
"""Most bytes of a message about an assignment beside its partitions."""
_PARTITION_BYTES: Final = 29
"""Most bytes of a partition beside the name of its topic."""


class MessageRoom(NamedTuple):
    partitions: int = 1_000
    frame_bytes: int = 64 * 1024

    @classmethod
    def of(cls, limits: ServiceLimits) -> MessageRoom:
        return cls(limits.assign_max or cls().partitions, limits.frame_bytes_max)


@dataclass(frozen=True, slots=True)
class Call(Generic[A_co]):
    method: str
    args: list[Any]
    read: Callable[[object], A_co]
    partitions: tuple[TopicIdPartition, ...] = ()

    def args_with(self, options: Mapping[str, object] | None) -> list[Any]:
        return self.args if options is None else [*self.args, options]

    def answer(self, value: object) -> A_co:
        """Decode *value*; raises `ProtocolError`."""
        try:
            return self.read(value)
        except InvalidArgument as error:
            msg = f"the answer to {self.method} cannot be understood: {error}"
            raise ProtocolError(msg) from error


def _nothing(value: object) -> None:
    if value is not None:
        refuse("the answer", "nil", value)


def _flag(value: object) -> bool:
    return flag(value, "the answer")


def _size(value: object) -> int:
    return uint63(value, "a size")


def _offset_or_none(value: object) -> int | None:
    return None if value is None else uint63(value, "an offset")


def write(event: Event) -> Call[WriteAnswer]:
    """Store *event*; an event that no broker could read is refused here."""
    if not isinstance(event, (SegmentMetadata, SegmentUpdate, PartitionDelete)):
        msg = f"a segment, an update or a partition's deletion can be stored, got {event!r:.80}"
        raise InvalidArgument(msg)
    encode(event)
    partition = partition_of(event)
    args: list[Any]
    if isinstance(event, SegmentMetadata):
        method = "add_segment"
        args = [values.partition_value(partition), values.segment_value(event)]
    elif isinstance(event, SegmentUpdate):
        method, args = "update_segment", values.update_value(event)
    else:
        method, args = "put_partition_delete", values.delete_value(event)
    return Call(method, args, values.read_write_answer, (partition,))


def partition_of(event: Event) -> TopicIdPartition:
    return event.partition if isinstance(event, PartitionDelete) else event.id.partition


def segment_for(
    partition: TopicIdPartition, epoch: int, offset: int
) -> Call[SegmentMetadata | None]:
    return _one_segment("segment_for", partition, epoch, offset)


def next_segment_with_txn_index(
    partition: TopicIdPartition, epoch: int, offset: int
) -> Call[SegmentMetadata | None]:
    return _one_segment("next_segment_with_txn_index", partition, epoch, offset)


def segment(segment_id: SegmentId) -> Call[SegmentMetadata | None]:
    return _one_segment("segment", segment_id.partition, segment_id.uuid)


def _one_segment(
    method: str, partition: TopicIdPartition, *args: object
) -> Call[SegmentMetadata | None]:
    read = partial(values.read_optional_segment, partition)
    return Call(method, [values.partition_value(partition), *args], read, (partition,))


def segments_for(lookups: Collection[Lookup]) -> Call[list[SegmentMetadata | RlmmError | None]]:
    partitions = tuple(partition for partition, _, _ in lookups)

    read = partial(queries.read_segment_answers, partitions)
    args = [queries.lookup_value(*lookup) for lookup in lookups]
    return Call("segments_for", [args], read, tuple(dict.fromkeys(partitions)))


def highest_offset(partition: TopicIdPartition, epoch: int) -> Call[int | None]:
    args = [values.partition_value(partition), epoch]
    return Call("highest_offset", args, _offset_or_none, (partition,))


def page(
    partition: TopicIdPartition, epoch: int | None, after: bytes | None, limit: int
) -> Call[SegmentPage]:
    read = partial(queries.read_page, partition)
    asked = [values.partition_value(partition)]
    if epoch is None:
        return Call("list_segments", [*asked, after, limit], read, (partition,))
    return Call("list_segments_by_epoch", [*asked, epoch, after, limit], read, (partition,))


def remote_log_size(partition: TopicIdPartition, epoch: int | None) -> Call[int]:
    args = [values.partition_value(partition), epoch]
    return Call("remote_log_size", args, _size, (partition,))


def partition_delete(partition: TopicIdPartition) -> Call[PartitionDelete | None]:
    def read(value: object) -> PartitionDelete | None:
        return None if value is None else values.read_deletion(partition, value)

    return Call("partition_delete", [values.partition_value(partition)], read, (partition,))


def is_ready(partition: TopicIdPartition) -> Call[bool]:
    return Call("is_ready", [values.partition_value(partition)], _flag, (partition,))


def wait_ready(partition: TopicIdPartition) -> Call[None]:
    return Call("wait_ready", [values.partition_value(partition)], _nothing, (partition,))


def ping() -> Call[None]:
    return Call("ping", [], _nothing)


def read_token() -> Call[dict[int, int]]:
    return Call("read_token", [], queries.read_token)


def status() -> Call[Mapping[object, object]]:
    return Call("status", [], lambda value: mapping(value, "a status"))


# --------------------------------------------------------------------------------- assignment


def assign(
    leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition], room: MessageRoom
) -> list[Call[int]]:
    said = [(partition, True) for partition in leaders]
    said += [(partition, False) for partition in followers]
    return [_assign(part, complete=False) for part in _parts(said, room)]


def assign_whole(leads: Mapping[TopicIdPartition, bool], room: MessageRoom) -> Call[int] | None:
    """Return one message of everything, or `None` where it has no room."""
    parts = _parts(list(leads.items()), room)
    return _assign(parts[0], complete=True) if len(parts) == 1 else None


def _assign(said: Iterable[tuple[TopicIdPartition, bool]], *, complete: bool) -> Call[int]:
    parts: tuple[list[object], list[object]] = [], []
    for partition, leads in said:
        parts[not leads].append(values.partition_value(partition))
    return Call("assign", [*parts, complete], _generation)


def stop_partitions(partitions: Iterable[TopicIdPartition], room: MessageRoom) -> list[Call[int]]:
    said = [(partition, False) for partition in partitions]
    return [
        Call("stop_partitions", [[values.partition_value(one) for one, _ in part]], _generation)
        for part in _parts(said, room)
    ]


def _parts(
    said: Iterable[tuple[TopicIdPartition, bool]], room: MessageRoom
) -> list[list[tuple[TopicIdPartition, bool]]]:
    """Divide *said* so that each part has room in a message; one part at least."""
    parts: list[list[tuple[TopicIdPartition, bool]]] = [[]]
    left_bytes = room.frame_bytes - _AROUND_BYTES
    for one in said:
        size = _PARTITION_BYTES + len(one[0].topic.encode())
        if parts[-1] and (len(parts[-1]) >= room.partitions or size > left_bytes):
            parts.append([])
            left_bytes = room.frame_bytes - _AROUND_BYTES
        parts[-1].append(one)
        left_bytes -= size
    return parts


def _generation(value: object) -> int:
    return uint63(value, "a generation")
