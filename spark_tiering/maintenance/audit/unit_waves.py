"""Units in waves, so that neither they nor what they found are in memory all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rlmm import errors
from rlmm.errors import EngineUnfit, RlmmError, StoreUnavailable
from spark_tiering.execution.protocol import UnitLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spark_tiering.execution.protocol import ExecutionEngine

OBJECTS: Final = 1_000_000
"""As many objects are in one wave, unless that left slots without work."""

U = TypeVar("U")


class UnitResult(Protocol):
    """What a unit gives: perhaps why it could not."""

    @property
    def fault(self) -> tuple[str, str] | None:
        """The code of an error, and its words."""


F = TypeVar("F", bound=UnitResult)


def run_waves(
    engine: ExecutionEngine,
    units: Iterable[tuple[U, int]],
    fn: Callable[[U], F],
    on_result: Callable[[F], None],
    why_stop: Callable[[], str],
) -> str:
    """
    Run *units*, each told with how many objects it has; why it was stopped, empty where all ran.

    Units are made when their wave begins. Raises what kept a unit from looking: of what was not
    seen nothing can be judged.
    """
    wave: list[U] = []
    objects, most = 0, max(OBJECTS, 60_000 * engine.slots)
    for unit, size in units:
        if why_stop():
            return why_stop()
        wave.append(unit)
        objects += size
        if objects >= most:
            _run(engine, wave, fn, on_result)
            wave, objects = [], 0
    if why_stop():
        return why_stop()
    if wave:
        _run(engine, wave, fn, on_result)
    return ""


def _run(
    engine: ExecutionEngine, wave: list[U], fn: Callable[[U], F], on_result: Callable[[F], None]
) -> None:
    def heard(outcome: F | UnitLost) -> None:
        if isinstance(outcome, UnitLost):
            msg = f"a unit of the audit was lost: {outcome.why}"
            raise EngineUnfit(msg)
        if outcome.fault is not None:
            raise_fault(*outcome.fault)
        on_result(outcome)

    engine.run_units(wave, fn, heard)


def raise_fault(code: str, text: str) -> None:
    """Raise the error that a unit met, as the class that its code names."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, RlmmError) and kind.code == code:
            raise kind(text)
    raise StoreUnavailable(text)
