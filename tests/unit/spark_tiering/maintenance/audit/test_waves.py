"""Waves of units: their size, and the ends of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, EngineUnfit, RlmmError, StoreAbsent, StoreUnavailable
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.maintenance.audit.store_shards import OBJECTS, raise_fault, run_waves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass
class Done:
    number: int
    fault: tuple[str, str] | None = None


class Counting(InProcess):
    def __init__(self, lost: int = -1) -> None:
        super().__init__()
        self.waves: list[int] = []
        self._lost = lost

    def run_units(
        self,
        units: Sequence[Any],
        fn: Callable[[Any], Any],
        on_result: Callable[[Any], None] | None = None,
    ) -> list[Any]:
        self.waves.append(len(units))
        if self._lost in units and on_result is not None:
            on_result(UnitLost(0, "its worker died"))
        return super().run_units(units, fn, on_result)


def units(count: int, size: int, made: list[int] | None = None) -> Iterator[tuple[int, int]]:
    for number in range(count):
        if made is not None:
            made.append(number)
        yield number, size


def test_waves_when_units_are_many_hold_a_bounded_number_of_objects() -> None:
    """The units of a wave are made when it begins, so that a bounded number is held."""
    engine = Counting()
    heard: list[int] = []
    made: list[int] = []

    def hear(done: Done) -> None:
        heard.append(done.number)
        assert len(made) <= len(heard) + 4

    assert run_waves(engine, units(10, OBJECTS // 4, made), Done, hear, lambda: "") == ""
    assert engine.waves == [4, 4, 2]
    assert heard == list(range(10))


def test_waves_when_stopped_end_between_two_of_them() -> None:
    """Waves stop between two waves and report the reason."""
    engine = Counting()
    heard: list[int] = []

    def hear(done: Done) -> None:
        heard.append(done.number)

    said = run_waves(
        engine, units(10, OBJECTS), Done, hear, lambda: "SIGTERM" if len(heard) > 1 else ""
    )
    assert (said, heard) == ("SIGTERM", [0, 1])


def test_waves_when_a_unit_is_lost_or_could_not_look_raise_what_kept_it() -> None:
    """A lost or failed unit raises its reason: nothing can be judged without it."""
    with pytest.raises(EngineUnfit, match="its worker died"):
        run_waves(Counting(lost=1), units(3, OBJECTS), Done, lambda _: None, lambda: "")
    with pytest.raises(StoreAbsent, match="no bucket"):
        run_waves(
            Counting(), units(1, 1), lambda one: Done(one, ("store-absent", "no bucket")),
            lambda _: None, lambda: "",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "kind"),
    [("config", ConfigError), ("store-unavailable", StoreUnavailable), ("?", StoreUnavailable)],
)  # fmt: skip
def test_fault_of_a_unit_is_raised_as_the_error_of_its_code(
    code: str, kind: type[RlmmError]
) -> None:
    """A failed unit raises the error of its code, or a general one."""
    with pytest.raises(kind, match="why"):
        raise_fault(code, "why")
