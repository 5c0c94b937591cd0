"""
Drivers of copy jobs that are killed at a given point: `rlmm tier ...` as a process.

    python -m tests.support.tier.driver_process      starts a driver for each line of input

A line of input is JSON: arguments, point of death, output. The answer has the status of the
driver's process and its points: `event:...` published, an object written by its kind, or half of it
(`writing:...`), one deleted, a result that came back. A driver is forked and dies of SIGKILL.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rlmm.metadata.segment import SegmentState
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "RLMM_TEST_DRIVERS"
ORPHANS_S = 60.0
SHORT = dict(zip(SegmentState, ("CS", "CF", "DS", "DF"), strict=True))
WRITING = "writing:"
HEART = "rlmm-job-heart"


class Point(NamedTuple):
    name: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.name}-{self.nth}"


class Ended(NamedTuple):
    """The exit code, None where the driver was killed, and the points that it passed."""

    exit_code: int | None
    passed: list[str]
    output: str


class Drivers:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._mark = uuid.uuid4().hex

    def __enter__(self) -> Self:
        path = os.pathsep.join(filter(None, (str(tree.ROOT), os.environ.get("PYTHONPATH", ""))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.tier.driver_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, MARK: self._mark},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, *arguments: str, dies_at: Point | int | None = None, later_ms: int = 0) -> Ended:
        """Run a driver until it ends or dies at *point*, a name or number, *later_ms* from now."""
        self._number += 1
        output = self._folder / f"driver-{self._number}"
        asked = {
            "arguments": arguments,
            "dies_at": dies_at,
            "later_ms": later_ms,
            "output": str(output),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        passed = Path(f"{output}.passed").read_text().splitlines()
        text = output.read_text()
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL, text
            return Ended(None, passed, text)
        return Ended(os.waitstatus_to_exitcode(status), passed, text)

    def wait_for_orphans(self) -> None:
        """Wait until the processes that dead drivers started, Spark's above all, have ended."""
        mark = f"{MARK}={self._mark}".encode()
        deadline = time.monotonic() + ORPHANS_S
        while orphans := [one for one in _marked(mark) if one != self._process.pid]:
            assert time.monotonic() < deadline, f"still there: {orphans}"
            time.sleep(0.05)


def _marked(mark: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is not ours
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


class Points:
    def __init__(self, file: Path, dies_at: Point | int | None) -> None:
        self._file = file.open("w", buffering=1)
        self._dies_at = dies_at
        self._counts: Counter[str] = Counter()
        self._all = 0
        self._lock = threading.Lock()

    def passed(self, name: str) -> None:
        if threading.current_thread().name == HEART:
            return  # it beats by the clock
        with self._lock:
            self._all += 1
            self._counts[name] += 1
            self._file.write(f"{name}\n")
            if self._dies_at in (self._all, Point(name, self._counts[name])):
                os.kill(os.getpid(), signal.SIGKILL)


def watch(points: Points) -> None:
    from spark_tiering.copy_job.execution import CopyExecution  # noqa: PLC0415 - imported long ago
    from spark_tiering.stores.local import LocalStore  # noqa: PLC0415
    from spark_tiering.tier_metadata.embedded import EmbeddedMetadata  # noqa: PLC0415

    def told(owner: Any, method: str, name: Callable[..., str], before: str = "") -> None:
        real = getattr(owner, method)

        def call(self: Any, *args: Any, **options: Any) -> Any:
            if before:
                points.passed(before + name(*args))
            outcome = real(self, *args, **options)
            points.passed(name(*args))
            return outcome

        setattr(owner, method, call)

    stored = EmbeddedMetadata._stored

    async def told_stored(self: Any, event: Any, deadline_s: float) -> Any:
        # By itself or together with others: each has its own end.
        outcome = await stored(self, event, deadline_s)
        if isinstance(event.state, SegmentState):
            points.passed(f"event:{SHORT[event.state]}")
        return outcome

    EmbeddedMetadata._stored = told_stored  # type: ignore[method-assign]
    told(LocalStore, "_give_name", lambda key, *_: kind_of(key), before=WRITING)
    told(
        EmbeddedMetadata,
        "put_partition_delete",
        lambda delete, *_: f"event:{delete.state.name.rpartition('_')[2]}",
    )
    told(LocalStore, "delete", lambda key: f"deleted:{kind_of(key)}")
    told(CopyExecution, "_came_back", lambda *_: "came-back")


def set_clock(later_ms: int) -> None:
    from rlmm.base.clock import SYSTEM_CLOCK  # noqa: PLC0415 - imported long ago
    from spark_tiering.copy_job.wiring import open_surroundings  # noqa: PLC0415
    from spark_tiering.maintenance.wiring import open_tier  # noqa: PLC0415

    managers: tuple[Any, ...] = (open_surroundings, open_tier)
    for manager in managers:
        manager.__wrapped__.__kwdefaults__["now_ms"] = lambda: SYSTEM_CLOCK.now_ms() + later_ms


def kind_of(key: str) -> str:
    parts = key.split("/")
    if "rlmm-jobs" not in parts:
        return parts[-1].rpartition(".")[2]
    if "rlmm-probe" in parts[-1]:
        return "probe"
    below = parts[parts.index("rlmm-jobs") + 1 :]
    return "claims" if below[0] == "claims" else below[2].partition(".")[0]


def drive(asked: dict[str, Any]) -> None:
    from rlmm.cli.main import cli  # noqa: PLC0415 - imported long ago

    descriptor = os.open(asked["output"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    dies_at = asked["dies_at"]
    if isinstance(dies_at, list):
        dies_at = Point(*dies_at)
    set_clock(asked["later_ms"])
    watch(Points(Path(f"{asked['output']}.passed"), dies_at))
    cli([*asked["arguments"]], prog_name="rlmm")


def main() -> None:
    from rlmm.cli.tier import command  # noqa: F401, PLC0415 - once for all of them
    from rlmm.cli.tier_maintenance import expire  # noqa: F401, PLC0415
    from rlmm.log.files import files_log  # noqa: F401, PLC0415

    for line in sys.stdin:
        child = os.fork()
        if not child:
            drive(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
