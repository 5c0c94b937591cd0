"""Units of work for engines, which workers import; files report the work of another process."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import TaskContext

PATIENCE_S = 60.0
"""How long a unit waits for what a test does; never reached, unless something is broken."""


@dataclass(frozen=True)
class Unit:
    number: int
    does: str = ""
    folder: Path | None = None
    driver: int = 0
    """The process that a unit may interrupt."""
    seen: list[str] = field(default_factory=list)
    """Something that could be changed."""

    @property
    def place(self) -> Path:
        assert self.folder is not None
        return self.folder


def work(unit: Unit) -> object:
    unit.seen.append("work")
    if unit.folder is not None:
        mark(unit.folder / f"runs-{unit.number}")
    return DEEDS[unit.does](unit) if unit.does else unit.number**2


def fail(unit: Unit) -> object:
    msg = "the disk\nis on fire"
    raise ValueError(msg)


def die(unit: Unit) -> object:
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def die_once(unit: Unit) -> object:
    return die(unit) if runs(unit.place, unit.number) == 1 else task().attemptNumber()


def die_beside(unit: Unit) -> object:
    wait_for(unit.place / "hanging")
    return die(unit)


def wait(unit: Unit) -> object:
    wait_for(unit.place / "go-on")
    return unit.number**2


def hang(unit: Unit) -> object:
    (unit.place / "hanging.tmp").write_text(str(os.getpid()))
    (unit.place / "hanging.tmp").rename(unit.place / "hanging")
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        time.sleep(0.01)
    return None


def hang_once(unit: Unit) -> object:
    if runs(unit.place, unit.number) == 1:
        return hang(unit)
    return is_running(int((unit.place / "hanging").read_text()))


def interrupt(unit: Unit) -> object:
    wait_for(unit.place / "hanging")
    os.kill(unit.driver, signal.SIGINT)
    return None


def task() -> TaskContext:
    from pyspark import TaskContext  # noqa: PLC0415 - only workers of Spark's have one

    context = TaskContext.get()
    assert context is not None
    return context


DEEDS: dict[str, Callable[[Unit], object]] = {
    "raise": fail,
    "leave": lambda _: sys.exit(7),
    "unsendable": lambda unit: lambda: unit,
    "die": die,
    "die-once": die_once,
    "die-beside": die_beside,
    "wait": wait,
    "hang": hang,
    "hang-once": hang_once,
    "interrupt": interrupt,
    "task": lambda _: task().taskAttemptId(),
}


def mark(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


def runs(folder: Path, number: int) -> int:
    path = folder / f"runs-{number}"
    return len(path.read_text().splitlines()) if path.exists() else 0


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        if time.monotonic() > deadline:
            msg = f"{path} never came"
            raise TimeoutError(msg)
        time.sleep(0.01)


def is_running(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
