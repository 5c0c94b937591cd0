"""What came back of the units of one call: each once, whoever tells it first."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Generic

from spark_tiering.execution.protocol import R, UnitLost
from spark_tiering.execution.task_entry import Parcel, said_by

if TYPE_CHECKING:
    from collections.abc import Callable


class UnitResults(Generic[R]):
    """The outcomes so far; each is told on once, by the thread that adds it."""

    def __init__(self, count: int, tell: Callable[[R | UnitLost], None] | None) -> None:
        self._count = count
        self._tell = tell
        self._found: dict[int, R | UnitLost] = {}

    def add(self, parcel: Parcel) -> None:
        """What a task says of a unit; what is known already is passed over."""
        index, packed = parcel
        if index in self._found:
            return
        try:
            outcome: R | UnitLost = pickle.loads(packed)  # noqa: S301 - made by our own task
        except Exception as error:  # noqa: BLE001 - whatever an object's own pickling raises
            outcome = UnitLost(index, f"its result cannot be read: {said_by(error)}")
        self._keep(index, outcome)

    def lose(self, index: int, why: str) -> None:
        """Nothing came back of a unit, and nothing will."""
        self._keep(index, UnitLost(index, why))

    def _keep(self, index: int, outcome: R | UnitLost) -> None:
        self._found[index] = outcome
        if self._tell is not None:
            self._tell(outcome)

    @property
    def is_empty(self) -> bool:
        """Whether nothing came back yet."""
        return not self._found

    def missing(self) -> list[int]:
        """The units of which nothing is known yet, in order."""
        return [index for index in range(self._count) if index not in self._found]

    def outcomes(self) -> list[R | UnitLost]:
        """All of them, in the order of the units."""
        return [self._found[index] for index in range(self._count)]
