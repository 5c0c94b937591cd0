"""
An error raised inside the state machine while it is being changed (failure scenario F87).

Every line of the state machine that one event runs through fails once: the state is then the one
before the event or, where only the answer was still to be given, the one behind it; the checker
finds nothing, and the same event goes on as if nothing had been.
"""

from __future__ import annotations

import dis
import random
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata import epoch_state, partition_state, txn_index_skips
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.slots import Slots
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)
from tests.support.engine.shards import METADATA_PARTITION, batch_of, check_report, record_set
from tests.support.records.histories import DenseHistory

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from _typeshed import TraceFunction

    from rlmm.metadata.events import Event
    from rlmm.metadata.verdicts import Verdict

    Case = tuple[tuple[Event, ...], Event]


FILES = frozenset(
    str(module.__file__) for module in (partition_state, epoch_state, txn_index_skips)
)
MARKED, _, FINISHED = PartitionDeleteState


@pytest.fixture(autouse=True)
def _stretches_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlmm.metadata.epoch_state.STEPS_MAX", 0)


class Injected(BaseException):
    """Not an `Exception`, since an interrupt must leave the state whole as well."""


class FailingStep:
    def __init__(self, at: int, step: str = "line") -> None:
        self.left = at
        self.step = step

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, what: str, argument: Any) -> TraceFunction | None:
        del what, argument
        if frame.f_code.co_filename not in FILES:
            return None
        frame.f_trace = self._step  # Python 3.13 asks for it before it traces instructions
        frame.f_trace_opcodes = self.step == "opcode"
        return self._step

    def _step(self, frame: FrameType, what: str, argument: Any) -> TraceFunction:
        del argument
        if what == self.step and not _is_jump(frame):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise Injected
        return self._step


def _is_jump(frame: FrameType) -> bool:
    """Return whether no error can come here: Python gives a jump no handler, even in a try."""
    return "JUMP" in dis.opname[frame.f_code.co_code[frame.f_lasti]]


def copied(label: str, start: int, last: int, epochs: dict[int, int] | None = None) -> list[Event]:
    return [started(label, start, last, epochs), finished(label)]


BASE: tuple[Event, ...] = (
    started("a", 0, 99, txn_index_empty=True),
    finished("a"),
    *copied("b", 100, 199),
    *copied("late", 100, 150),
    *copied("two", 200, 299, {0: 200, 1: 250}),
    *copied("hidden", 20, 40),
    started("open", 300, 399),
    started("stray", 400, 499, {0: 400, 2: 450}),
    started("stray", 400, 499, {1: 400}),
    *copied("leaving", 500, 599, {1: 500, 3: 550}),
    delete_started("leaving"),
    *copied("old", 600, 699),
    *copied("newer", 600, 699),
)

CASES: dict[str, Case] = {
    "add-to-new-partition": ((), started("s", 0, 9)),
    "add-of-two-epochs-to-new-partition": ((), started("s", 0, 9, {0: 0, 1: 5})),
    "add-known-epoch": (BASE, started("s", 700, 799)),
    "add-new-epochs": (BASE, started("s", 700, 799, {0: 700, 7: 710, 8: 720})),
    "add-again-same-epochs": (BASE, started("open", 300, 350, {0: 310})),
    "add-again-other-epochs": (BASE, started("open", 300, 399, {1: 300, 9: 350})),
    "add-again-stray": (BASE, started("stray", 400, 480, {0: 400, 5: 450})),
    "add-again-no-stray-left": (BASE, started("stray", 400, 480, {0: 400, 1: 410, 2: 450})),
    "add-again-exactly": (BASE, started("open", 300, 399)),
    "add-under-deletion": ((*BASE, partition_delete(MARKED)), started("s", 700, 799)),
    "finish-plain": (BASE, finished("open")),
    "finish-stray": (BASE, finished("stray")),
    "finish-by-another": (BASE, finished("open", broker_id=9)),
    "finish-displacing-several": ((*BASE, started("s", 5, 5000)), finished("s")),
    "finish-displacing-in-two-epochs": (
        (*BASE, started("s", 5, 5000, {0: 5, 1: 210})),
        finished("s"),
    ),
    "finish-overwriting": ((*BASE, started("s", 100, 120)), finished("s")),
    "finish-between": ((*BASE, started("s", 130, 140)), finished("s")),
    "finish-many-epochs": ((*BASE, started("s", 700, 800, {4: 700, 5: 710})), finished("s")),
    "finish-again": (BASE, finished("a")),
    "finish-again-of-displaced": (BASE, finished("old")),
    "finish-again-by-another": (BASE, finished("two", broker_id=9)),
    "delete-started": (BASE, delete_started("two")),
    "delete-started-of-open": (BASE, delete_started("stray")),
    "delete-started-of-displaced": (BASE, delete_started("old")),
    "delete-started-again": (BASE, delete_started("leaving", broker_id=9)),
    "delete-finished": (BASE, delete_finished("leaving")),
    "delete-finished-with-strays": ((*BASE, delete_started("stray")), delete_finished("stray")),
    "partition-delete-of-unknown": ((), partition_delete(MARKED)),
    "partition-delete-marked": (BASE, partition_delete(MARKED)),
    "partition-delete-finished": (BASE, partition_delete(FINISHED)),
    "partition-delete-finished-of-unknown": ((), partition_delete(FINISHED)),
    "partition-delete-finished-again": (
        (partition_delete(FINISHED), *copied("ghost", 0, 9)),
        partition_delete(FINISHED),
    ),
    "refused": (BASE, delete_finished("a")),
    "refused-unknown": (BASE, delete_started("nobody")),
}
"""A history, and the event that fails after it."""


