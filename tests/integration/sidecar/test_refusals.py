"""The refusals of the frame server, their order and their receivers."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import (
    EventRejected,
    InvalidArgument,
    NotPermitted,
    NotWritable,
    ProtocolError,
    RlmmError,
    UnknownMethod,
    UnknownPartition,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.wire.values import delete_value, segment_value, update_value
from tests.support.builders import finished, partition_delete, segment_id, started, update
from tests.support.engines import World
from tests.support.server.frame_client_calls import ORDERS, OTHER, PLACES, add, copy, serving
from tests.support.server.frame_servers import RoleDoor, listening
from tests.support.server.raw_frames import connected, greeted, wire


@pytest.mark.parametrize(
    ("method", "args", "error"),
    [
        ("segment_for", [wire(ORDERS), -1, 5], InvalidArgument),
        ("segment_for", [wire(ORDERS), 0, "5"], InvalidArgument),
        ("segment_for", [wire(ORDERS), 0], InvalidArgument),
        ("segment_for", [[b"short", "t", 0], 0, 5], InvalidArgument),
        ("segment_for", [wire(ORDERS), 0, 5, {"at_last": {}}], InvalidArgument),
        ("segment_for", [wire(ORDERS), -1, 5, {"at_least": {0: 10**9}}], InvalidArgument),
        ("segments_for", [[[wire(ORDERS), 0, 0]] * 1_001], InvalidArgument),
        ("list_segments", [wire(ORDERS), b"odd", 10], InvalidArgument),
        ("list_segments", [wire(ORDERS), None, 0], InvalidArgument),
        ("list_segments_by_epoch", [wire(ORDERS), None, None, 10], InvalidArgument),
        ("add_segment", [wire(ORDERS), [1, 2]], InvalidArgument),
        ("assign", [[], [], 1], InvalidArgument),
        ("stop_partitions", [wire(ORDERS)], InvalidArgument),
        ("assign", [[], [], True], NotPermitted),
        ("segment_for", [wire(OTHER), 0, 5], UnknownPartition),
        ("no_such_method", [], UnknownMethod),
        ("ping", [1], InvalidArgument),
        ("list_partitions", [-1, None, 1], InvalidArgument),
        ("list_partitions", [0, "x", 1], InvalidArgument),
        ("list_partitions", [0, bytes(40_000), 1], InvalidArgument),
        ("list_partitions", [0, None, 0], InvalidArgument),
        ("list_partitions", [True, None, 1], InvalidArgument),
        ("list_partitions", [0, None], InvalidArgument),
        ("open_image", [wire(ORDERS), 0], InvalidArgument),
        ("open_image", [wire(ORDERS), -1], InvalidArgument),
        ("open_image", [wire(ORDERS)], InvalidArgument),
        ("open_image", [["x"], 1], InvalidArgument),
        ("read_image", [-1, 1], InvalidArgument),
        ("read_image", [0, 0], InvalidArgument),
        ("close_image", [None], InvalidArgument),
        ("read_log", [b"short", 0, 0, 0, 1], InvalidArgument),
        ("read_log", [bytes(16), -1, 0, 0, 1], InvalidArgument),
        ("read_log", [bytes(16), 0, -1, 0, 1], InvalidArgument),
        ("read_log", [bytes(16), 0, 0, -1, 1], InvalidArgument),
        ("read_log", [bytes(16), 0, 0, 0, 0], InvalidArgument),
        ("read_log", [bytes(16), 0, 0, 0, 1, {"at_least": {}}], InvalidArgument),
        ("log_bounds", [list(range(1_001))], InvalidArgument),
        ("log_bounds", [[None]], InvalidArgument),
        ("log_bounds", [{}], InvalidArgument),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_requests_when_wrong_then_refused_by_name_and_the_connection_goes_on(
    method: str, args: list[Any], error: type[RlmmError]
) -> None:
    """A refusal is the answer to its request, and the next one is answered as if nothing was."""
    async with serving() as (_, client):
        with pytest.raises(error) as caught:
            await client.call(method, *args)
        assert type(caught.value) is error
        assert await client.call("ping") is None


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("add_segment", [wire(ORDERS), segment_value(started(segment_id(1, ORDERS)))]),
        ("update_segment", update_value(finished(segment_id(1, ORDERS)))),
        (
            "put_partition_delete",
            delete_value(partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, ORDERS)),
        ),
        ("assign", [[], [], True]),
        ("stop_partitions", [[]]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_methods_of_a_broker_when_a_reader_calls_them_then_not_permitted_after_validation(
    method: str, args: list[Any]
) -> None:
    """The service checks the arguments first, then the role, and the assignment last."""
    async with serving(role="reader", assignment=Assignment.nothing()) as (world, client):
        with pytest.raises(NotPermitted, match="role broker"):
            await client.call(method, *args)
        with pytest.raises(InvalidArgument):
            await client.call(method, *args[:-1], object.__name__)
        assert await client.call("ping") is None
        assert all(one.next_offset == 0 for one in world.topic.partitions)


async def test_f51_f53_writes_when_the_state_machine_refuses_then_told_with_both_states() -> None:
    """Failure scenarios F51, F53: the write is refused before it is stored, with both states."""
    async with serving() as (world, client):
        place = world.place(ORDERS)
        event = update(segment_id(5, ORDERS), SegmentState.COPY_SEGMENT_FINISHED)
        with pytest.raises((EventRejected, UnknownPartition)):
            await client.call("update_segment", *update_value(event))
        segment = await copy(client, 1)
        end = world.topic.partitions[place].next_offset
        wrong = update(segment.id, SegmentState.DELETE_SEGMENT_FINISHED)
        with pytest.raises(EventRejected) as caught:
            await client.call("update_segment", *update_value(wrong))
        error = caught.value
        assert (error.current, error.requested) == (
            "COPY_SEGMENT_FINISHED",
            "DELETE_SEGMENT_FINISHED",
        )
        assert error.stored_at is None
        for state in (SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED):
            with pytest.raises(RlmmError):
                await add(client, started(segment_id(6, ORDERS), state=state))
        bare = update(segment.id, SegmentState.COPY_SEGMENT_STARTED)
        with pytest.raises(RlmmError):
            await client.call("update_segment", *update_value(bare))
        assert world.topic.partitions[place].next_offset == end


async def test_writes_when_the_service_observes_then_not_writable() -> None:
    """An observer refuses every write by the socket, too."""
    async with serving(is_observer=True) as (_, client):
        with pytest.raises(NotWritable):
            await add(client, started(segment_id(1, ORDERS)))


async def test_first_request_when_not_hello_then_refused_and_hung_up() -> None:
    """Before hello a client gets no answer, and no list of methods."""
    world = World(PLACES)
    async with world.engine() as engine, listening(engine) as served:
        for method in ("ping", "no_such_method"):
            async with connected(served.path) as client:
                with pytest.raises(NotPermitted, match="must be hello"):
                    await client.call(method)
                assert await client.ended()
        async with greeted(served.path) as client:
            with pytest.raises(ProtocolError):
                await client.hello()
            assert await client.ended()


async def test_hello_when_wrong_then_refused_by_name_and_hung_up() -> None:
    """A hello without a common version, with an empty cluster or a foreign broker id is refused."""
    world = World(PLACES)
    async with world.engine() as engine, listening(engine, door=RoleDoor("reader")) as served:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"versions": [2, 3]}, "unsupported-version"),
            ({"versions": []}, "invalid-argument"),
            ({"broker_id": 1}, "not-permitted"),
            ({"cluster_id": ""}, "invalid-argument"),
        ]
        for said, code in wrong:
            async with connected(served.path) as client:
                with pytest.raises(RlmmError) as caught:
                    await client.hello(**said)
                assert caught.value.code == code
                assert await client.ended()
