"""The checker itself: it stays silent about sound state and names every rule that is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import Uuid
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.state_check import violations
from tests.support.builders import delete_started, finished, started, tp
from tests.support.engine.shards import METADATA_PARTITION

if TYPE_CHECKING:
    from rlmm.metadata.partition_state import PartitionState

ONE, TWO, THREE, NOBODY = (bytes(Uuid.of(0, number)) for number in (1, 2, 3, 9))


def shard() -> PythonShard:
    made = PythonShard(METADATA_PARTITION)
    for event in (
        started(1, 0, 150, {0: 0}),
        finished(1),
        started(2, 100, 200, {0: 100, 1: 180}),
        started(3, 201, 300, {1: 201}),
        finished(3),
        finished(2),
        started(4, 0, 9, {0: 0}),
        started(5, 301, 400, {1: 301}),
        delete_started(5),
        started(6, 0, 9, {2: 0}),
        started(6, 0, 9, {3: 0}),
    ):
        made.apply_event(event)
    return made


def state_of(made: PythonShard) -> PartitionState:
    (state,) = made._states.values()
    return state


def test_checker_when_the_state_is_sound_then_finds_nothing() -> None:
    """State that events have led to is sound."""
    made = shard()
    state = state_of(made)
    assert violations(state) == []
    assert made.validate() == []
    assert state.strays
    assert state.epochs[0].shadowed


BROKEN = {
    "row": ("state.rows[ONE] = state.rows[ONE][:-1]", "row of segment"),
    "counts": ("state.counts[0] += 1", "partition: counts is"),
    "size": ("state.size_bytes += 1", "partition: size_bytes is"),
    "epoch-size": ("state.epochs[0].size_bytes -= 1", "epoch 0: size_bytes is"),
    "indexed-count": ("state.epochs[1].indexed_count += 1", "epoch 1: indexed_count is"),
    "unreferenced": ("state.epochs[0].unreferenced.pop()", "epoch 0: unreferenced is"),
    "shadowed": ("state.epochs[0].shadowed.clear()", "epoch 0: 1 hidden segments"),
    "watermark": ("state.epochs[1].highest = 299", "watermark 299 of epoch 1 lies below 300"),
    "epoch": ("del state.epochs[1]", "names epoch 1, which has no entry"),
    "epoch-number": ("state.epochs[7] = state.epochs.pop(3)", "epoch 7 stands under the number 3"),
    "listed-nobody": ("state.epochs[3].unreferenced.add(NOBODY)", "epoch 3 lists 1 segments that"),
    "slot-of-nobody": ("state.epochs[1].slots.put(1_000, NOBODY)", "epoch 1 lists 1 segments that"),
    "shadowed-nobody": ("state.epochs[1].shadow([NOBODY])", "epoch 1 lists 1 segments that"),
    "stray-nobody": ("state.strays[NOBODY] = frozenset({0})", "1 strays do not exist"),
    "stray-nowhere": ("state.strays[ONE] = frozenset({99})", "partition: strays is"),
    "slots-swapped": ("state.epochs[0].slots._ids.reverse()", "the slot of offset 0 holds"),
    "slots-unsorted": ("state.epochs[0].slots._offsets.reverse()", "the slot of offset 100 holds"),
    "top": ("state.epochs[0].slots.top = 0", "epoch 0: largest slot is 0, should be 100"),
    "key": ("state.key += b'x'", "not the key of a user partition"),
}
"""A statement that breaks one rule, and the words of the violation."""


@pytest.mark.breaks_shards
@pytest.mark.parametrize(("damage", "message"), BROKEN.values(), ids=BROKEN)
def test_checker_when_one_rule_is_broken_then_names_it(damage: str, message: str) -> None:
    """Each piece of state that the handlers keep up to date is checked and named when wrong."""
    made = shard()
    exec(damage, globals(), {"state": state_of(made)})
    found = made.validate()
    assert any(message in violation for violation in found), found
    assert all(violation.startswith((str(tp()), "None")) for violation in found)


@pytest.mark.breaks_shards
@pytest.mark.parametrize(
    ("last", "damage", "message"),
    [
        (98, "epoch.skips.ends.pop_last()", "1 ends of stretches are not known"),
        (98, "epoch.skips.ends.put(150, NOBODY)", "a stretch ends where no slot is"),
        (98, "epoch.skips.looked_to = 1_000", "stretches were looked for behind"),
        (99, "epoch.slots._lower.firsts[1] = 150", "slots are not found"),
    ],
    ids=["end", "nowhere", "too-far", "lower"],
)
def test_checker_when_chunks_or_stretches_are_broken_then_names_it(
    monkeypatch: pytest.MonkeyPatch, last: int, damage: str, message: str
) -> None:
    """The checker names broken stretches and a broken index of the chunks of slots."""
    monkeypatch.setattr("rlmm.metadata.slots.CHUNK_MAX", 1)
    made = PythonShard(METADATA_PARTITION)
    for number in range(4):
        first = number * 100
        made.apply_event(started(number, first, first + last, txn_index_empty=last == 98))
        made.apply_event(finished(number))
    assert made.validate() == []
    exec(damage, globals(), {"epoch": state_of(made).epochs[0]})
    (found,) = made.validate()
    assert f"epoch 0: {message}" in found
