"""
The entry of a task, which executors import: a unit's exception travels back as a value. Only a
worker that can run no unit raises, so that Spark tries another.
"""

from __future__ import annotations

import gc
import pickle
import sys
from dataclasses import dataclass
from importlib import import_module
from traceback import extract_tb
from typing import TYPE_CHECKING

from rlmm.base.version import __version__
from rlmm.errors import EngineUnfit
from spark_tiering.execution.protocol import U, UnitLost

if TYPE_CHECKING:
    from collections.abc import Callable

Parcel = tuple[int, bytes]
"""The index of a unit, and the unit or what became of it, pickled."""

WHY_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class TaskContext:
    number: int
    """Which round of its engine's."""
    fn: bytes
    version: str = __version__
    needs: tuple[str, ...] = ()
    """The libraries that the driver has imported and a worker needs as well."""
    is_probe: bool = False
    """Whether only to look if a unit could be run here."""


def carry_out(errand: TaskContext, index: int, unit: bytes) -> bytes:
    """Return the pickled outcome of a unit; raises `EngineUnfit` where no unit can run."""
    if errand.version != __version__:
        msg = f"the driver is rlmm {errand.version}, a worker has {__version__}"
        raise EngineUnfit(msg)
    try:
        for name in errand.needs:
            import_module(name)
        fn = pickle.loads(errand.fn)  # noqa: S301 - Spark brings it from the driver
        found = pickle.loads(unit)  # noqa: S301 - the same
    except Exception as error:
        msg = f"a worker cannot read what it is to run: {said_by(error)}"
        raise EngineUnfit(msg) from error
    outcome = pickle.dumps(None) if errand.is_probe else outcome_of(index, found, fn)
    _set_apart_what_is_imported()
    return outcome


def _set_apart_what_is_imported() -> None:
    """Keep imported modules from the garbage collection that Spark makes between tasks."""
    if (modules := len(sys.modules)) not in _set_apart_at:
        _set_apart_at.add(modules)
        gc.freeze()


_set_apart_at: set[int] = set()
"""How many modules there were each time that it was done."""


def outcome_of(index: int, unit: U, fn: Callable[[U], object]) -> bytes:
    try:
        outcome = fn(unit)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a unit's failure is its own
        outcome = UnitLost(index, said_by(error))
    try:
        return pickle.dumps(outcome)
    except Exception as error:  # noqa: BLE001 - whatever an object's own pickling raises
        return pickle.dumps(UnitLost(index, f"its result cannot be sent: {said_by(error)}"))


def said_by(error: BaseException) -> str:
    """Return an error as one line, with the place where it was raised."""
    text = " ".join(str(error).split())[:WHY_CHARS_MAX]
    frames = extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{where}"
