"""The admission of a question: four answers that a caller must distinguish."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import NotAssigned, NotReady, PumpFailed, Stopped, UnknownPartition
from rlmm.gate.admission import Gate, require_known
from rlmm.log.replay_progress import (
    CaughtUp,
    FellBehind,
    NotReadyReason,
    PartitionReassigned,
    ReplayProgress,
    StateLost,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import partition_delete, started, tp
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 4
TP = tp()
PLACE = metadata_partition_for(TP.topic_id, TP.partition, COUNT)
MARKED, STARTED, FINISHED = PartitionDeleteState


def progress(
    position: int = 0, target: int | None = None, log_end: int | None = None
) -> ReplayProgress:
    return ReplayProgress(PLACE, position, target, 0, log_end, 0.0)


def knowing() -> ChosenShard:
    shard = ChosenShard(PLACE)
    shard.apply_event(started(1))
    return shard


def loading(**options: int) -> Gate:
    gate = Gate(**options)
    gate.connect(COUNT)
    gate.assign(Assignment.everything())
    gate.begin_partition(PLACE, progress())
    gate.set_shard(PLACE, ChosenShard(PLACE))
    return gate


def opened() -> Gate:
    gate = loading()
    gate.set_shard(PLACE, knowing())
    gate.take_fact(PLACE, CaughtUp(), progress(0, 0, 0))
    return gate


def refusal(gate: Gate) -> NotReady:
    with pytest.raises(NotReady) as caught:
        gate.admit(TP)
    return caught.value


# -------------------------------------------------------------------------------- not assigned


def test_f23_gate_when_never_told_anything_then_is_not_ready() -> None:
    """Every question is not ready before the log is reached, because the assignment is unknown."""
    gate = Gate()
    error = refusal(gate)
    assert (error.reason, error.metadata_partition) == ("connecting", None)
    assert "not been reached" in str(error)


def test_f23_gate_when_nothing_is_assigned_then_says_so() -> None:
    """A service with an empty assignment answers not assigned, not not ready."""
    gate = Gate()
    gate.connect(COUNT)
    with pytest.raises(NotAssigned, match="answers for none") as caught:
        gate.admit(TP)
    assert caught.value.metadata_partition == PLACE


def test_d17_gate_when_nobody_has_said_what_is_assigned_then_sends_nobody_away() -> None:
    """The refusal names the partition and its place, and can be asked again after the hint."""
    gate = Gate(retry_after_ms=77)
    gate.assign(Assignment.awaited())
    assert refusal(gate).reason == "connecting"
    assert gate.not_assigned_yet().reason == "connecting"
    gate.connect(COUNT)
    error = refusal(gate)
    assert (error.reason, error.metadata_partition) == ("assignment-unknown", PLACE)
    assert (error.user_partition, error.retry_after_ms) == (str(TP), 77)
    for other in (gate.refusal(PLACE), gate.not_assigned_yet()):
        assert isinstance(other, NotReady)
        assert other.reason == "assignment-unknown"
        assert "the assignment is not known yet" in str(other)
    with pytest.raises(NotReady):
        gate.is_assigned(TP)
    gate.assign(Assignment.of_user([TP]))
    assert gate.is_assigned(TP)
    assert not gate.is_assigned(tp("other"))
    assert refusal(gate).reason == "loading"


def test_f22_partition_when_wanted_but_not_begun_then_is_not_ready() -> None:
    """An assigned partition that is not loaded is not ready, which differs from not assigned."""
    gate = Gate()
    gate.connect(COUNT)
    gate.assign(Assignment.of_user([TP]))
    error = refusal(gate)
    assert (error.reason, error.metadata_partition, error.position) == ("loading", PLACE, None)
    with pytest.raises(NotAssigned):
        gate.admit(tp("other"))


# ---------------------------------------------------------------------------------- not ready


def test_f32_refusal_then_has_everything_a_caller_needs_in_fields() -> None:
    """The refusal has both partitions, position, target, records left, and a hint."""
    gate = loading()
    gate.take_fact(PLACE, PartitionReassigned(NotReadyReason.REPLAYING), progress(0, 500, 600))
    error = refusal(gate)
    assert error.user_partition == str(TP)
    assert error.metadata_partition == PLACE
    assert (error.position, error.target, error.records_left) == (0, 500, 500)
    assert (error.reason, error.retry_after_ms) == ("replaying", 1_000)
    assert f"{TP} in metadata partition {PLACE} is not ready (replaying)" in str(error)
    assert "position 0, target 500" in str(error)


@pytest.mark.parametrize(
    ("position", "fact", "told", "expected"),
    [
        pytest.param(
            *(123, PartitionReassigned(NotReadyReason.REPLAYING, "anew"), (100, 500, 500)),
            ("replaying", 123, 500, 377),
            id="the shard's present position counts, not that of the last timer",
        ),
        pytest.param(
            *(500, FellBehind(NotReadyReason.BEHIND, "late"), (500, 400, 900)),
            ("behind", 500, 900, 400),
            id="a stale one counts the records up to the present log end",
        ),
        pytest.param(
            *(500, PartitionReassigned(NotReadyReason.LOADING, "out of range"), (500, 400, 900)),
            ("loading", None, None, None),
            id="f66: a dropped state has neither position nor target",
        ),
    ],
)
def test_f32_f66_refusal_then_tells_position_and_target_of_now(
    position: int,
    fact: FellBehind | PartitionReassigned,
    told: tuple[int, int, int],
    expected: tuple[object, ...],
) -> None:
    """A refusal names the present position and what is left, and none of a dropped state."""
    gate = opened()
    gate.set_shard(PLACE, ChosenShard(PLACE, position))
    gate.take_fact(PLACE, fact, progress(*told))
    error = refusal(gate)
    assert (error.reason, error.position, error.target, error.records_left) == expected
    assert (gate.shards()[PLACE].shard is None) is (error.position is None)
    assert fact.detail in str(error)


@pytest.mark.parametrize(
    ("left", "hint_ms"),
    [(0, 1_000), (99_999, 1_000), (500_000, 5_000), (10_000_000, 10_000)],
    ids=["nothing", "little", "much", "very-much"],
)
def test_f33_hint_then_grows_with_what_is_left_within_bounds(left: int, hint_ms: int) -> None:
    """The hint grows with the records left, between its bounds."""
    gate = loading()
    gate.take_fact(PLACE, PartitionReassigned(NotReadyReason.REPLAYING), progress(0, left, left))
    assert refusal(gate).retry_after_ms == hint_ms


def test_f33_hint_when_chosen_then_is_given() -> None:
    """The configured hint counts even before the log is reached."""
    gate = Gate(retry_after_ms=77, retry_after_ms_max=99)
    assert refusal(gate).retry_after_ms == 77
    gate = loading(retry_after_ms=77, retry_after_ms_max=99)
    assert refusal(gate).retry_after_ms == 77
    gate.take_fact(PLACE, PartitionReassigned(NotReadyReason.REPLAYING), progress(0, 10**9, 10**9))
    assert refusal(gate).retry_after_ms == 99


def test_f94_gate_when_connected_then_nothing_of_another_topic_is_answered() -> None:
    """Reaching the log makes every earlier answer void; the window stays closed."""
    gate = opened()
    gate.connect(COUNT)
    assert refusal(gate).reason == "loading"
    gate.set_shard(PLACE, ChosenShard(PLACE))  # of a reader that is about to be ended
    refusal(gate)


def test_f6_gate_when_the_topic_is_gone_then_is_not_ready_and_says_why() -> None:
    """The gate closes with the reason when the topic is gone."""
    gate = opened()
    gate.disconnect("another topic")
    error = refusal(gate)
    assert error.reason == "connecting"
    assert "another topic" in str(error)
    assert gate.state(PLACE) is None


@pytest.mark.parametrize("error", [Stopped, PumpFailed], ids=lambda kind: kind.code)
def test_f26_gate_that_has_ended_refuses_everything(error: type[Stopped | PumpFailed]) -> None:
    """An ended gate refuses every question, whatever its state was."""
    for gate in (opened(), loading(), Gate()):
        gate.stop(error, "over")
        for ask in (gate.admit, gate.require_assigned, gate.place_of):
            with pytest.raises(error, match="over"):
                ask(TP)
        assert isinstance(gate.refusal(PLACE), error)
        assert not gate.is_open(PLACE)


# ------------------------------------------------------------------------------------- waiting


async def test_wait_when_the_gate_opens_then_ends() -> None:
    """The opening of the gate wakes the waiter without polling."""
    gate = loading()
    waiting = asyncio.create_task(gate.wait_open(TP))
    await asyncio.sleep(0)
    gate.take_fact(PLACE, FellBehind(NotReadyReason.REPLAYING, ""), progress())
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.take_fact(PLACE, CaughtUp(), progress())
    await waiting


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda gate: gate.assign(Assignment.nothing()), NotAssigned),
        (lambda gate: gate.stop(Stopped, "over"), Stopped),
    ],
    ids=["taken-away", "stopped"],
)
async def test_f50_wait_when_it_cannot_open_any_more_then_says_why(
    end: Callable[[Gate], None], error: type[Exception]
) -> None:
    """A wait for readiness ends with the error that prevents it."""
    gate = loading()
    waiting = asyncio.create_task(gate.wait_open(TP))
    await asyncio.sleep(0)
    end(gate)
    with pytest.raises(error):
        await waiting


@pytest.mark.parametrize("ends", [False, True], ids=["connects", "ends"])
async def test_wait_for_the_topic_then_ends_when_it_is_known_or_all_ends(*, ends: bool) -> None:
    """A writer that only needs to know where an event belongs waits for no more than that."""
    gate = Gate()
    gate.assign(Assignment.nothing())
    waiting = asyncio.create_task(gate.wait_assigned())
    await asyncio.sleep(0)
    assert not waiting.done()
    if ends:
        gate.stop(Stopped, "over")
    else:
        gate.connect(COUNT)
    await waiting


async def test_d17_wait_for_the_assignment_then_ends_when_both_it_and_the_topic_are_known() -> None:
    """Either of them alone is not enough to say whose a partition is."""
    gate = Gate()
    gate.assign(Assignment.awaited())
    waiting = asyncio.create_task(gate.wait_assigned())
    gate.connect(COUNT)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.assign(Assignment.nothing())
    await waiting


# ------------------------------------------------------------------------------------- unknown


def test_f83_partition_then_is_unknown_until_something_of_it_was_stored() -> None:
    """A partition without events, one without segments and a deleted one have different answers."""
    shard = ChosenShard(PLACE)
    with pytest.raises(UnknownPartition, match="no event of it was ever stored"):
        require_known(shard, TP)
    shard.apply_event(partition_delete(MARKED))
    require_known(shard, TP)
    shard.apply_event(partition_delete(STARTED))
    require_known(shard, TP)
    shard.apply_event(partition_delete(FINISHED))
    with pytest.raises(UnknownPartition, match="deletion is finished"):
        require_known(shard, TP)
    shard.apply_event(started("late"))
    require_known(shard, TP)


def test_deleted_partition_with_new_segments_when_asked_then_none_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The question whether anything came after a deletion costs no list of all segments."""
    shard = ChosenShard(PLACE)
    shard.apply_event(partition_delete(FINISHED))
    shard.apply_event(started("late"))
    monkeypatch.setattr(shard, "segments", lambda _: pytest.fail("all segments are listed"))
    require_known(shard, TP)


