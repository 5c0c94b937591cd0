"""The checker itself: it stays silent about sound state and names every rule that is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.validate import violations
from tests.support.builders import delete_started, finished, started, tp
from tests.support.engine.shards import new_shard

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.partition import PartitionState
    from rlmm.metadata.python_shard import PythonShard

ONE, TWO, THREE, NOBODY = (bytes(Uuid.of(0, number)) for number in (1, 2, 3, 9))


def shard() -> PythonShard:
    made = new_shard()
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


def _break_row(state: PartitionState) -> None:
    state.rows[ONE] = state.rows[ONE][:-1]


def _break_counts(state: PartitionState) -> None:
    state.counts[SegmentState.COPY_SEGMENT_STARTED] += 1


def _break_size(state: PartitionState) -> None:
    state.size_bytes += 1


def _break_epoch_size(state: PartitionState) -> None:
    state.epochs[0].size_bytes -= 1


def _break_indexed_count(state: PartitionState) -> None:
    state.epochs[1].indexed_count += 1


def _forget_unreferenced(state: PartitionState) -> None:
    state.epochs[0].unreferenced.pop()


def _forget_shadowed(state: PartitionState) -> None:
    state.epochs[0].shadowed.clear()


def _lower_watermark(state: PartitionState) -> None:
    state.epochs[1].highest = 299


def _drop_epoch(state: PartitionState) -> None:
    del state.epochs[1]


def _move_epoch(state: PartitionState) -> None:
    state.epochs[7] = state.epochs.pop(3)


def _list_nobody(state: PartitionState) -> None:
    state.epochs[3].unreferenced.add(NOBODY)


def _give_nobody_a_slot(state: PartitionState) -> None:
    state.epochs[1].slots.put(1_000, NOBODY)


def _shadow_nobody(state: PartitionState) -> None:
    state.epochs[1].shadowed.add(NOBODY)


def _stray_nobody(state: PartitionState) -> None:
    state.strays[NOBODY] = frozenset({0})


def _stray_nowhere(state: PartitionState) -> None:
    state.strays[ONE] = frozenset({99})


def _swap_slots(state: PartitionState) -> None:
    state.epochs[0].slots._ids.reverse()


def _unsort_slots(state: PartitionState) -> None:
    state.epochs[0].slots._offsets.reverse()


def _forget_top(state: PartitionState) -> None:
    state.epochs[0].slots.top = 0


def _leave_a_key(state: PartitionState) -> None:
    state.key += b"\x00"


@pytest.mark.breaks_shards
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(_break_row, "row of segment", id="row"),
        pytest.param(_break_counts, "partition: counts is", id="counts"),
        pytest.param(_break_size, "partition: size_bytes is", id="size"),
        pytest.param(_break_epoch_size, "epoch 0: size_bytes is", id="epoch-size"),
        pytest.param(_break_indexed_count, "epoch 1: indexed_count is", id="indexed-count"),
        pytest.param(_forget_unreferenced, "epoch 0: unreferenced is", id="unreferenced"),
        pytest.param(_forget_shadowed, "epoch 0: 1 hidden segments", id="shadowed"),
        pytest.param(_lower_watermark, "watermark 299 of epoch 1 lies below 300", id="watermark"),
        pytest.param(_drop_epoch, "names epoch 1, which has no entry", id="epoch"),
        pytest.param(_move_epoch, "epoch 7 stands under the number 3", id="epoch-number"),
        pytest.param(_list_nobody, "epoch 3 lists 1 segments that do not", id="listed-nobody"),
        pytest.param(_give_nobody_a_slot, "epoch 1 lists 1 segments that", id="slot-of-nobody"),
        pytest.param(_shadow_nobody, "epoch 1 lists 1 segments that do", id="shadowed-nobody"),
        pytest.param(_stray_nobody, "1 strays do not exist", id="stray-nobody"),
        pytest.param(_stray_nowhere, "partition: strays is", id="stray-nowhere"),
        pytest.param(_swap_slots, "the slot of offset 0 holds", id="slots-swapped"),
        pytest.param(_unsort_slots, "the slot of offset 100 holds", id="slots-unsorted"),
        pytest.param(_forget_top, "epoch 0: largest slot is 0, should be 100", id="top"),
        pytest.param(_leave_a_key, "not the key of a user partition", id="key"),
    ],
)
def test_checker_when_one_rule_is_broken_then_names_it(
    damage: Callable[[PartitionState], None], message: str
) -> None:
    """Each piece of state that the handlers keep up to date is checked and named when wrong."""
    made = shard()
    damage(state_of(made))
    found = made.validate()
    assert any(message in violation for violation in found), found
    assert all(violation.startswith((str(tp()), "None")) for violation in found)


def _forget_an_end(state: PartitionState) -> None:
    stretches = state.epochs[0].stretches
    assert stretches is not None
    stretches.ends.pop_last()


def _end_nowhere(state: PartitionState) -> None:
    stretches = state.epochs[0].stretches
    assert stretches is not None
    stretches.ends.put(150, NOBODY)


def _look_too_far(state: PartitionState) -> None:
    stretches = state.epochs[0].stretches
    assert stretches is not None
    stretches.looked_to = 1_000


@pytest.mark.breaks_shards
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(_forget_an_end, "epoch 0: 1 ends of stretches are not known", id="end"),
        pytest.param(_end_nowhere, "epoch 0: a stretch ends where no slot is", id="nowhere"),
        pytest.param(_look_too_far, "epoch 0: stretches were looked for behind", id="too-far"),
    ],
)
def test_checker_when_a_rule_of_stretches_is_broken_then_names_it(
    monkeypatch: pytest.MonkeyPatch, damage: Callable[[PartitionState], None], message: str
) -> None:
    """The checker names a broken rule of the stretches without a transaction index."""
    monkeypatch.setattr("rlmm.metadata.slots.CHUNK_MAX", 1)
    made = new_shard()
    for number in range(4):
        made.apply_event(started(number, number * 100, number * 100 + 98, txn_index_empty=True))
        made.apply_event(finished(number))
    assert made.validate() == []
    damage(state_of(made))
    (found,) = made.validate()
    assert message in found


@pytest.mark.breaks_shards
def test_checker_when_slots_are_not_found_where_they_stand_then_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The checker also checks the index of the chunks of slots."""
    monkeypatch.setattr("rlmm.metadata.slots.CHUNK_MAX", 1)
    made = new_shard()
    for number in range(4):
        made.apply_event(started(number, number * 100, number * 100 + 99))
        made.apply_event(finished(number))
    assert made.validate() == []
    lower = state_of(made).epochs[0].slots._lower
    assert lower is not None
    lower.firsts[1] = 150
    (found,) = made.validate()
    assert "epoch 0: slots are not found" in found
