"""State images and snapshots between the engines: many at once, damaged ones, frozen in steps."""

from __future__ import annotations

import io
import random
import struct
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ImageCorrupt, SnapshotCorrupt
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.row import row_of
from rlmm.metadata.varint import encode_varint
from rlmm.snapshot.decoding import SnapshotReader
from rlmm.snapshot.encoding import encode
from rlmm.snapshot.store import SnapshotStore
from tests.support.builders import delete_started, finished, segment_id, started, tp
from tests.support.engine.chosen import needs_native
from tests.support.engine.snapshots import (
    FREE,
    IDENTITY,
    PARTITION,
    frozen_of,
    header_of,
    segments,
    shard_of,
)
from tests.support.records.histories import EPOCHS, OFFSETS, DenseHistory

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition

pytestmark = needs_native

BOTH = (0, 1)
"""The native engine, and the one in Python."""


def engine(number: int) -> type[PythonShard]:
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - may not be built

    return (NativeShard, PythonShard)[number]


def user(number: int) -> TopicIdPartition:
    return tp(partition=number)


def images_of_users(rng: random.Random, count: int) -> list[bytes]:
    """The images of *count* user partitions, each with a random history, by rising key."""
    found = []
    for number in range(count):
        shard, history = PythonShard(PARTITION), DenseHistory(rng)
        for _ in range(rng.choice((1, 5, 60))):
            shard.apply_event(history.event())
        image = shard.partition_image(tp())
        if image is not None:
            found.append(image.replace(tp().key, user(number).key, 1))
    return found


def file_with(images: list[bytes], block_bytes: int) -> bytes:
    header = header_of(PythonShard(PARTITION), user_partitions=len(images))
    return b"".join(encode(header, [partial(bytes, image) for image in images], block_bytes))


def imported(make: type[PythonShard], content: bytes) -> tuple[PythonShard, str]:
    """The shard of a file, as far as it was read, and the error that ended the reading."""
    shard = make(PARTITION)
    shard.place_among(IDENTITY.partition_count)
    reader = SnapshotReader(io.BytesIO(content).read, len(content))
    try:
        for image in reader.images(shard.import_images):
            shard.import_partition(image)
    except (ImageCorrupt, SnapshotCorrupt) as error:
        return shard, repr(error)
    return shard, ""


def require_same(content: bytes) -> str:
    """Require that both engines make the same of a file; return the error."""
    (native, fault), (expected, expected_fault) = (imported(engine(one), content) for one in BOTH)
    assert fault == expected_fault
    assert native.image() == expected.image()
    assert native.misplaced == expected.misplaced
    assert native.validate() == []
    return fault


@pytest.mark.parametrize("seed", range(10))
def test_images_when_many_are_imported_at_once_then_the_shards_are_equal(seed: int) -> None:
    """Blocks may end anywhere in an image; the misplaced user partitions are the same."""
    rng = random.Random(seed)
    images = images_of_users(rng, 40)
    for block_bytes in (50, 700, 250_000):
        assert require_same(file_with(images, block_bytes)) == ""


@pytest.mark.parametrize("seed", range(10))
def test_images_when_one_of_many_is_damaged_then_both_engines_stop_there(seed: int) -> None:
    """The error is the same, and so is what was imported before it."""
    rng = random.Random(seed)
    images = images_of_users(rng, 12)
    refused = 0
    for _ in range(60):
        place = rng.randrange(len(images))
        odd = bytearray(images[place])
        odd[rng.randrange(len(odd))] ^= 1 << rng.randrange(8)
        damaged = [*images[:place], bytes(odd), *images[place + 1 :]]
        refused += require_same(file_with(damaged, rng.choice((60, 5_000)))) != ""
    assert refused > 5


def test_images_when_their_keys_do_not_rise_then_both_engines_refuse_them() -> None:
    """A user partition that comes twice, or too late, is no snapshot."""
    images = images_of_users(random.Random(1), 6)
    for wrong in ([images[0], images[0]], images[::-1]):
        assert "not one behind the last" in require_same(file_with(wrong, 250_000))


