"""The topic of a cluster as a source: its records, and its errors."""

from __future__ import annotations

import asyncio
from itertools import count, islice

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable, NotReady, TopicAbsent
from rlmm.kafka_client.settings import TopicSettings
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode
from rlmm.state_sources.kafka_source import KafkaSource
from rlmm.state_sources.protocol import StateSourceKind
from tests.support.builders import finished, segment_id, started
from tests.support.kafka.fake_kafka import TOPIC, FakeKafka
from tests.support.kafka.kafka_sources import (
    COUNT,
    NUMBERS,
    cluster_of,
    fetched,
    images_in,
    images_of,
    opened_source,
    store,
)
from tests.support.logs.copied_folders import events_of, user_partition


async def test_topic_when_read_then_state_and_standing_are_those_of_its_events() -> None:
    """The source reads the state with READ and DESCRIBE only, and writes nothing."""
    kafka = cluster_of(events_of(NUMBERS))
    async with opened_source(kafka) as source:
        moment = await source.now()
        assert images_in(moment) == images_of(kafka)
        standing = await source.standing()
    assert (source.kind, source.where) == (StateSourceKind.KAFKA, "broker-0:9092")
    assert standing.is_caught_up
    assert standing.notes == ()
    assert standing.identity is not None
    assert standing.identity.partition_count == COUNT
    for one in standing.places:
        held = kafka.partitions[one.metadata_partition]
        assert (one.state, one.log_start, one.lag_records, one.lag_s) == ("open", 0, 0, 0.0)
        assert one.position == one.target == one.log_end == held.next_offset
        assert one.is_history_complete
        assert one.snapshot_age_s is None
    assert {request.api.name for _, request in kafka.asked} == {"Metadata", "ListOffsets", "Fetch"}
    assert {role for _, _, role in kafka.dials} == {"admin", "consumer"}


async def test_topic_when_one_metadata_partition_is_asked_for_then_only_that_is_read() -> None:
    """A question about one user partition costs one metadata partition."""
    kafka = cluster_of(events_of(NUMBERS))
    place = place_of(user_partition(0), COUNT)
    async with opened_source(kafka) as source:
        moment = await source.now([place])
        assert moment.positions == {place: kafka.partitions[place].next_offset}
        other = next(n for n in NUMBERS if place_of(user_partition(n), COUNT) != place)
        with pytest.raises(NotReady, match="was not read"):
            await moment.state(user_partition(other))
    assert fetched(kafka).keys() == {place}


async def test_topic_when_asked_again_then_reads_what_came_and_old_answers_stay() -> None:
    """A view that is drawn anew reads on; a state that was handed out never changes."""
    kafka = cluster_of(events_of(NUMBERS))
    place = place_of(user_partition(0), COUNT)
    async with opened_source(kafka) as source:
        before = await source.now([place])
        image, end = before.replays[place].shard.image(), kafka.partitions[place].next_offset
        again = await source.now([place])
        assert again.replays[place].shard is before.replays[place].shard
        kafka.asked.clear()
        partition = user_partition(0)
        store(kafka, [started(segment_id(2, partition), 100, 199)])
        after = await source.now([place])
        assert after.positions == {place: end + 1}
        assert before.replays[place].shard.image() == image
        assert fetched(kafka) == {place: 0}, "what was handed out is not gone on with"
        kafka.asked.clear()
        await source.standing()
        store(kafka, [finished(segment_id(2, partition))])
        standing = await source.standing()
        assert standing.places[place].position == end + 2
        kafka.asked.clear()
        store(kafka, [started(segment_id(3, partition), 200, 299)])
        await source.standing()
        assert fetched(kafka) == {place: end + 2}, "what nobody holds is gone on with"
    assert images_of(kafka)[place] != image


async def test_topic_when_created_anew_then_nothing_of_the_old_one_is_left() -> None:
    """The states of one topic are void for another of its name."""
    kafka = cluster_of(events_of(NUMBERS))
    async with opened_source(kafka) as source:
        await source.standing()
        kafka.recreate()
        store(kafka, events_of(range(100, 140)))
        moment = await source.now()
        assert images_in(moment) == images_of(kafka)


async def test_topic_when_its_head_is_gone_then_the_history_is_not_complete() -> None:
    """The standing says that records before the log start are missing."""
    kafka = cluster_of(events_of(NUMBERS))
    for held in kafka.partitions.values():
        held.log_start = 2
        held.batches = [one for one in held.batches if one[1] >= 2]
    async with opened_source(kafka) as source:
        for one in (await source.standing()).places:
            assert (one.log_start, one.is_history_complete) == (2, False)


