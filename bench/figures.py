"""The figures of one run: printed as they come, judged where something is asked of them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_asked(self) -> bool:
        return self.at_least is not None or self.at_most is not None

    @property
    def is_met(self) -> bool:
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def asked(self) -> str:
        if not self.is_asked:
            return ""
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        return f"asked {bound}: {'met' if self.is_met else 'missed'}"

    def __str__(self) -> str:
        value = f"{self.value:,.2f}" if abs(self.value) < 100 else f"{self.value:,.0f}"
        return f"{self.name:<82} {value:>12} {self.unit:<18} {self.asked}".rstrip()

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "value": self.value, "unit": self.unit}
        if self.at_least is not None:
            found["asked_at_least"] = self.at_least
        if self.at_most is not None:
            found["asked_at_most"] = self.at_most
        if self.is_asked:
            found["met"] = self.is_met
        return found


@dataclass
class Run:
    in_this_process: bool = False
    """Quicker to start; but then each measurement meets the memory that the others left."""
    figures: list[Figure] = field(default_factory=list)
    profiles: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What could not be measured, and why; each once."""

    def section(self, title: str) -> None:
        click.echo(f"\n{title}")

    def add(self, figure: Figure) -> Figure:
        self.figures.append(figure)
        click.echo(f"  {figure}")
        return figure

    def add_profile(self, name: str, lines: list[str]) -> None:
        self.profiles[name] = lines
        click.echo("\n".join(f"      {line}" for line in lines))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            click.echo(f"  {text}")

    @property
    def asked(self) -> list[Figure]:
        return [figure for figure in self.figures if figure.is_asked]

    def apart(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run *work* in a fresh process, while no other one runs, and return its result."""
        if self.in_this_process:
            return work(*args, **kwargs)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(work, *args, **kwargs).result()
