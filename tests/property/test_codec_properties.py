"""The codec, its fast path and state images under any bytes, events and histories."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import ImageCorrupt, InvalidArgument, NotPublishable
from rlmm.metadata.decoding import decode, decode_partition_key
from rlmm.metadata.encoding import encode, encode_any, encode_custom, encode_writer
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.fast_decoding import cut
from rlmm.metadata.ids import SegmentId, Uuid, is_possible
from rlmm.metadata.image import partition_image, shard_image
from rlmm.metadata.image_reading import read_partition_image, read_shard_image
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.row import NOT_FINISHED, finish_of, is_sound_row, row_of, segment_of
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.metadata.state_check import violations
from rlmm.metadata.verdicts import Undecodable
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from tests.support.builders import segment_id, started
from tests.support.engine.chosen import ChosenShard
from tests.support.records import golden, strategies

if TYPE_CHECKING:
    from random import Random

    from rlmm.metadata.events import Event
    from rlmm.metadata.report import Report


def require_sense(value: bytes) -> None:
    event = decode(value)
    parts = cut(value)
    if isinstance(event, Undecodable):
        assert parts is None
        assert event.detail
        return
    assert decode(encode_any(event)) == event
    if parts is None:
        return
    assert isinstance(event, SegmentMetadata | SegmentUpdate)
    if isinstance(event, SegmentMetadata):
        assert parts[1:] == (bytes(event.id.uuid), row_of(event))
    else:
        writer = encode_writer(event.broker_id, event.event_timestamp_ms)
        custom = encode_custom(event.custom_metadata)
        assert parts[1:] == (bytes(event.id.uuid), event.state.value, writer, custom)
    key = event.id.partition.key
    assert parts[0] == key or "\ufffd" in event.id.partition.topic


@given(strategies.EVENTS)
def test_f59_event_when_encoded_then_decodes_to_itself_or_is_refused(event: Event) -> None:
    """Any event decodes from its record to itself; strict encoding refuses kind, state or name."""
    value = encode_any(event)
    assert decode(value) == event
    require_sense(value)
    started = SegmentState.COPY_SEGMENT_STARTED
    match event:
        case SegmentMetadata():
            may_be_written = event.state is started
        case SegmentUpdate():
            may_be_written = event.state is not started
        case _:
            may_be_written = value[1] == 2
    if not may_be_written or isinstance(event, SegmentSnapshot):
        with pytest.raises(NotPublishable):
            encode(event)
        return
    partition = event.partition if isinstance(event, PartitionDelete) else event.id.partition
    if is_possible(partition):
        assert encode(event) == value
    else:
        with pytest.raises(InvalidArgument):
            encode(event)


@given(strategies.segments(), st.integers(-1, 2**63 - 1))
def test_segment_when_put_into_a_row_then_comes_back(segment: SegmentMetadata, finish: int) -> None:
    """A row holds every valid segment."""
    assert segment_of(segment.id, row_of(segment, finish)) == segment


@given(strategies.UPDATES | strategies.segments(), st.data())
def test_value_when_cut_off_then_is_no_record(event: Event, data: st.DataObject) -> None:
    """No prefix of a record is a record."""
    value = encode_any(event)
    size = data.draw(st.integers(0, len(value) - 1), label="bytes left")
    assert isinstance(decode(value[:size]), Undecodable)
    assert cut(value[:size]) is None


HEADS = st.integers(0, 4).map(lambda api_key: bytes((1, api_key, 0)))


@pytest.mark.parametrize("heads", [st.just(b""), HEADS], ids=["none", "sound"])
@given(st.data(), st.binary(max_size=200))
def test_f62_bytes_when_arbitrary_then_are_read_without_an_error(
    heads: st.SearchStrategy[bytes], data: st.DataObject, body: bytes
) -> None:
    """The decoder turns any bytes, also behind a sound head, into an event or a reason."""
    require_sense(data.draw(heads) + body)


@given(strategies.EVENTS, strategies.RANDOM)
def test_f62_value_when_damaged_then_is_read_without_an_error(event: Event, random: Random) -> None:
    """Kafka's own records, and those of any event, become an event or a reason when damaged."""
    for value in (*(one.value for one in golden.ALL), encode_any(event)):
        for _ in range(10):
            require_sense(strategies.damaged(random, value))


def apply(values: list[bytes | None]) -> tuple[Report, bytes]:
    shard = ChosenShard(0)
    batch = build_batch(records_of(values, 0), 0, last_offset=len(values))
    return shard.apply(RecordSet(0, batch)), shard.image()


def with_damage(values: list[bytes], random: Random) -> list[bytes | None]:
    """Return *values* with some damaged, some repeated, and some followed by a tombstone."""
    made: list[bytes | None] = []
    for value in values:
        made.append(value if random.random() < 0.7 else strategies.damaged(random, value))
        if random.random() < 0.1:
            made.append(random.choice((value, None, b"")))
    return made


