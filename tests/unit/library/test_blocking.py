"""The library for threads: works from every thread, and on no event loop."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.stand_in import StandInService
from rlmm.engine.engine import EngineSettings
from rlmm.errors import EventRejected, InvalidArgument, NotReady, Stopped, UnknownPartition
from rlmm.library.blocking import BlockingMetadata
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.engines import ROOM, LibraryTopic, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TP = tp()
PLACES = 3
PLACE = metadata_partition_for(TP.topic_id, TP.partition, PLACES)
WAIT_S = 30.0
POOL = ThreadPoolExecutor(16)
MARKED = PartitionDeleteState.DELETE_PARTITION_MARKED
ONLY_ON_THE_LOOP = {"blocking", "reads", "incidents", "stop"}
CALLS: dict[str, Callable[[BlockingMetadata], object]] = {
    "reconcile": lambda it: it.reconcile(Assignment.everything()),
    "wait_ready": lambda it: it.wait_ready(TP),
    "wait_all_ready": lambda it: it.wait_all_ready(),
    "add_segment": lambda it: it.add_segment(started("a")),
    "update_segment": lambda it: it.update_segment(finished("a")),
    "put_partition_delete": lambda it: it.put_partition_delete(partition_delete(MARKED)),
    "store": lambda it: it.store(partition_delete(MARKED)),
    "segment_for": lambda it: it.segment_for(TP, 0, 50),
    "segments_for": lambda it: it.segments_for([(TP, 0, 50)], linearizable=True),
    "segment": lambda it: it.segment(segment_id("a")),
    "next_segment_with_txn_index": lambda it: it.next_segment_with_txn_index(TP, 0, 0),
    "highest_offset": lambda it: it.highest_offset(TP, 0),
    "segments": lambda it: it.segments(TP, linearizable=True),
    "page": lambda it: it.page(TP, 0, limit=5),
    "size": lambda it: it.size(TP, 0),
    "partition_delete": lambda it: it.partition_delete(TP),
    "is_ready": lambda it: it.is_ready(TP),
    "assigned": lambda it: it.assigned(),
    "read_token": lambda it: it.read_token(),
    "snapshot_positions": lambda it: it.snapshot_positions(),
    "write_snapshots": lambda it: it.write_snapshots(),
    "statistics": lambda it: it.statistics(),
}


@pytest.fixture
def topic() -> LibraryTopic:
    return LibraryTopic(EngineSettings(memory=ROOM))


@asynccontextmanager
async def opened(topic: LibraryTopic) -> AsyncIterator[RemoteLogMetadata]:
    async with topic.opened() as metadata:
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        yield metadata


def in_a_thread(call: Callable[[], object]) -> asyncio.Future[object]:
    return asyncio.wrap_future(POOL.submit(call))


def test_blocking_offers_what_the_library_offers() -> None:
    """Each public call is there, with the same parameters and defaults."""

    def parameters(owner: type, name: str) -> list[tuple[str, Any, Any]]:
        found = inspect.signature(getattr(owner, name)).parameters.values()
        return [(one.name, one.kind, one.default) for one in found]

    names = {
        name
        for name in dir(RemoteLogMetadata)
        if not name.startswith("_") and name not in ONLY_ON_THE_LOOP
    }
    assert {name for name in vars(BlockingMetadata) if not name.startswith("_")} == names
    assert set(CALLS) == names
    for name in names:
        assert parameters(BlockingMetadata, name) == parameters(RemoteLogMetadata, name), name


async def test_call_when_an_option_is_misspelt_then_refused(topic: LibraryTopic) -> None:
    """An unknown option is refused, because the caller relies on it."""
    async with opened(topic) as metadata:
        with pytest.raises(TypeError, match="linearisable"):
            await metadata.segment(segment_id("a"), linearisable=True)  # type: ignore[call-arg]
    client = StandInService().client()
    with pytest.raises(TypeError, match="linearisable"):
        await client.segment(segment_id("a"), linearisable=True)  # type: ignore[call-arg]


async def test_f55_calls_when_made_from_a_thread_then_are_answered(topic: LibraryTopic) -> None:
    """Failure scenario F55: a thread writes and reads as a task does, errors included."""
    async with opened(topic) as metadata:
        answers = {}
        for name, call in CALLS.items():
            answers[name] = await in_a_thread(partial(call, metadata.blocking))
        assert answers["segment_for"] == await metadata.segment_for(TP, 0, 50) is not None
        assert answers["segments_for"] == [answers["segment_for"]]
        assert answers["segments"] == [answers["segment"]]
        assert answers["highest_offset"] == 99
        assert answers["size"] == 1024
        assert answers["is_ready"] is True
        assert answers["read_token"] == metadata.read_token()
        assert answers["wait_all_ready"] == []
        with pytest.raises(EventRejected):
            await in_a_thread(lambda: metadata.blocking.update_segment(finished("b")))
        with pytest.raises(UnknownPartition):
            await in_a_thread(lambda: metadata.blocking.segments(tp("other")))


async def test_f55_writes_when_many_threads_wait_then_the_loop_goes_on(topic: LibraryTopic) -> None:
    """Failure scenario F55: while threads wait for verdicts, the loop answers others."""
    async with opened(topic) as metadata:
        topic.script.hold_appends(PLACE)
        waiting = [
            in_a_thread(partial(metadata.blocking.add_segment, started(f"s{number}")))
            for number in range(16)
        ]
        await until(lambda: metadata.statistics().writes.pending == len(waiting))
        with pytest.raises(UnknownPartition):
            await metadata.segments(TP)
        topic.script.release_appends(PLACE)
        written = await asyncio.gather(*waiting)
        assert sorted(one.offset for one in written) == list(range(16))  # type: ignore[attr-defined]
        assert len(await metadata.segments(TP)) == 16


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_f55_call_when_made_on_the_loop_then_is_refused_by_name(
    topic: LibraryTopic, call: Callable[[BlockingMetadata], object]
) -> None:
    """Failure scenario F55: a call on the loop would wait for itself and is refused at once."""
    async with opened(topic) as metadata:
        with pytest.raises(InvalidArgument, match="called on an event loop"):
            call(metadata.blocking)
        await asyncio.sleep(0)
        assert topic.memory.partitions[PLACE].next_offset == 0


async def test_f55_call_when_made_on_another_loop_then_refused(topic: LibraryTopic) -> None:
    """A loop that is not the library's would be blocked just as well."""

    async def elsewhere(blocking: BlockingMetadata) -> None:
        blocking.segments(TP)

    async with opened(topic) as metadata:
        blocking = metadata.blocking
        with pytest.raises(InvalidArgument, match="called on an event loop"):
            await in_a_thread(lambda: asyncio.run(elsewhere(blocking)))


