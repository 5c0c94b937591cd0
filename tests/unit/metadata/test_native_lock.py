"""Readers in threads beside a record set that the native core applies."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from rlmm.base.native_core import ShardEngine
from rlmm.metadata.engines import shard_type
from rlmm.records.record_set import RecordSet
from tests.support.builders import delete_started, segment_id, started
from tests.support.engine.chosen import needs_native
from tests.support.engine.shards import batch_of

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

pytestmark = needs_native
UPDATES = 20_000
READERS = 2
ROUNDS_MAX = 2_000
WANTED = segment_id("a")


@pytest.mark.parametrize("per_batch", [1, UPDATES])
def test_readers_beside_a_long_record_set_then_see_whole_records_on_the_way(per_batch: int) -> None:
    """Each reader gets the lock in the midst, and finds the broker that fits the time."""
    events: list[Event] = [started("a", broker_id=0), delete_started("a", broker_id=0)]
    events += [
        delete_started("a", broker_id=time % 1_000, event_timestamp_ms=time)
        for time in range(len(events), UPDATES)
    ]
    data = b"".join(
        batch_of(events[at : at + per_batch], at) for at in range(0, UPDATES, per_batch)
    )
    shards = [shard_type(ShardEngine.NATIVE)(3)]
    on_the_way = [threading.Event() for _ in range(READERS)]
    torn: list[tuple[int, int]] = []
    is_over = threading.Event()

    def read(is_seen: threading.Event) -> None:
        while not is_over.is_set():
            found = shards[-1].segment(WANTED)
            if found is None:
                continue
            if 1 < found.event_timestamp_ms < UPDATES - 1:
                is_seen.set()
            if found.broker_id != found.event_timestamp_ms % 1_000:
                torn.append((found.broker_id, found.event_timestamp_ms))

    threads = [threading.Thread(target=read, args=(is_seen,)) for is_seen in on_the_way]
    for thread in threads:
        thread.start()
    try:
        for _ in range(ROUNDS_MAX):
            shards.append(shard_type(ShardEngine.NATIVE)(3))
            shards[-1].apply_event(events[0])
            del shards[0]
            assert shards[0].apply(RecordSet(3, data)).next_offset == UPDATES
            if all(is_seen.is_set() for is_seen in on_the_way):
                break
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert all(is_seen.is_set() for is_seen in on_the_way)
    assert torn == []
    assert shards[-1].validate() == []
