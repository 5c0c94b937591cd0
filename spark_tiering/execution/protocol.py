"""
The protocol of engines, tested by `tests/conformance/engines`. Units and outcomes are pickled. A
unit may be run more than once, even by two workers at a time: its function has to tolerate that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

U = TypeVar("U")
R = TypeVar("R")

CANCELLED = "cancelled"
"""Why a unit is lost that was not done when its engine was cancelled."""


@dataclass(frozen=True, slots=True)
class UnitLost:
    """A unit without a result: it raised, or every worker that took it died."""

    index: int
    """Which one of the call's units."""
    why: str


class ExecutionEngine(Protocol):
    """Runs units of work, as many at a time as it has slots. One call at a time."""

    @property
    def slots(self) -> int: ...

    def run_units(
        self,
        units: Sequence[U],
        fn: Callable[[U], R],
        on_result: Callable[[R | UnitLost], None] | None = None,
    ) -> list[R | UnitLost]:
        """
        Return *fn*'s result for each unit, in their order, or a `UnitLost`; *on_result* gets each
        once, on this thread. Its exception ends the call. Raises `EngineUnfit` if no unit can run.
        """

    def cancel(self) -> None:
        """End the call under way soon; any thread may call it. Units without a result are lost."""

    def close(self) -> None:
        """Close the session that the engine opened, never one that the caller passed."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