async def test_call_when_its_deadline_passes_then_ends_by_it(topic: LibraryTopic) -> None:
    """I9: a thread waits as long as the call has, and no longer."""
    async with opened(topic) as metadata:
        topic.script.stall(PLACE)
        with pytest.raises(NotReady):
            await in_a_thread(
                lambda: metadata.blocking.segments(TP, at_least={PLACE: 5}, timeout_s=0.01)
            )


async def test_calls_when_library_is_closed_then_end_by_name(topic: LibraryTopic) -> None:
    """A waiting thread gets `Stopped`, and so does a later caller."""
    async with opened(topic) as metadata:
        topic.script.stall(PLACE)
        blocking = metadata.blocking
        waiting = [
            in_a_thread(lambda: blocking.add_segment(started("a"))),
            in_a_thread(lambda: blocking.segments(TP, at_least={PLACE: 5}, timeout_s=WAIT_S)),
        ]
        await until(lambda: metadata.statistics().writes.pending == 1)
        await until(lambda: metadata.statistics().barrier.waiting == 1)
    for each in waiting:
        with pytest.raises(Stopped, match="the library is closed"):
            await each
    with pytest.raises(Stopped, match="the library is closed"):
        await in_a_thread(lambda: blocking.segments(TP))


def test_calls_when_the_loop_is_gone_then_end_by_name(topic: LibraryTopic) -> None:
    """A thread that calls a closed loop, or is left behind by it, gets `Stopped`."""
    held: list[RemoteLogMetadata] = []

    async def live() -> None:
        async with opened(topic) as metadata:
            held.append(metadata)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(live())
    loop.run_until_complete(loop.shutdown_default_executor())
    blocking = held[0].blocking
    # The loop does not run any more, but takes calls until it is closed.
    left_behind = POOL.submit(lambda: blocking.segments(TP))
    while not loop._ready:  # type: ignore[attr-defined]
        assert not left_behind.done()
    loop.close()
    with pytest.raises(Stopped, match="closed while a thread waited"):
        left_behind.result(WAIT_S / 3)
    with pytest.raises(Stopped, match="the event loop of the library is closed"):
        blocking.segments(TP)
