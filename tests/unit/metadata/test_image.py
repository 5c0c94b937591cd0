"""State images: their bytes, and that they bring back exactly the state they were made of."""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ImageCorrupt
from rlmm.metadata.image import partition_image, shard_image
from rlmm.metadata.image_reading import read_partition_image, read_shard_image
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.state_check import violations
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engine.chosen import ChosenShard
from tests.support.records import golden

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

pytestmark = pytest.mark.slow

PAYMENTS = tp("payments", 0)

HISTORY: tuple[Event, ...] = (
    started(2, 5, 99, {0: 5, 1: 50}, broker_id=42, custom_metadata=b"\xab"),
    finished(2, broker_id=42, event_timestamp_ms=123, custom_metadata=b"\xab\xcd"),
    started(1, 100, 199, {3: 100}),
    started(1, 100, 199, {4: 100}),
    partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, event_timestamp_ms=7),
)

ORDERS_IMAGE = bytes.fromhex(
    # key: length, topic name, topic id, partition
    "1b" "076f7264657273" "000000000000000000000000000000ca" "00000007"
    # delete: marked, broker, timestamp
    "00" "00000001" "0000000000000007"
    # two segments; the first: id, length of the row, state, indexed, never finished,
    "02" "00000000000000000000000000000001" "41" "00" "00" "ffffffffffffffff"
    # broker, event timestamp, start, end, max timestamp,
    "00000001" "0000000000000000" "0000000000000064" "00000000000000c7" "ffffffffffffffff"
    # one epoch, size, no custom metadata
    "02" "00000004" "0000000000000064" "00" "00000400" "00"
    # the second, finished at offset 1
    "00000000000000000000000000000002" "50" "01" "00" "0000000000000001"
    "0000002a" "000000000000007b" "0000000000000005" "0000000000000063" "ffffffffffffffff"
    "03" "00000000" "0000000000000005" "00" "00000001" "0000000000000032" "00"
    "00000400" "03" "abcd"
    # four epochs; 0: watermark 49, one slot: offset, second segment; no strays
    "04" "00000000" "01" "0000000000000031" "01" "0000000000000005" "01" "00"
    # 1: watermark 99, one slot, no strays
    "00000001" "01" "0000000000000063" "01" "0000000000000032" "01" "00"
    # 3: no watermark, no slots, one stray: the first segment
    "00000003" "00" "00" "01" "00"
    # 4: no watermark, no slots, no strays
    "00000004" "00" "00" "00"
)  # fmt: skip


def played(*events: Event) -> ChosenShard:
    shard = ChosenShard(3)
    for event in events:
        shard.apply_event(event)
    return shard


SMALL = played(*HISTORY).image()
LARGER = played(
    *HISTORY,
    *(one.event for one in golden.LIFE[:3]),
    started(segment_id("a", PAYMENTS), 0, 200, {0: 0}, txn_index_empty=True),
    finished(segment_id("a", PAYMENTS)),
    started(segment_id("b", PAYMENTS), 0, 100, {0: 0, 7: 50}),
    finished(segment_id("b", PAYMENTS)),
    delete_started(segment_id("b", PAYMENTS), custom_metadata=b"x"),
    started(segment_id("c", PAYMENTS), 201, 300, {7: 201}),
    finished(segment_id("c", PAYMENTS)),
).image()


def test_partition_image_when_made_then_has_the_documented_layout() -> None:
    """The image of a small partition equals the documented bytes."""
    image = played(*HISTORY).partition_image(tp())
    assert image is not None
    assert image.hex() == ORDERS_IMAGE.hex()


def test_partition_image_when_nothing_was_deleted_then_says_so_in_one_byte() -> None:
    """A partition without a delete event carries -1 there and nothing else of it."""
    shard = played(HISTORY[0])
    image = shard.partition_image(tp())
    assert image is not None
    assert image[28:30] == b"\xff\x01"
    assert shard.partition_image(tp("nobody")) is None


def test_shard_image_when_made_then_has_the_documented_layout() -> None:
    """Magic, version, metadata partition, position, then every partition image by rising key."""
    head = b"RLMI" + bytes.fromhex("0100000003")
    assert ChosenShard(3).image() == head + bytes(8) + b"\x00"
    assert len(ORDERS_IMAGE) == 285
    position, count, length = bytes.fromhex("0000000000000005"), b"\x01", b"\x9d\x02"
    whole = head + position + count + length + ORDERS_IMAGE
    assert whole.hex() == SMALL.hex()
    shard = ChosenShard.from_image(LARGER)
    keys = sorted(partition.key for partition in shard.partitions())
    at = [LARGER.index(key) for key in keys]
    assert len(at) == 3
    assert at == sorted(at)