async def test_topic_when_partitions_were_added_then_what_is_misplaced_is_noted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The source notes events outside the metadata partition that the count gives them."""
    kafka = cluster_of(events_of(NUMBERS))
    kafka.partitions |= {COUNT: kafka._made(COUNT + 1)[COUNT]}
    misplaced = [
        n for n in NUMBERS if place_of(user_partition(n), 4) != place_of(user_partition(n), 3)
    ]
    async with opened_source(kafka) as source:
        (note,) = (await source.standing()).notes
        assert note not in caplog.messages
        for _ in range(2):
            await source.now()
        assert caplog.messages.count(note) == 1
        store(kafka, events_of(misplaced))
        (same,) = (await source.standing()).notes
    assert same == note
    assert note.startswith(
        f"{len(misplaced)} user partitions have events where brokers do not look"
    )


async def test_topic_when_created_anew_with_as_many_records_then_no_misplaced_one_is_left() -> None:
    """A user partition that was misplaced in one topic is not noted for another of its name."""
    kafka = cluster_of(events_of(NUMBERS))
    kafka.add_partitions(COUNT + 1)
    async with opened_source(kafka) as source:
        assert (await source.standing()).notes
        ends = {place: held.next_offset for place, held in kafka.partitions.items()}
        kafka.recreate()
        for place, end in ends.items():
            fitting = (n for n in count() if place_of(user_partition(n), COUNT + 1) == place)
            for event in events_of(islice(fitting, end // 2)):
                kafka.partitions[place].store(encode(event))
        standing = await source.standing()
    assert {one.metadata_partition: one.position for one in standing.places} == ends
    assert standing.notes == ()


async def test_topic_when_a_leader_is_missing_then_the_rest_stands_and_now_says_why() -> None:
    """Only the metadata partition without a leader is named as not read."""
    kafka = cluster_of(events_of(NUMBERS))
    kafka.lead(1, -1)
    async with opened_source(kafka, timeout_s=5.0) as source:
        standing = await source.standing()
        assert [one.state for one in standing.places] == ["open", "replaying", "open"]
        assert standing.places[1].why == "end-unknown"
        assert "it has no leader" in standing.places[1].detail
        assert not standing.is_caught_up
        with pytest.raises(LogUnavailable, match="partition 1: it has no leader now"):
            await source.now()
        assert (await source.now([0, 2])).positions.keys() == {0, 2}


async def test_topic_when_it_gives_nothing_then_is_not_ready_with_how_far_it_came() -> None:
    """The source is not ready with its position when records do not arrive."""
    kafka = cluster_of(events_of(NUMBERS))
    kafka.hangs.add((0, "Fetch"))
    async with opened_source(kafka, timeout_s=5.0) as source:
        with pytest.raises((NotReady, LogUnavailable)):
            await source.now([0])
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        with pytest.raises((NotReady, LogUnavailable)):
            await source.now([0], wait_s=60)
        assert loop.time() - begin_s >= 60


async def test_cluster_when_nobody_listens_then_says_so_within_seconds() -> None:
    """A person at a terminal does not wait for as long as a service does."""
    kafka = cluster_of([])
    kafka.down = {0}
    async with opened_source(kafka) as source:
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        for question in (source.now, source.standing):
            with pytest.raises(LogUnavailable, match="no broker listens there") as caught:
                await question()
            assert caught.value.exit_code == 3
        assert loop.time() - begin_s <= 21


async def test_cluster_when_it_refuses_us_then_says_so_at_once() -> None:
    """Wrong credentials are no matter of waiting; nor is a right that is missing."""
    kafka = cluster_of([])
    kafka.refuses[0] = LogNotPermitted("broker-0:9092: the broker refused user 'x'")
    async with opened_source(kafka) as source:
        with pytest.raises(LogNotPermitted, match="refused user 'x'") as caught:
            await source.now()
        assert caught.value.exit_code == 3
    kafka = cluster_of([])
    kafka.exists, kafka.topic_code = False, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with opened_source(kafka) as source:
        with pytest.raises(LogNotPermitted, match="lacks the right to DESCRIBE the topic"):
            await source.standing()
    kafka = cluster_of(events_of(range(3)))
    for place in range(COUNT):
        kafka.codes["Fetch", place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with opened_source(kafka) as source:
        with pytest.raises(LogNotPermitted, match="lacks the right to READ the topic"):
            await source.now()
        standing = await source.standing()
        assert {(one.state, one.why) for one in standing.places} <= {
            ("closed", "not-permitted"), ("open", None),
        }  # fmt: skip
        assert any(one.why == "not-permitted" for one in standing.places)


async def test_cluster_when_it_has_no_such_topic_then_that_is_the_error() -> None:
    """A cluster without tiers, or the wrong one: nothing is created."""
    kafka = cluster_of([])
    kafka.exists = False
    async with opened_source(kafka) as source:
        with pytest.raises(
            TopicAbsent, match="does not exist in cluster made-up-cluster"
        ) as caught:
            await source.now()
    assert caught.value.exit_code == 2
    assert kafka.created == []


async def test_source_when_its_settings_would_write_then_is_refused() -> None:
    """The source refuses settings that create a topic or write."""
    kafka = FakeKafka()
    for settings in (
        kafka.log_settings(),
        kafka.log_settings(topic=TopicSettings(name=TOPIC, is_created=True)),
    ):
        with pytest.raises(ConfigError, match="at a cluster writes nothing"):
            await KafkaSource.open(settings, timeout_s=5)


async def test_progress_when_told_then_begins_with_all_there_is_and_ends_with_it() -> None:
    """The progress starts with the total and ends with it."""
    kafka = cluster_of(events_of(NUMBERS))
    told: list[tuple[int, int, int]] = []
    async with opened_source(kafka) as source:
        await source.now(progress=lambda *one: told.append(one))
    ends = {place: held.next_offset for place, held in kafka.partitions.items()}
    assert told[:COUNT] == [(place, 0, end) for place, end in ends.items()]
    assert {place: position for place, position, _ in told} == ends