# ------------------------------------------------------------------------ asked again and again

CHANGES: dict[str, tuple[Callable[[Gate], object], type[Exception]]] = {
    "another topic": (lambda gate: gate.connect(COUNT), NotReady),
    "no topic": (lambda gate: gate.disconnect("gone"), NotReady),
    "nothing assigned": (lambda gate: gate.assign(Assignment.nothing()), NotAssigned),
    "another one assigned": (
        lambda gate: gate.assign(Assignment.of_user([tp("other")])),
        NotAssigned,
    ),
    "begun anew": (lambda gate: gate.begin_partition(PLACE, progress()), NotReady),
    "given up": (lambda gate: gate.end_partition(PLACE), NotReady),
    "behind": (
        lambda gate: gate.take_fact(PLACE, FellBehind(NotReadyReason.BEHIND, ""), progress()),
        NotReady,
    ),
    "lost": (
        lambda gate: gate.take_fact(PLACE, StateLost(NotReadyReason.DAMAGED, ""), progress()),
        NotReady,
    ),
    "read anew": (
        lambda gate: gate.take_fact(
            PLACE, PartitionReassigned(NotReadyReason.LOADING, ""), progress()
        ),
        NotReady,
    ),
    "ended": (lambda gate: gate.stop(Stopped, "over"), Stopped),
}


