"""State images of generated shards."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import ImageCorrupt
from rlmm.metadata.decoding import decode_partition_key
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.image import partition_image, shard_image
from rlmm.metadata.image_reading import read_partition_image, read_shard_image
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.row import NOT_FINISHED, finish_of, is_sound_row, row_of, segment_of
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.validate import violations
from tests.support.builders import segment_id, started
from tests.support.records import strategies

if TYPE_CHECKING:
    from random import Random

    from rlmm.metadata.events import Event


def played(history: list[Event]) -> PythonShard:
    shard = PythonShard(2)
    for event in history:
        shard.apply_event(event)
    return shard


@given(strategies.histories() | st.lists(strategies.segments(), max_size=4))
def test_shard_when_exported_and_imported_then_is_the_same(history: list[Event]) -> None:
    """An imported shard, and each partition alone, has the same image, answers and counts."""
    before = played(history)
    image = before.image()
    after = PythonShard.from_image(image)
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
