"""
The linearizability checker: it searches for an order in which every answer is legal.

Wing and Gong's search with Lowe's memo. An order is legal if each operation takes effect between
its call and its answer. An operation without an answer may have taken effect at any time after its
call, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

NEVER: Final = 1 << 62
SEARCH_MAX: Final = 20_000
"""States of a search. A legal history needs some hundreds; a search that needs more counts as one
that found no order."""


@dataclass(slots=True, eq=False)
class Operation:
    call: Any
    called: int
    """Number of the moment of the call, in the order of all calls and answers."""
    answered: int = NEVER
    answer: Any = None

    def __str__(self) -> str:
        end = "?" if self.answered == NEVER else self.answered
        return f"[{self.called}, {end}] {self.call} -> {self.answer}"


class SequentialModel(Protocol):
    """The answers that are legal where operations come one after the other."""

    def beginning(self) -> Hashable: ...

    def after(self, state: Any, operation: Operation) -> Iterator[Hashable]:
        """Yield each state after *operation*; none where its answer is illegal in *state*."""


@dataclass(slots=True)
class _Search:
    operations: list[Operation]
    model: SequentialModel
    certain: int
    seen: set[tuple[int, Hashable]] = field(default_factory=set)
    deepest: int = 0

    def run(self, state: Hashable) -> bool:
        stack = [(0, state)]
        while stack and len(self.seen) < SEARCH_MAX:
            done, state = self._read_ahead(*stack.pop())
            if done & self.certain == self.certain:
                return True
            if (done, state) in self.seen:
                continue
            self.seen.add((done, state))
            if (done & self.certain).bit_count() > (self.deepest & self.certain).bit_count():
                self.deepest = done
            for number in self._open(done):
                states = self.model.after(state, self.operations[number])
                stack += [(done | 1 << number, after) for after in states if after != state]
        return False

    def _open(self, done: int) -> list[int]:
        """Return the operations that may be next: none that was called behind another's answer."""
        found: list[int] = []
        horizon = NEVER
        for number, operation in enumerate(self.operations):
            if operation.called > horizon:
                break
            if not done >> number & 1:
                found.append(number)
                horizon = min(horizon, operation.answered)
        return [number for number in found if self.operations[number].called < horizon]

    def _read_ahead(self, done: int, state: Hashable) -> tuple[int, Hashable]:
        """Take every legal operation that changes nothing: to take it later is never better."""
        while True:
            taken = 0
            for number in self._open(done):
                operation = self.operations[number]
                if operation.answered != NEVER and state in self.model.after(state, operation):
                    taken |= 1 << number
            if not taken:
                return done, state
            done |= taken


def illegal_answers(history: Sequence[Operation], model: SequentialModel) -> list[Operation]:
    """
    Return the operations that no order explains; empty: *history* is linearizable.

    These are the ones that may be next where the search came furthest.
    """
    operations = sorted(history, key=lambda operation: operation.called)
    answered = [operation.answered != NEVER for operation in operations]
    certain = sum(1 << number for number, is_answered in enumerate(answered) if is_answered)
    search = _Search(operations, model, certain)
    if search.run(model.beginning()):
        return []
    return [operations[number] for number in search._open(search.deepest) if certain >> number & 1]
