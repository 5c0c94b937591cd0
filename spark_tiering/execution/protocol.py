"""
The protocol of engines. The contract suite in `tests/conformance/engines` tests it.

Units and their outcomes are pickled, so that it makes no difference where they run. A unit may be
run more than once, at worst by two workers at the same time where Spark lost sight of one: its
function has to tolerate that.
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
        Return the results of *fn* on each unit, in the order of *units*; a `UnitLost` where there
        is none.

        The calling thread passes each of them to *on_result* once, as soon as it is known. An
        exception of *on_result* ends the call, as an interrupt does: running units are cancelled
        first. Raises `EngineUnfit` only where no unit can run at all.
        """

    def cancel(self) -> None:
        """
        End the call under way soon, and run nothing any more; any thread may call it.

        A unit that has no result by then is lost, see `CANCELLED`.
        """

    def close(self) -> None:
        """
        Close the session that the engine opened; a session that the caller passed is left as it is.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