@pytest.mark.parametrize("what", CHANGES)
def test_f21_question_after_any_change_then_is_admitted_anew(what: str) -> None:
    """Each question is admitted anew by the present state."""
    gate = opened()
    asked = [gate.admit, gate.admit_stored]
    assert [admit(TP) for admit in asked] == [admit(TP) for admit in asked]
    change, error = CHANGES[what]
    change(gate)
    with pytest.raises(error):
        gate.admit(TP)
    if error is not NotAssigned:  # what is stored and open may be seen by who may see all
        with pytest.raises(error):
            gate.admit_stored(TP)


def test_who_was_let_in_when_another_shard_is_held_then_is_answered_from_that() -> None:
    """The answer comes from the new shard, never from the former one."""
    gate = opened()
    before = gate.admit(TP), gate.admit_stored(TP)
    gate.set_shard(PLACE, knowing())
    after = gate.admit(TP), gate.admit_stored(TP)
    assert not {id(shard) for shard in before} & {id(shard) for shard in after}


@pytest.mark.parametrize(
    ("why", "target"),
    [
        (NotReadyReason.REPLAYING, 9),
        (NotReadyReason.BEHIND, 3),
        (NotReadyReason.END_UNKNOWN, 3),
        (NotReadyReason.OVER_BUDGET, 3),
    ],
)
def test_f32_refusal_then_names_the_offset_that_is_waited_for(
    why: NotReadyReason, target: int
) -> None:
    """The target is that of the replay while it runs, and the high watermark from then on."""
    gate = loading()
    gate.set_shard(PLACE, ChosenShard(PLACE, 2))
    of_replay = target if why is NotReadyReason.REPLAYING else 0
    gate.take_fact(PLACE, CaughtUp(), progress(2, of_replay, 3))
    gate.take_fact(PLACE, FellBehind(why, ""), progress(2, of_replay, 3))
    error = refusal(gate)
    assert (error.reason, error.position, error.target) == (why, 2, target)
    assert error.records_left == target - 2
