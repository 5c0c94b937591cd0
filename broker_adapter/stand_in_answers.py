"""
The stand-in's answers: arguments in, value out, or a refusal.

As in a service, form is judged first, then assignment, readiness and content.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from broker_adapter.lost_answers import DELETION
from rlmm.errors import (
    EventRejected,
    InvalidArgument,
    NotAssigned,
    NotReady,
    RlmmError,
    UnknownPartition,
)
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.verdicts import Duplicate, Rejected
from rlmm.wire import queries, values
from rlmm.wire.methods import METHODS
from rlmm.wire.options import read_read_options, read_wait_options, read_write_options
from rlmm.wire.value_checks import flag, uint31, uint63

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_adapter.stand_in import StandInService
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.python_shard import PythonShard
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.options import FreshnessOptions

Args = list[Any]
Share = dict["TopicIdPartition", bool]


class _Request:
    """The caller of a request, and how fresh its answer must be."""

    def __init__(
        self,
        service: StandInService,
        broker_id: int | None,
        options: FreshnessOptions | None = None,
    ) -> None:
        self._service = service
        self._broker_id = broker_id
        self._options = options

    def shard(self, partition: TopicIdPartition) -> PythonShard:
        """Return the shard of *partition*, or raise why it cannot answer."""
        service, place = self._service, self._service.place_of(partition)
        share = None if self._broker_id is None else service.shares.get(self._broker_id)
        if self._broker_id is not None and share is None:
            raise _not_ready(partition, place, "assignment-unknown")
        if share is not None and partition not in share:
            msg = f"{partition} is not one of the {len(share)} that broker {self._broker_id} has"
            raise NotAssigned(msg, metadata_partition=place)
        if service.faults.is_not_ready:
            raise _not_ready(partition, place, "replaying")
        for number, offset in ((self._options and self._options.at_least) or {}).items():
            if number >= len(service.shards):
                raise InvalidArgument(f"there is no metadata partition {number}")
            if service.shards[number].position <= offset:
                raise _not_ready(partition, number, "behind")
        return service.shards[place]

    def known(self, partition: TopicIdPartition) -> PythonShard:
        """Return the shard; raises `UnknownPartition` where it has nothing of *partition*."""
        shard = self.shard(partition)
        if not shard.knows(partition):
            raise UnknownPartition(f"{partition}: no event of it was ever stored")
        delete = shard.partition_delete(partition)
        finished = PartitionDeleteState.DELETE_PARTITION_FINISHED
        if delete is not None and delete.state is finished and not shard.segments(partition):
            raise UnknownPartition(f"{partition}: its deletion is finished")
        return shard


def _not_ready(partition: TopicIdPartition, place: int, reason: str) -> NotReady:
    return NotReady(
        f"{partition} is not ready: {reason}",
        reason=reason,
        user_partition=str(partition),
        metadata_partition=place,
        retry_after_ms=20,
    )


# ---------------------------------------------------------------------------------- questions


def _segment(request: _Request, args: Args) -> object:
    partition = values.read_partition(args[0])
    segment_id = values.read_segment_id(partition, args[1])
    return values.optional_segment_value(request.known(partition).segment(segment_id))


def _look_up(method: str) -> Callable[[_Request, Args], object]:
    def answer(request: _Request, args: Args) -> object:
        partition, epoch, offset = _lookup(*args)
        found = getattr(request.known(partition), method)(partition, epoch, offset)
        return values.optional_segment_value(found)

    return answer


def _segments_for(request: _Request, args: Args) -> object:
    answers: list[object] = []
    for partition, epoch, offset in queries.read_lookups(args[0]):
        found: SegmentMetadata | RlmmError | None
        try:
            _require_lookup(epoch, offset)
            found = request.known(partition).segment_for(partition, epoch, offset)
        except RlmmError as error:
            found = error
        answers.append(queries.segment_answer_value(found))
    return answers


def _highest_offset(request: _Request, args: Args) -> object:
    partition = values.read_partition(args[0])
    epoch = uint31(args[1], "a leader epoch")
    return request.known(partition).highest_offset(partition, epoch)


def _list_segments(request: _Request, args: Args) -> object:
    *where, after, limit = args
    epoch = uint31(where[1], "a leader epoch") if len(where) > 1 else None
    partition = values.read_partition(where[0])
    key = queries.read_page_key(after)
    size = uint31(limit, "the limit of a page")
    if not size:
        raise InvalidArgument("the limit of a page must be above 0")
    page = request.known(partition).page(partition, epoch, after=key, limit=min(size, 1_000))
    return queries.page_value(page)


def _remote_log_size(request: _Request, args: Args) -> object:
    partition = values.read_partition(args[0])
    if args[1] is None:
        return request.known(partition).size(partition)
    epoch = uint31(args[1], "a leader epoch")
    return request.known(partition).size_of_epoch(partition, epoch)


def _partition_delete(request: _Request, args: Args) -> object:
    partition = values.read_partition(args[0])
    shard = request.shard(partition)
    if not shard.knows(partition):
        raise UnknownPartition(f"{partition}: no event of it was ever stored")
    found = shard.partition_delete(partition)
    return None if found is None else values.deletion_value(found)


def _is_ready(request: _Request, args: Args) -> object:
    try:
        request.shard(values.read_partition(args[0]))
    except (NotAssigned, NotReady):
        return False
    return True


def _lookup(partition: object, epoch: object, offset: object) -> tuple[TopicIdPartition, int, int]:
    found = values.read_partition(partition)
    _require_lookup(epoch, offset)
    assert isinstance(epoch, int)
    assert isinstance(offset, int)
    return found, epoch, offset


def _require_lookup(epoch: object, offset: object) -> None:
    uint31(epoch, "a leader epoch")
    uint63(offset, "an offset")


_QUESTIONS: Final[Mapping[str, Callable[[_Request, Args], object]]] = {
    "segment": _segment,
    "segment_for": _look_up("segment_for"),
    "segments_for": _segments_for,
    "highest_offset": _highest_offset,
    "next_segment_with_txn_index": _look_up("next_segment_with_txn_index"),
    "list_segments": _list_segments,
    "list_segments_by_epoch": _list_segments,
    "remote_log_size": _remote_log_size,
    "partition_delete": _partition_delete,
    "is_ready": _is_ready,
}


def _answer_to(method: str) -> Callable[[StandInService, int | None, Args], object]:
    ask, known = _QUESTIONS[method], METHODS[method]

    def answer(service: StandInService, broker_id: int | None, args: Args) -> object:
        known.require_count(args)
        count = len(known.args)
        options = read_read_options(args[count]) if len(args) > count else None
        return ask(_Request(service, broker_id, options), args[:count])

    return answer


# ------------------------------------------------------------------------------------- writes


_EVENTS: Final[Mapping[str, Callable[[Args], Any]]] = {
    "add_segment": lambda args: values.read_segment(values.read_partition(args[0]), args[1]),
    "update_segment": lambda args: values.read_update(args[:6]),
    "put_partition_delete": lambda args: values.read_delete(args[:4]),
}


def _storing(method: str) -> Callable[[StandInService, int | None, Args], object]:
    known = METHODS[method]

    def answer(service: StandInService, broker_id: int | None, args: Args) -> object:
        known.require_count(args)
        event = _EVENTS[method](args)
        encode(event)
        options = read_write_options(args[-1] if len(args) > len(known.args) else None)
        partition = event.partition if isinstance(event, PartitionDelete) else event.id.partition
        place = service.place_of(partition)
        try:
            shard = _Request(service, broker_id).shard(partition)
        except NotAssigned:
            if options.unassigned == "refuse":
                raise
            shard = service.shards[place]
            offset = shard.position
            shard.apply_event(event)
            return values.write_answer_value(place, offset, "stored-not-assigned")
        if service.faults.rejection is not None:
            raise _rejected(Rejected(service.faults.rejection, None, None), None)
        refused = shard.admit(event)
        if refused is not None:
            raise _rejected(refused, None)
        offset = shard.position
        verdict = shard.apply_event(_completed(event, shard))
        if isinstance(verdict, Rejected):
            raise _rejected(verdict, (place, offset))
        word = "duplicate" if isinstance(verdict, Duplicate) else "applied"
        return values.write_answer_value(place, offset, word)

    return answer


def _completed(event: Any, shard: PythonShard) -> Any:
    """Keep the custom metadata of a deletion, which an update without it would erase."""
    if isinstance(event, SegmentUpdate) and event.custom_metadata is None:
        stored = shard.segment(event.id)
        if stored is not None and event.state in DELETION:
            return replace(event, custom_metadata=stored.custom_metadata)
    return event


def _rejected(verdict: Rejected, stored_at: tuple[int, int] | None) -> EventRejected:
    return EventRejected(
        f"the event is rejected: {verdict}",
        reason=str(verdict.reason),
        current=None if verdict.current is None else verdict.current.name,
        requested=None if verdict.requested is None else verdict.requested.name,
        stored_at=stored_at,
    )


# ------------------------------------------------------------------------------------- others


def _wait_ready(service: StandInService, broker_id: int | None, args: Args) -> object:
    METHODS["wait_ready"].require_count(args)
    if len(args) > 1:
        read_wait_options(args[1])
    _Request(service, broker_id).shard(values.read_partition(args[0]))
    return None


def _assign(service: StandInService, broker_id: int | None, args: Args) -> object:
    leaders, followers, complete = args
    led, followed = values.read_partitions(leaders), values.read_partitions(followers)
    assert broker_id is not None
    known = {} if flag(complete, "complete") else dict(service.shares.get(broker_id, {}))
    known |= dict.fromkeys(followed, False) | dict.fromkeys(led, True)
    service.shares[broker_id] = known
    return 1


def _stop_partitions(service: StandInService, broker_id: int | None, args: Args) -> object:
    assert broker_id is not None
    for partition in values.read_partitions(args[0]):
        service.shares.get(broker_id, {}).pop(partition, None)
    return 1


def _read_token(service: StandInService, _broker_id: int | None, _args: Args) -> object:
    return {shard.partition: shard.position - 1 for shard in service.shards}


def _status(service: StandInService, broker_id: int | None, args: Args) -> object:
    del args
    share = None if broker_id is None else service.shares.get(broker_id)
    return {"assigned": None if share is None else len(share)}


ANSWERS: Final[Mapping[str, Callable[[StandInService, int | None, Args], object]]] = {
    **{method: _answer_to(method) for method in _QUESTIONS},
    **{method: _storing(method) for method in _EVENTS},
    "wait_ready": _wait_ready,
    "assign": _assign,
    "stop_partitions": _stop_partitions,
    "read_token": _read_token,
    "status": _status,
    "ping": lambda _service, _broker_id, _args: None,
}
