"""
Numbered failure scenarios of copying and deleting on a stock broker, with store faults and kills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.kafka.clients import produce, until
from tests.kafka.faulty_store import Fault, FaultyStore, faulty_store
from tests.kafka.ledger import read
from tests.kafka.node import kafka_id
from tests.kafka.plugin import our_bucket
from tests.kafka.stock_manager import StockRefused
from tests.support.builders import delete_started, finished, segment_id, started
from tests.support.plugin.operator_commands import FOUND, Operator
from tests.support.stores.s3_servers import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.ids import SegmentId
    from tests.integration.plugin.conftest import NewKafka, NewPeer
    from tests.kafka.plugin_kafka import PluginKafka
    from tests.kafka.stock_manager import StockPeer

RECORDS = [b"%04d" % number + b"x" * 496 for number in range(60)]
SEGMENTS = 3
"""At least: two full ones of 28 records, and one that is rolled because it is old."""
DEADLINE_S = 60.0
CS, CF, DS, DF = SegmentState
LOG_IS_WRITTEN = r"^(PUT|POST) \S+\.log"
INDEXES_ARE_WRITTEN = r"^(PUT|POST) \S+\.indexes"
DELETION = r"^(DELETE |POST \S+\?delete)"
OLD_LEADER = 9
AT_ONCE = ("--copy-older-than", "1ms", "--delete-older-than", "1ms", "--output", "json")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FaultyStore]:
    with faulty_store(tmp_path) as made:
        yield made


@pytest.fixture
def kafka(store: FaultyStore, new_kafka: NewKafka, plugins: Path) -> PluginKafka:
    return new_kafka(storage=our_bucket(plugins, store.endpoint, BUCKET))


@pytest.fixture
def start_old_leader(our_kafka: PluginKafka, new_peer: NewPeer) -> Callable[[], StockPeer]:
    cluster_id, address = our_kafka.node.cluster_id, our_kafka.sidecar.address
    return lambda: new_peer(our_kafka.bootstrap, cluster_id, address, OLD_LEADER)


def events_of(kafka: PluginKafka) -> list[SegmentMetadata | SegmentUpdate]:
    events = [one.event for one in kafka.metadata_events("orders")]
    return [one for one in events if not isinstance(one, PartitionDelete)]


def lives(kafka: PluginKafka) -> dict[SegmentId, list[SegmentState]]:
    found: dict[SegmentId, list[SegmentState]] = {}
    for one in events_of(kafka):
        found.setdefault(one.id, []).append(one.state)
    return found


def assert_copied_once(kafka: PluginKafka) -> set[str]:
    copied = {one for one, states in lives(kafka).items() if CF in states}
    ranges = sorted(
        (one.start_offset, one.last_offset)
        for one in events_of(kafka)
        if isinstance(one, SegmentMetadata) and one.id in copied
    )
    behind = 0
    for first, last in ranges:
        assert first == behind, ranges
        behind = last + 1
    assert behind == len(RECORDS)
    return {str(one.uuid) for one in copied}


async def until_event(kafka: PluginKafka, state: SegmentState, count: int = 1) -> None:
    await until(
        lambda: kafka.segments_that_reached("orders", state) >= count,
        f"{count} events of {state.name}",
        deadline_s=DEADLINE_S,
    )


async def assert_tiered_whole(kafka: PluginKafka) -> None:
    await kafka.wait_until_tiered("orders", SEGMENTS, deadline_s=DEADLINE_S)
    await kafka.wait_until_trimmed("orders", deadline_s=DEADLINE_S)
    found = await read(kafka.login, "orders", "read_uncommitted")
    assert [one.value for one in found] == RECORDS


async def test_f57_late_finish_then_refused(
    our_kafka: PluginKafka, start_old_leader: Callable[[], StockPeer]
) -> None:
    """F57: the old leader gets a refusal for its late finish, and the copy replaces none."""
    await our_kafka.create_topic("orders")
    await produce(our_kafka.login, "orders", RECORDS[:1])
    partition = our_kafka.user_partition("orders")
    late = segment_id("late", partition)
    peer = start_old_leader()
    peer.assign(partition)
    await until(lambda: peer.is_ready(partition), "the old leader is ready")
    peer.add(started(late, 0, 27, {0: 0}, broker_id=OLD_LEADER))
    peer.assign(follows=(partition,))
    await produce(our_kafka.login, "orders", RECORDS[1:])
    await our_kafka.wait_until_tiered("orders", SEGMENTS, deadline_s=DEADLINE_S)
    with pytest.raises(StockRefused, match="copied-by-another") as refused:
        peer.update(finished(late, broker_id=OLD_LEADER))
    assert refused.value.java_class.endswith(".RemoteStorageException")
    assert lives(our_kafka)[late] == [CS]
    successor = peer.lookup(partition, 0, 5)
    assert successor is not None
    assert successor.id != late
    await assert_tiered_whole(our_kafka)


@pytest.mark.long
async def test_f60_f104_custom_metadata_kept(
    our_kafka: PluginKafka, start_old_leader: Callable[[], StockPeer]
) -> None:
    """F104, F60: custom metadata stays through both deletion events, also where one omits it."""
    await our_kafka.create_topic("orders")
    await produce(our_kafka.login, "orders", RECORDS)
    await assert_tiered_whole(our_kafka)
    custom = {one.id: one.custom_metadata for one in events_of(our_kafka) if one.state is CF}
    assert len(custom) >= SEGMENTS
    assert all(custom.values())
    await our_kafka.delete_topic("orders")
    await our_kafka.wait_until_deleted("orders", len(custom), deadline_s=DEADLINE_S)
    for event in events_of(our_kafka):
        if event.state in {DS, DF}:
            assert event.custom_metadata == custom[event.id]

    others = TopicIdPartition(Uuid.parse(kafka_id()), "others", 0)
    one = segment_id("one", others)
    peer = start_old_leader()
    peer.assign(others)
    await until(lambda: peer.is_ready(others), "it is ready")
    peer.add(started(one))
    peer.update(finished(one, custom_metadata=b"\x01\x02"))
    peer.update(delete_started(one))
    (found,) = peer.list(others)
    assert (found.state, found.custom_metadata) == (DS, b"\x01\x02")


@pytest.mark.long
async def test_f102_copy_when_killed_then_made_anew(kafka: PluginKafka, store: FaultyStore) -> None:
    """F102: the killed broker copies again under a new id; the open copy is reported as stuck."""
    store.faults[LOG_IS_WRITTEN] = Fault.HELD
    await kafka.create_topic("orders")
    await produce(kafka.login, "orders", RECORDS)
    await until(lambda: bool(store.met), "an upload is under way", deadline_s=DEADLINE_S)
    ((cut, states),) = lives(kafka).items()
    assert states == [CS]
    kafka.node.kill()
    store.faults.clear()
    kafka.node.start()
    await assert_tiered_whole(kafka)
    found = lives(kafka)
    assert found[cut] == [CS]
    assert_copied_once(kafka)
    assert not [key for key in store.objects() if str(cut.uuid) in key]
    operator = Operator(kafka, ())
    done = await operator("stuck", *operator.of_cluster, *AT_ONCE)
    findings = {one["fields"]["segment_id"]: one for one in done.expect(FOUND).document["items"]}
    assert findings[str(cut.uuid)]["code"] == "COPY-ABANDONED"


@pytest.mark.parametrize("fault", [Fault.DENIED, pytest.param(Fault.CUT, marks=pytest.mark.long)])
async def test_f108_upload_when_it_fails_half_way_then_nothing_is_left_and_it_is_made_anew(
    kafka: PluginKafka, store: FaultyStore, fault: Fault
) -> None:
    """F108: after a failed upload no object is left, and a new id copies with one log line each."""
    store.faults[INDEXES_ARE_WRITTEN] = fault
    await kafka.create_topic("orders")
    await produce(kafka.login, "orders", RECORDS)
    await until_event(kafka, DF)
    failed = next(iter(lives(kafka)))
    store.faults.clear()
    await assert_tiered_whole(kafka)
    found = lives(kafka)
    assert found[failed] == [CS, DS, DF]
    copied = assert_copied_once(kafka)
    assert [one for one, states in found.items() if states[-1] is CS] == []
    assert len(kafka.tiering_errors()) <= len(found) - len(copied)
    await until(
        lambda: all(any(one in key for one in copied) for key in store.objects()),
        "nothing was left of what failed",
    )
    assert len(store.objects()) == 3 * len(copied)


@pytest.mark.long
async def test_f108_copies_when_store_is_away(kafka: PluginKafka, store: FaultyStore) -> None:
    """F108: a failed deletion stays DELETE_SEGMENT_STARTED until the store is back."""
    store.faults["."] = Fault.CUT
    await kafka.create_topic("orders")
    await produce(kafka.login, "orders", RECORDS)
    await until_event(kafka, DS, 2)
    store.faults.clear()
    await assert_tiered_whole(kafka)
    copied = assert_copied_once(kafka)
    await until(
        lambda: all(states[-1] in {CF, DF} for states in lives(kafka).values()),
        "every copy that failed is ended",
        deadline_s=DEADLINE_S,
    )
    assert len(store.objects()) == 3 * len(copied)


@pytest.mark.long
async def test_f116_half_deleted_topic_then_listed(kafka: PluginKafka, store: FaultyStore) -> None:
    """F116: the command lists and removes the remains that Kafka does not resume to delete."""
    await kafka.create_topic("orders")
    await produce(kafka.login, "orders", RECORDS)
    await assert_tiered_whole(kafka)
    topic_id = kafka.topic_id("orders")
    sizes = [one.size_bytes for one in events_of(kafka) if isinstance(one, SegmentMetadata)]
    store.faults[DELETION] = Fault.HELD
    await kafka.delete_topic("orders")
    await until(lambda: bool(store.met), "the deletion is under way", deadline_s=DEADLINE_S)
    kafka.node.kill()
    store.faults.clear()
    kafka.node.start()
    left = lives(kafka)
    assert all(states[:2] == [CS, CF] for states in left.values())
    assert any(DS in states for states in left.values())
    assert not any(DF in states for states in left.values())
    address = ("--store", f"s3://{BUCKET}", "--endpoint", store.endpoint, "--path-style")
    operator = Operator(kafka, address)
    done = await operator("stuck", *operator.of_cluster, *AT_ONCE)
    found = done.expect(FOUND).document["items"]
    stalled = [one["fields"] for one in found if one["code"] == "DELETE-STALLED"]
    assert {one["segment_id"] for one in stalled} == {
        str(one.uuid) for one, states in left.items() if DS in states
    }
    (gone,) = [one["fields"] for one in found if one["code"] == "TOPIC-GONE"]
    assert gone["topic_id"] == str(topic_id)
    assert (gone["segments"], gone["size_bytes"]) == (len(sizes), sum(sizes))
    assert gone["last_event_ms"] == max(one.event_timestamp_ms for one in events_of(kafka))
    done = await operator.tier("expire", *operator.of_cluster, "--deleted-topics", "--apply")
    done.expect()
    assert all(states[-1] is DF for states in lives(kafka).values())
    assert [key for key in store.objects() if key.startswith("orders-")] == []
    done = await operator("stuck", *operator.of_cluster, *AT_ONCE)
    assert done.expect().document["items"] == []
