"""Waves of units: neither the units nor their results are in memory all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rlmm import errors
from rlmm.errors import EngineUnfit, RlmmError, StoreUnavailable
from spark_tiering.execution.protocol import UnitLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spark_tiering.execution.protocol import ExecutionEngine

OBJECTS: Final = 1_000_000
"""Objects of one wave, unless slots would have no work."""

U = TypeVar("U")


class UnitResult(Protocol):
    @property
    def fault(self) -> tuple[str, str] | None: ...


F = TypeVar("F", bound=UnitResult)


def run_waves(
    engine: ExecutionEngine,
    units: Iterable[tuple[U, int]],
    fn: Callable[[U], F],
    on_result: Callable[[F], None],
    why_stop: Callable[[], str],
) -> str:
    """
    Run *units*, each given with its number of objects; return why the run stopped, or "". Units are
    made when their wave begins. The error of a unit is raised, because objects that were not seen
    cannot be judged.
    """
    wave: list[U] = []
    objects, most = 0, max(OBJECTS, 60_000 * engine.slots)
    for unit, size in units:
        if why := why_stop():
            return why
        wave.append(unit)
        objects += size
        if objects >= most:
            _run(engine, wave, fn, on_result)
            wave, objects = [], 0
    why = why_stop()
    if wave and not why:
        _run(engine, wave, fn, on_result)
    return why


def _run(
    engine: ExecutionEngine, wave: list[U], fn: Callable[[U], F], on_result: Callable[[F], None]
) -> None:
    def heard(outcome: F | UnitLost) -> None:
        if isinstance(outcome, UnitLost):
            raise EngineUnfit(f"a unit of the audit was lost: {outcome.why}")
        if outcome.fault is not None:
            raise_fault(*outcome.fault)
        on_result(outcome)

    engine.run_units(wave, fn, heard)


def raise_fault(code: str, text: str) -> None:
    """Raise the error of a unit, as the class that its code names."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, RlmmError) and kind.code == code:
            raise kind(text)
    raise StoreUnavailable(text)
