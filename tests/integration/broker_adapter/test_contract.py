"""The contract of every client: over a socket, from threads, and without a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.settings import ClientSettings
from rlmm.errors import (
    EventRejected,
    InvalidArgument,
    NotAssigned,
    NotPublishable,
    NotReady,
    UnknownPartition,
)
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.server.metadata_clients import copied, done, led

if TYPE_CHECKING:
    from tests.support.server.metadata_clients import Cluster

TP, OTHER = tp(), tp("others", 1, Uuid.of(7, 7))
MARKED, STARTED, FINISHED = PartitionDeleteState
QUICK = ClientSettings(timeout_s=0.3)


async def listed(segments: Any) -> list[Any]:
    return [segment async for segment in segments]


async def test_write_right_after_becoming_leader_then_waits_for_it(cluster: Cluster) -> None:
    """A write right after the leadership change waits until the partition is ready."""
    client = await led(cluster, ClientSettings(ready_timeout_s=30.0))
    written = await client.add_segment(started("a"))
    assert written.verdict == "applied"
    assert [found.id async for found in client.list_segments(TP)] == [segment_id("a")]
    await client.wait_ready(TP)
    assert await client.is_ready(TP) is True


async def test_segment_when_finished_then_found_with_every_field(cluster: Cluster) -> None:
    """The segment read equals the written one in every field."""
    client = await led(cluster)
    begun = started(
        "a",
        10,
        500,
        {3: 10, 5: 200},
        broker_id=1,
        max_timestamp_ms=-1,
        event_timestamp_ms=1_700_000_000_000,
        size_bytes=2**31 - 1,
        txn_index_empty=True,
    )
    await client.add_segment(begun)
    assert await client.segment(begun.id) == begun
    assert await client.segment_for(TP, 3, 100) is None
    end = finished("a", event_timestamp_ms=1_700_000_000_001, custom_metadata=b"\x00\xff")
    assert (await client.update_segment(end)).verdict == "applied"
    found = await client.segment_for(TP, 3, 100)
    assert found == begun.updated(end)
    assert found.custom_metadata == b"\x00\xff"
    assert await client.segment_for(TP, 3, 200) is None
    assert await client.segment_for(TP, 5, 200) == found
    assert await client.highest_offset(TP, 3) == 199
    assert await client.highest_offset(TP, 5) == 500
    assert await client.highest_offset(TP, 9) is None


async def test_f52_event_when_repeated_in_every_field_then_a_duplicate(cluster: Cluster) -> None:
    """Failure scenario F52: an exact repeat is marked as a duplicate and changes nothing."""
    client = await led(cluster)
    await client.add_segment(started("a"))
    assert (await client.add_segment(started("a"))).verdict == "duplicate"
    assert (await client.update_segment(finished("a"))).verdict == "applied"
    assert (await client.update_segment(finished("a"))).verdict == "duplicate"
    assert len(await listed(client.list_segments(TP))) == 1


async def test_f51_event_when_refused_by_state_machine_then_not_stored(cluster: Cluster) -> None:
    """Failure scenario F51: the writer gets the reason, and nothing is stored."""
    client = await led(cluster)
    await client.wait_ready(TP)
    before = await client.read_token()
    with pytest.raises(EventRejected) as caught:
        await client.update_segment(finished("a"))
    assert (caught.value.reason, caught.value.stored_at) == ("unknown-segment", None)
    with pytest.raises(EventRejected):
        await client.put_partition_delete(partition_delete(FINISHED))
    assert await client.read_token() == before


async def test_f53_event_when_no_broker_could_digest_it_then_not_sent(cluster: Cluster) -> None:
    """Failure scenario F53: a wrong first state is refused at once, even without a service."""
    client = await cluster.client(1, QUICK)
    with pytest.raises(NotPublishable):
        await client.add_segment(started("a", state=SegmentState.COPY_SEGMENT_FINISHED))
    with pytest.raises(InvalidArgument):
        await client.add_segment(None)
    statistics = await done(client.statistics())
    assert "add_segment" not in statistics.calls


async def test_f22_f23_f93_broker_before_its_assignment_then_not_ready(cluster: Cluster) -> None:
    """F22, F23, F93: before its assignment a broker gets not ready for any partition."""
    client = await cluster.client(1, ClientSettings(is_repeating=False))
    with pytest.raises(NotReady) as caught:
        await client.segment_for(TP, 0, 5)
    assert (caught.value.reason, caught.value.user_partition) == ("assignment-unknown", str(TP))
    assert await client.is_ready(TP) is False
    with pytest.raises(NotReady):
        await client.add_segment(started("a"), timeout_s=2.0)


async def test_f21_partition_when_it_is_another_brokers_then_not_assigned(cluster: Cluster) -> None:
    """Failure scenario F21: every question gets not assigned, and none an empty answer."""
    client = await led(cluster)
    other = segment_id("a", OTHER)
    questions = [
        client.segment_for(OTHER, 0, 0),
        client.segment(other),
        client.highest_offset(OTHER, 0),
        client.next_segment_with_txn_index(OTHER, 0, 0),
        client.remote_log_size(OTHER),
        client.remote_log_size(OTHER, 0),
        client.partition_delete(OTHER),
        client.page(OTHER),
        client.page(OTHER, 0),
        client.wait_ready(OTHER),
        client.add_segment(started(other)),
    ]
    for question in questions:
        with pytest.raises(NotAssigned):
            await question
    for segments in (client.list_segments(OTHER), client.list_segments_by_epoch(OTHER, 0)):
        with pytest.raises(NotAssigned):
            await listed(segments)
    assert await client.is_ready(OTHER) is False


async def test_write_when_to_be_stored_unassigned_then_others_see_it(cluster: Cluster) -> None:
    """The writer for another broker gets `stored-not-assigned`, and that broker reads the event."""
    one, two = await led(cluster), await cluster.client(2)
    await done(two.on_partition_leadership_changes([], [OTHER]))
    await two.wait_ready(OTHER)
    stored = await one.add_segment(started(segment_id("a", OTHER)), unassigned="store")
    assert stored.verdict == "stored-not-assigned"
    at_least = {stored.metadata_partition: stored.offset}
    assert len(await listed(two.list_segments(OTHER, at_least=at_least))) == 1


async def test_partition_when_stopped_then_not_assigned_from_then_on(cluster: Cluster) -> None:
    """A stopped partition is not assigned from the next question on, until it is given again."""
    client = await led(cluster)
    await copied(client, "a", 0, 99)
    await done(client.on_stop_partitions([TP]))
    with pytest.raises(NotAssigned):
        await client.segment_for(TP, 0, 50)
    assert await client.is_ready(TP) is False
    await done(client.on_partition_leadership_changes([], [TP]))
    assert (await client.segment_for(TP, 0, 50)).id == segment_id("a")
    await done(client.on_stop_partitions([OTHER]))
    assert (await client.segment_for(TP, 0, 50)).id == segment_id("a")


async def test_f83_partition_when_nothing_was_ever_stored_then_unknown(cluster: Cluster) -> None:
    """Failure scenario F83: a partition without any event is unknown, which differs from empty."""
    client = await led(cluster)
    await client.wait_ready(TP)
    with pytest.raises(UnknownPartition):
        await client.segment_for(TP, 0, 0)
    await client.add_segment(started("a"))
    for update in (delete_started("a"), delete_finished("a")):
        await client.update_segment(update)
    assert await listed(client.list_segments(TP)) == []
    assert await client.segment(segment_id("a")) is None


async def test_listing_when_it_takes_many_pages_then_in_order(cluster: Cluster) -> None:
    """A listing of pages of any size is complete and rises by start offset."""
    client = await led(cluster, ClientSettings(page_size=2))
    for number in reversed(range(7)):
        epoch = number % 2
        await client.add_segment(
            started(f"s{number}", number * 10, number * 10 + 9, {epoch: number * 10})
        )
    segments = await listed(client.list_segments(TP))
    assert [segment.start_offset for segment in segments] == [0, 10, 20, 30, 40, 50, 60]
    odd = await listed(client.list_segments_by_epoch(TP, 1))
    assert [segment.start_offset for segment in odd] == [10, 30, 50]
    assert await listed(client.list_segments_by_epoch(TP, 5)) == []
    assert await client.remote_log_size(TP) == 7 * 1024
    assert await client.remote_log_size(TP, 1) == 3 * 1024
    page, after = await client.page(TP, limit=5)
    rest, end = await client.page(TP, after=after, limit=5)
    assert ([*page, *rest], end) == (segments, None)


async def test_look_ups_by_the_dozen_then_answered_in_order_or_refused(cluster: Cluster) -> None:
    """A refused look-up does not affect the others of its batch."""
    client = await led(cluster)
    await copied(client, "a", 0, 99)
    asked = [(TP, 0, 50), (OTHER, 0, 1), (TP, 0, 100), (TP, -1, 0), (TP, 0, 0)]
    found, foreign, none, wrong, again = await client.segments_for(asked)
    assert found == again == await client.segment_for(TP, 0, 50)
    assert none is None
    assert isinstance(foreign, NotAssigned)
    assert isinstance(wrong, InvalidArgument)
    assert await client.segments_for([]) == []


async def test_look_ups_when_many_requests_are_needed_then_answered(cluster: Cluster) -> None:
    """The client splits a batch that is larger than the service's maximum."""
    client = await led(cluster)
    await copied(client, "a", 0, 2_499)
    unheard = await cluster.client()  # which does not know yet how many are taken at once
    assert len(await unheard.segments_for([(TP, 0, offset) for offset in range(1_502)])) == 1_502
    answers = await client.segments_for([(TP, 0, offset) for offset in range(2_502)])
    assert [answer is None for answer in answers] == [False] * 2_500 + [True] * 2