def with_many_segments(make: type[PythonShard]) -> PythonShard:
    """A shard with a large user partition in every form of its leader epochs, and small ones."""
    shard = make(PARTITION)
    rng = random.Random(3)
    for number in range(9_000):
        first = number * 10
        epochs = {number // 4_000: first}
        if number % 50 == 0:
            epochs[number // 4_000 + 1] = first + 5
        custom = bytes(number % 20) if number % 5 == 0 else None
        shard.apply_event(started(number, first, first + 9, epochs, custom_metadata=custom))
        if number % 900 == 0:  # an earlier first record goes on listing it in epoch 9
            again = started("stray", first, first + 9, {9: first, number: first})
            shard.apply_event(again)
        if number < 5_000 or rng.random() < 0.3:
            shard.apply_event(finished(number))
    for number in range(300):
        shard.apply_event(started(segment_id(number, user(number)), 0, 9))
    return shard


def test_freezing_when_large_then_is_of_one_position_and_equal_to_pythons() -> None:
    """Each step copies a bounded number of rows; later events are in no image."""
    native, expected = (with_many_segments(engine(one)) for one in BOTH)
    steps = list(native.freezing())
    parts = [part for part in steps if part is not None]
    wanted = [part() for part in expected.image_parts()]
    assert len(parts) == 300
    assert len(steps) - len(parts) >= 9_000 // (2_048 + 1_024)
    for number in range(9_000):
        native.apply_event(delete_started(number))
        native.apply_event(started(number + 10_000))
    assert [part() for part in parts] == wanted


def test_freezing_when_of_one_user_partition_then_is_equal_to_pythons() -> None:
    """A large user partition is frozen alone in steps, too; an unknown one is not."""
    native, expected = (with_many_segments(engine(one)) for one in BOTH)
    for one in (tp(), user(299)):
        (part,) = [step for step in native.freezing(one) if step is not None]
        native.apply_event(started(segment_id("later", one), 0, 9))
        assert part() == expected.partition_image(one)
    assert list(native.freezing(tp("nobody"))) == []


def test_clearing_when_a_shard_is_frozen_then_its_images_stay_whole() -> None:
    """A snapshot that is being written does not need the shard any more."""
    shard = with_many_segments(engine(0))
    wanted = [part() for part in shard.image_parts()]
    parts = list(shard.image_parts())
    for _ in shard.clearing():
        pass
    assert (shard.user_partitions, shard.segments(tp())) == (0, [])
    assert [part() for part in parts] == wanted


def test_image_when_a_hundred_thousand_epochs_list_one_stray_then_is_read_at_once() -> None:
    """The cost of reading an image does not grow with the square of the epochs of a stray."""
    row = row_of(started("stray", 0, 9, {-1: 0}))
    listing = b"".join(struct.pack(">ibBBB", epoch, 0, 0, 1, 0) for epoch in range(100_000))
    image = b"".join(
        (
            encode_varint(len(tp().key)) + tp().key + b"\xff",
            encode_varint(1) + segment_id("stray").uuid + encode_varint(len(row)) + row,
            encode_varint(100_001) + struct.pack(">ibBB", -1, 0, 0, 0) + listing,
        )
    )
    shard = engine(0)(PARTITION)
    before_s = thread_time()
    shard.import_partition(image)
    assert thread_time() - before_s < 0.5  # some hundredths; two seconds with the square
    assert shard.partition_image(tp()) == image


def test_import_when_counts_lie_then_takes_no_memory_for_them() -> None:
    """A count is believed only as far as the bytes behind it go."""
    key = encode_varint(len(tp().key)) + tp().key
    for body in (
        b"\xff" + encode_varint(2**31),
        b"\xff" + encode_varint(0) + encode_varint(2**31),
        b"\xff" + encode_varint(0) + encode_varint(1) + b"\0" * 5 + encode_varint(2**31),
        b"\xff" + encode_varint(2**62),
    ):
        image = key + body + bytes(1_000)
        found = []
        for one in BOTH:
            with pytest.raises(ImageCorrupt) as error:
                engine(one)(PARTITION).import_partition(image)
            found.append(str(error.value))
        assert found[0] == found[1]
    assert engine(0)(PARTITION).import_images(struct.pack(">I", 2**31) + bytes(99), 0, b"") == (
        0,
        0,
        b"",
    )


@pytest.mark.parametrize("writer", BOTH)
async def test_snapshot_when_the_other_engine_wrote_it_then_answers_the_same(
    tmp_path: Path, writer: int
) -> None:
    """A service may change its engine over one folder, in both directions."""
    written = engine(writer)(PARTITION)
    for shard in (with_many_segments(PythonShard), shard_of(segments(30, user_partition=5_000))):
        for image in shard.image_parts():
            written.import_partition(image())
    store = SnapshotStore(tmp_path, IDENTITY, engine(writer), FREE)
    await store.write(frozen_of(written))
    restored = await SnapshotStore(tmp_path, IDENTITY, engine(1 - writer), FREE).restore(
        PARTITION, 0, 2**62
    )
    assert restored is not None
    ours = restored.shard
    assert isinstance(ours, engine(1 - writer))
    assert ours.image() == written.image()
    for partition in (tp(), user(299), user(5_000), tp("nobody")):
        assert ours.segments(partition) == written.segments(partition)
        assert ours.size(partition) == written.size(partition)
        for epoch in EPOCHS:
            for offset in (*OFFSETS[:-2], 4_321, 45_000):
                assert ours.segment_for(partition, epoch, offset) == written.segment_for(
                    partition, epoch, offset
                )
