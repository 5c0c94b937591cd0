"""Where a log goes on behind a batch that cannot be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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


SHORT = batch(5)[:8] + b"\x00\x00\x00\x01" + batch(5)[12:]
"""A batch with a length below a header's, so that the next cannot be found."""
LYING = b"\x7f" + broken(batch(6))[1:]


@pytest.mark.parametrize(
    ("given", "position", "behind"),
    [
        pytest.param(
            record_set(broken(batch(5, 3)), batch(8), next_offset=9), 5, 8, id="a sound batch"
        ),
        pytest.param(
            record_set(broken(batch(5)), LYING, batch(7), next_offset=8), 5, 7, id="more damage"
        ),
        pytest.param(
            record_set(batch(5), broken(batch(6)), next_offset=7), 6, 7, id="the end of the set"
        ),
        pytest.param(record_set(SHORT, batch(6), next_offset=7), 5, 7, id="a wrong length"),
        pytest.param(
            record_set(broken(batch(5)), batch_of([finished("x")], 5), batch(6), next_offset=7),
            *(5, 6),
            id="a redelivered batch",
        ),
        pytest.param(record_set(broken(batch(5))), 5, None, id="nothing and no end"),
        pytest.param(record_set(broken(batch(5)), next_offset=5), 5, None, id="an end below"),
    ],
)
def test_behind_damage_then_is_the_next_sound_batch_or_the_end_of_the_set(
    given: RecordSet, position: int, behind: int | None
) -> None:
    """The reader goes on at the next sound batch, else at the end of the set, if one is known."""
    assert offset_behind(given, first_damage(given), position) == behind