async def test_next_segment_with_txn_index_then_steps_over_those_without(cluster: Cluster) -> None:
    """The first segment from the offset on that may have aborted records is found."""
    client = await led(cluster)
    await copied(client, "a", 0, 9, txn_index_empty=True)
    await copied(client, "b", 10, 19)
    assert (await client.next_segment_with_txn_index(TP, 0, 5)).id == segment_id("b")
    assert await client.next_segment_with_txn_index(TP, 0, 20) is None


async def test_partition_when_deleted_step_by_step_then_gone_at_the_end(cluster: Cluster) -> None:
    """A partition's deletion changes no answer until it is finished; then nothing is known."""
    client = await led(cluster)
    await copied(client, "a", 0, 99)
    assert await client.partition_delete(TP) is None
    for state in (MARKED, STARTED):
        await client.put_partition_delete(partition_delete(state))
        assert len(await listed(client.list_segments(TP))) == 1
    for update in (delete_started("a"), delete_finished("a")):
        await client.update_segment(update)
    await client.put_partition_delete(partition_delete(FINISHED))
    with pytest.raises(UnknownPartition):
        await client.segment_for(TP, 0, 50)
    assert await client.partition_delete(TP) == partition_delete(FINISHED)


async def test_read_token_then_another_broker_with_it_sees_the_write(cluster: Cluster) -> None:
    """A read token makes another broker wait for the write; out of reach it is not ready."""
    one, two = await led(cluster), await cluster.client(2)
    await done(two.on_partition_leadership_changes([], [TP]))
    written = await one.add_segment(started("a"))
    token = await one.read_token()
    assert token[written.metadata_partition] >= written.offset
    assert (await two.segment(segment_id("a"), at_least=token)) == started("a")
    assert (await two.segment(segment_id("a"), linearizable=True)) == started("a")
    never = {written.metadata_partition: written.offset + 100}
    with pytest.raises(NotReady):
        await two.segment(segment_id("a"), at_least=never, timeout_s=7.0)  # told at 90 %


async def test_client_of_no_broker_then_sees_all_and_reports_none(cluster: Cluster) -> None:
    """A client without a broker id reads everything and cannot set an assignment."""
    broker = await led(cluster)
    await copied(broker, "a", 0, 99)
    client = await cluster.client()
    assert (await client.segment_for(TP, 0, 50)).id == segment_id("a")
    with pytest.raises(InvalidArgument):
        await done(client.on_partition_leadership_changes([TP], []))
    with pytest.raises(InvalidArgument):
        await done(client.on_stop_partitions([TP]))
