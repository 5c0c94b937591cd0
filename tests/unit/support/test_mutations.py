"""The fuzzer's damage: repeatable, real, and sealed with a CRC on request."""

from __future__ import annotations

from random import Random

import pytest

from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamagedBatch, DamageReason
from rlmm.records.writer import build_batch, records_of
from tests.support.records.mutations import mutated, with_sound_crc

SOUND = build_batch(records_of([b"one", b"two"], 0), 0) + build_batch(records_of([b"three"], 2), 2)


def test_mutation_with_equal_seeds_is_equal() -> None:
    """The generator alone decides: a crash can be made again from its seed."""
    first = [mutated(Random(seed), SOUND, [b"other"]) for seed in range(50)]
    assert first == [mutated(Random(seed), SOUND, [b"other"]) for seed in range(50)]


def test_mutation_changes_most_inputs_in_length_and_content() -> None:
    """Nearly every input is damaged, some shorter, some longer; empty input is no trouble."""
    rng = Random(1)
    changed = [mutated(rng, SOUND, [SOUND[::-1]]) for _ in range(300)]
    assert sum(each != SOUND for each in changed) > 270
    assert any(len(each) < len(SOUND) for each in changed)
    assert any(len(each) > len(SOUND) for each in changed)
    assert [mutated(rng, b"", [b""]) for _ in range(300)]


def test_crc_when_made_sound_lets_the_damage_behind_it_through() -> None:
    """A flipped byte is no longer seen by the CRC of its batch; other batches stay as they are."""
    damaged = bytearray(SOUND)
    damaged[len(build_batch(records_of([b"one", b"two"], 0), 0)) - 3] ^= 1
    first, _ = walk(bytes(damaged))
    assert isinstance(first, DamagedBatch)
    assert first.reason is DamageReason.CRC_MISMATCH
    sealed = with_sound_crc(bytes(damaged))
    assert all(isinstance(found, Batch) for found in walk(sealed))
    assert with_sound_crc(SOUND) == SOUND


@pytest.mark.parametrize(
    "data",
    [b"", b"short", bytes(200), SOUND[:30], b"\xff" * 100],
    ids=["empty", "short", "zeros", "cut", "ones"],
)
def test_crc_of_bytes_that_are_no_batches_is_left_alone(data: bytes) -> None:
    """Bytes without a batch stay unchanged."""
    assert with_sound_crc(data) == data