@pytest.mark.parametrize("image", [SMALL, LARGER], ids=["small", "larger"])
def test_image_when_read_back_then_is_written_again_byte_for_byte(image: bytes) -> None:
    """A shard made from an image is the shard the image was made of, position included."""
    shard = ChosenShard.from_image(image)
    assert shard.image() == image
    assert (shard.partition, shard.position) == (3, int.from_bytes(image[9:17]))
    assert not shard.validate()
    partition, position, states = read_shard_image(image)
    assert (partition, position) == (3, shard.position)
    for state in states:
        assert partition_image(read_partition_image(partition_image(state))) == partition_image(
            state
        )


def test_image_when_events_come_in_another_order_then_is_the_same() -> None:
    """The image depends on the state and the order of finishes only; strays stand by rising id."""
    a, b = started("a", 0, 9), started("b", 10, 19, {1: 10})
    other = started(segment_id("c", PAYMENTS))
    there = played(a, b, other)
    back = played(other, b, a)
    assert there.image() == back.image()
    repeated = played(a, a, b, other, b)
    assert repeated.partition_image(tp()) == there.partition_image(tp())
    before = [started(number, 0, 9, {0: 0}) for number in (1, 2, 3)]
    after = [started(number, 0, 9, {1: 0}) for number in (1, 2, 3)]
    image = played(*before, *after).partition_image(tp())
    assert image == played(*before[::-1], *after[::-1]).partition_image(tp())
    assert image is not None
    assert image.endswith(bytes.fromhex("0000000000000300010200000001000000"))


def test_image_when_a_name_grew_by_replacement_then_is_read_back() -> None:
    """A malformed name that is longer repaired than any name may be is state as any other."""
    long = tp(32_767 * "\ufffd")
    shard = played(started(segment_id("a", long)), finished(segment_id("a", long)))
    again = ChosenShard.from_image(shard.image())
    assert list(again.partitions()) == [long]
    assert again.image() == shard.image()
    assert not shard.validate()


@pytest.mark.parametrize("image", [SMALL, LARGER], ids=["small", "larger"])
def test_image_when_cut_off_anywhere_then_is_refused(image: bytes) -> None:
    """A prefix of an image, or an image with a tail, is refused."""
    for size in range(len(image)):
        with pytest.raises(ImageCorrupt):
            ChosenShard.from_image(image[:size])
    for tail in (b"\x00", b"\xff", image):
        with pytest.raises(ImageCorrupt, match=f"{len(tail)} bytes behind the end"):
            ChosenShard.from_image(image + tail)


@pytest.mark.parametrize(
    ("image", "bits_per_byte"),
    [pytest.param(SMALL, 8, id="small"), pytest.param(LARGER, 1, id="larger")],
)
def test_image_when_any_bit_is_another_then_is_refused_or_is_another_sound_image(
    image: bytes, bits_per_byte: int
) -> None:
    """An image with a flipped bit is refused or is another sound image."""
    accepted = 0
    for at, before in enumerate(image):
        for bit in range(bits_per_byte):
            byte = before ^ 1 << (at + bit) % 8
            damaged = image[:at] + bytes((byte,)) + image[at + 1 :]
            try:
                partition, position, states = read_shard_image(damaged)
            except ImageCorrupt:
                continue
            accepted += 1
            assert shard_image(partition, position, states) == damaged, (at, bit)
            assert not [broken for state in states for broken in violations(state)], (at, bit)
    assert accepted  # a timestamp, for one, is as good as any other


def test_image_when_one_segment_lists_six_thousand_epochs_then_is_read_at_once() -> None:
    """The cost of reading an image does not grow with the square of the epochs of a segment."""
    epochs = [(epoch, epoch) for epoch in range(6_000)]
    shard = played(started("a", 0, 10**6, epochs), finished("a"))
    image = shard.image()
    before_s = thread_time()  # what else the machine does is not counted
    assert ChosenShard.from_image(image).image() == image
    assert thread_time() - before_s < 2.0  # a fifth of a second; 6 s with the square


def test_image_of_a_large_partition_when_frozen_then_is_the_same_in_many_steps() -> None:
    """Freezing copies a bounded number of references in each step."""
    shard = ChosenShard(0)
    for number in range(20_000):
        shard.apply_event(started(number, number * 10, number * 10 + 9, {number % 3: number * 10}))
    steps = list(shard.freezing())
    parts = [step for step in steps if step is not None]
    assert len(parts) == 1
    assert len(steps) >= 4
    expected = shard.partition_image(tp())
    shard.apply_event(started("later", 1_000_000, 1_000_009))
    assert parts[0]() == expected


def test_freezing_when_of_one_user_partition_then_gives_its_image_alone() -> None:
    """Freezing one user partition gives its image, and none for an unknown one."""
    shard, other = ChosenShard(0), tp("others", 3)
    for partition in (tp(), other):
        shard.apply_event(started(segment_id(1, partition)))
    (make,) = [step for step in shard.freezing(other) if step is not None]
    expected = shard.partition_image(other)
    shard.apply_event(started(segment_id(2, other)))
    assert make() == expected
    assert list(shard.freezing(tp("nobody"))) == []
    assert len([step for step in shard.freezing() if step is not None]) == 2
