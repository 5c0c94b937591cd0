"""Where a log goes on behind a batch that cannot be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.pump.damage_skipping import offset_behind
from rlmm.records.batch import walk
from rlmm.records.damage import DamagedBatch
from tests.support.builders import finished, started
from tests.support.engine.shards import batch_of, record_set
from tests.support.records.record_sets import broken

if TYPE_CHECKING:
    from rlmm.records.record_set import RecordSet


def first_damage(given: RecordSet) -> DamagedBatch:
    return next(found for found in walk(given.data) if isinstance(found, DamagedBatch))


def batch(base_offset: int, count: int = 1) -> bytes:
    return batch_of([started(f"{base_offset}-{number}") for number in range(count)], base_offset)


def cut_short(damaged: bytes) -> bytes:
    """Return a batch with a length below a header's, so that the next cannot be found."""
    return damaged[:8] + b"\x00\x00\x00\x01" + damaged[12:]


def test_behind_damage_when_a_sound_batch_follows_then_it_begins_there() -> None:
    """The next position is that of the next sound batch, rather than the set's own end."""
    given = record_set(broken(batch(5, 3)), batch(8), next_offset=9)
    assert offset_behind(given, first_damage(given), 5) == 8


def test_behind_damage_when_more_damage_follows_then_the_first_sound_one_counts() -> None:
    """The reader goes on at the first sound batch and believes no damaged header."""
    lying = b"\x7f" + broken(batch(6))[1:]
    given = record_set(broken(batch(5)), lying, batch(7), next_offset=8)
    assert offset_behind(given, first_damage(given), 5) == 7


def test_behind_damage_when_nothing_sound_follows_then_the_set_ends_there() -> None:
    """Without a sound batch the next position is the end of the set that the log names."""
    given = record_set(batch(5), broken(batch(6)), next_offset=7)
    assert offset_behind(given, first_damage(given), 6) == 7


def test_behind_damage_when_its_length_is_a_lie_then_the_set_ends_there() -> None:
    """When the length of a batch is wrong the next position is the end of the set."""
    given = record_set(cut_short(batch(5)), batch(6), next_offset=7)
    damage = first_damage(given)
    assert damage.stop is None
    assert offset_behind(given, damage, 5) == 7


def test_behind_damage_when_a_redelivered_batch_follows_then_it_says_nothing() -> None:
    """A batch at or below the position gives no next position."""
    given = record_set(broken(batch(5)), batch_of([finished("x")], 5), batch(6), next_offset=7)
    assert offset_behind(given, first_damage(given), 5) == 6


def test_behind_damage_when_nobody_says_then_is_not_known() -> None:
    """Without a batch and an end the next position is unknown."""
    given = record_set(broken(batch(5)))
    assert offset_behind(given, first_damage(given), 5) is None
    told = record_set(broken(batch(5)), next_offset=5)
    assert offset_behind(told, first_damage(told), 5) is None