@given(strategies.histories(), strategies.RANDOM)
def test_values_without_cutting_then_give_the_same(history: list[Event], random: Random) -> None:
    """The fast way and the full decoder give the same reports, verdicts and state."""
    values = with_damage(strategies.values_of(history), random)
    fast = apply(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlmm.metadata.python_shard.cut", lambda _: None)
        slow = apply(values)
    assert fast == slow


@given(strategies.UUIDS, strategies.INT32, st.integers(1, 2**31 - 1))
def test_f56_partition_lies_within_the_topic(topic_id: bytes, partition: int, count: int) -> None:
    """Every user partition has its place, and always the same."""
    found = metadata_partition_for(topic_id, partition, count)
    assert 0 <= found < count
    assert metadata_partition_for(bytes(topic_id), partition, count) == found
    assert metadata_partition_for(topic_id, partition, 1) == 0


def played(history: list[Event]) -> ChosenShard:
    shard = ChosenShard(2)
    for event in history:
        shard.apply_event(event)
    return shard


@given(strategies.histories() | st.lists(strategies.segments(), max_size=4))
def test_shard_when_exported_and_imported_then_is_the_same(history: list[Event]) -> None:
    """An imported shard, and each partition alone, has the same image, answers and counts."""
    before = played(history)
    image = before.image()
    after = ChosenShard.from_image(image)
    assert after.image() == image
    assert after.position == before.position == len(history)
    assert set(after.partitions()) == set(before.partitions())
    for partition in before.partitions():
        assert after.partition_image(partition) == before.partition_image(partition)
        assert after.segments(partition) == before.segments(partition)
        assert after.size(partition) == before.size(partition)
        assert after.partition_delete(partition) == before.partition_delete(partition)
        for epoch in range(3):
            assert after.epoch_view(partition, epoch) == before.epoch_view(partition, epoch)
            assert after.size_of_epoch(partition, epoch) == before.size_of_epoch(partition, epoch)
            listed = before.segments_of_epoch(partition, epoch)
            assert after.segments_of_epoch(partition, epoch) == listed
            for offset in range(-1, 33, 2):
                found = before.segment_for(partition, epoch, offset)
                assert after.segment_for(partition, epoch, offset) == found
    states = read_shard_image(image)[2]
    images = [partition_image(state) for state in states]
    for alone in images:
        again = read_partition_image(alone)
        assert partition_image(again) == alone
        assert not violations(again)
    assert set(images) == {before.partition_image(partition) for partition in before.partitions()}


@given(strategies.histories(), strategies.RANDOM)
def test_image_when_damaged_then_is_refused_or_sound(history: list[Event], random: Random) -> None:
    """Damage is `ImageCorrupt`, or makes the image of another sound state; nothing else happens."""
    image = played(history).image()
    for _ in range(20):
        damaged = strategies.damaged(random, image)
        with suppress(ImageCorrupt):
            partition, position, states = read_shard_image(damaged)
            assert shard_image(partition, position, states) == damaged
            assert not [broken for state in states for broken in violations(state)]


@given(st.binary(max_size=300))
def test_image_when_it_is_arbitrary_bytes_then_is_refused_or_is_what_it_says(image: bytes) -> None:
    """Arbitrary bytes are refused by name, never by accident."""
    with suppress(ImageCorrupt):
        assert partition_image(read_partition_image(image)) == image
    with suppress(ImageCorrupt):
        assert shard_image(*read_shard_image(image)) == image


@given(strategies.histories(), strategies.RANDOM)
def test_row_that_passes_the_quick_check_is_sound(history: list[Event], random: Random) -> None:
    """The quick check accepts no row that the full check would refuse."""
    _, _, states = read_shard_image(played(history).image())
    for state in states:
        partition = decode_partition_key(state.key)
        assert partition is not None
        for uuid, row in state.rows.items():
            for candidate in (row, *(strategies.damaged(random, row) for _ in range(10))):
                if is_sound_row(candidate):
                    segment = replace(segment_of(SegmentId(partition, Uuid(uuid)), candidate))
                    finish = finish_of(candidate)
                    assert row_of(segment, finish) == candidate
                    was_finished = finish != NOT_FINISHED
                    is_finished = segment.state is SegmentState.COPY_SEGMENT_FINISHED
                    is_started = segment.state is SegmentState.COPY_SEGMENT_STARTED
                    assert finish >= NOT_FINISHED
                    assert segment.state is not SegmentState.DELETE_SEGMENT_FINISHED
                    assert was_finished or not is_finished
                    assert not (was_finished and is_started)


@pytest.mark.parametrize("custom", [None, b"", b"x", bytes(126), bytes(127)], ids=str)
def test_row_of_the_common_form_is_told_to_be_sound_at_once(custom: bytes | None) -> None:
    """Rows with one epoch and short custom metadata, the most common form, pass the quick check."""
    row = row_of(started(segment_id(1), custom_metadata=custom))
    assert is_sound_row(row) is (custom is None or len(custom) < 127)