def new_shard() -> PythonShard:
    return PythonShard(METADATA_PARTITION)


def shard_of(case: Case) -> PythonShard:
    shard = new_shard()
    for event in case[0]:
        shard.apply_event(event)
    return shard


def ask_everything(shard: PythonShard) -> list[object]:
    epochs = range(4)
    return [
        shard.segments(tp()),
        [shard.segments_of_epoch(tp(), epoch) for epoch in epochs],
        [shard.highest_offset(tp(), epoch) for epoch in epochs],
        [shard.size_of_epoch(tp(), epoch) for epoch in epochs],
        [shard.segment_for(tp(), epoch, at) for epoch in epochs for at in range(0, 900, 45)],
        [
            shard.next_segment_with_txn_index(tp(), epoch, at)
            for epoch in epochs
            for at in range(0, 900, 90)
        ],
        shard.size(tp()),
        shard.partition_delete(tp()),
    ]


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    before: bytes | None
    after: bytes | None
    image: bytes
    answers: list[object]


def outcome_of_case(case: Case) -> Outcome:
    shard = shard_of(case)
    before = shard.partition_image(tp())
    verdict = shard.apply_event(case[1])
    after = shard.partition_image(tp())
    return Outcome(verdict, before, after, shard.image(), ask_everything(shard))


def check_whole(shard: PythonShard, case: Case, expected: Outcome) -> None:
    assert shard.position == len(case[0])
    now = shard.partition_image(tp())
    assert now in (expected.before, expected.after)
    assert shard.validate() == []
    verdict = shard.apply_event(case[1])
    if now == expected.before:
        assert verdict == expected.verdict
    assert shard.image() == expected.image
    assert shard.validate() == []
    assert ask_everything(shard) == expected.answers


@pytest.mark.parametrize("step", ["line", pytest.param("opcode", marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_f87_error_at_any_step_of_any_event_then_leaves_nothing_half_applied(
    case: Case, step: str
) -> None:
    """An error at any line or instruction of any event leaves no event half applied."""
    expected = outcome_of_case(case)
    at = 0
    while True:
        at += 1
        shard = shard_of(case)
        ask_everything(shard)
        try:
            with FailingStep(at, step):
                shard.apply_event(case[1])
            break
        except Injected:
            check_whole(shard, case, expected)
    assert at > 3, "the event must run through the state machine"
    assert shard.image() == expected.image


def failing_calls(monkeypatch: pytest.MonkeyPatch, at: int) -> list[int]:
    """Let the *at*-th change of any `Slots` raise MemoryError; return how many are left."""
    left = [at]

    def wrap(name: str) -> None:
        method = getattr(Slots, name)

        def change(*arguments: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise MemoryError
            return method(*arguments)

        monkeypatch.setattr(Slots, name, change)

    for name in ("append", "put", "pop_last", "remove", "drop"):
        wrap(name)
    return left


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_f87_no_memory_for_any_change_of_the_slots_then_leaves_nothing_half_applied(
    case: Case,
) -> None:
    """A memory error at any change of the slots leaves no event half applied."""
    expected = outcome_of_case(case)
    at = 0
    while True:
        at += 1
        shard = shard_of(case)
        with pytest.MonkeyPatch.context() as patch:
            left = failing_calls(patch, at)
            with suppress(MemoryError):
                shard.apply_event(case[1])
            failed = left[0] <= 0
        if not failed:
            break
        check_whole(shard, case, expected)
    assert shard.image() == expected.image


@pytest.mark.parametrize("seed", range(5))
def test_f87_errors_again_and_again_in_any_history_then_lead_to_the_same_state(seed: int) -> None:
    """A shard in which many events fail before they succeed ends as one in which none does."""
    rng = random.Random(seed)
    calm, shaken = new_shard(), new_shard()
    history = DenseHistory(rng)
    failures = 0
    for _ in range(100):
        event = history.event()
        before = shaken.partition_image(tp())
        calm.apply_event(event)
        for at in rng.sample(range(1, 60), 3):
            try:
                with FailingStep(at):
                    shaken.apply_event(event, shaken.position)
                break
            except Injected:
                failures += 1
                assert shaken.partition_image(tp()) in (before, calm.partition_image(tp()))
                assert shaken.validate() == []
        else:
            shaken.apply_event(event)
        assert shaken.image() == calm.image()
        for epoch in range(3):
            for offset in range(24):
                answer = calm.segment_for(tp(), epoch, offset)
                assert shaken.segment_for(tp(), epoch, offset) == answer
    assert failures > 50


def test_f87_error_within_a_record_set_then_the_position_stands_behind_the_last_whole_event() -> (
    None
):
    """The position is behind the last whole event, and a repeat goes on with the failed one."""
    events = [*copied("a", 0, 99), *copied("b", 0, 199), delete_started("b"), delete_finished("b")]
    given = record_set(batch_of(events))
    whole = new_shard()
    whole.apply(given)
    images = [new_shard().image()]
    stepped = new_shard()
    for event in events:
        stepped.apply_event(event)
        images.append(stepped.image())
    at = 0
    while True:
        at += 1
        shard = new_shard()
        try:
            with FailingStep(at):
                shard.apply(given)
            break
        except Injected:
            assert shard.partition_image(tp()) in {
                PythonShard.from_image(image).partition_image(tp())
                for image in images[shard.position : shard.position + 2]
            }
            assert shard.statistics().tally.offsets == shard.position
        report = check_report(shard.apply(given))
        assert (report.from_offset, report.next_offset) == (0, len(events))
        assert shard.image() == whole.image()
    assert at > 100
