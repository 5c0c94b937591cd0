"""
`python -m bench sidecar`: the frame server on a Unix socket, beside the least that can answer the
same frames, an epoll loop in C that looks at nothing and answers a canned frame of the same size.

Both get their load from one generator, in passes that take turns; the server's cost is its
processor time as the operating system counts it. Each measurement is explained where it is made.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from bench.figures import Figure, Run
from bench.recording import output_option, recording
from bench.sidecar_ground import Load, compiled, echo_server, load
from bench.sidecar_serving import (
    LARGE,
    SMALL,
    fill_logs,
    is_open,
    questions,
    serving,
    wait_open,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.sidecar_ground import Asked, Noted, Process, Programs
    from bench.sidecar_serving import Logs

CPU_TO_C_MAX = 4.0
MANY_TO_SINGLE_MAX = 0.45
REPLAY_TO_IDLE_MAX = 15.0
IDLE_P99_MAX = 1.5
IDLE_BYTES_MAX = 20_000.0
CLIENTS = 64
IN_ONE = 16
_FILES_KEPT = 512


@dataclass(frozen=True, slots=True)
class Sizes:
    events: int
    large_events: int
    questions: int
    passes: int
    pass_ms: int
    starts: int
    idle: int


FULL = Sizes(
    events=50_000, large_events=1_000_000, questions=2_048, passes=5, pass_ms=2_000, starts=3,
    idle=10_000,
)  # fmt: skip
QUICK = Sizes(
    events=4_000, large_events=20_000, questions=64, passes=1, pass_ms=60, starts=1, idle=50
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ground:
    run: Run
    sizes: Sizes
    programs: Programs
    logs: Logs
    place: Path

    def passes(self, *loads: Load) -> list[list[Noted]]:
        noted: list[list[Noted]] = [[] for _ in loads]
        for _ in range(self.sizes.passes):
            for each, found in zip(loads, noted, strict=True):
                found.append(each.run(self.sizes.pass_ms))
        return noted

    @contextmanager
    def load(self, server: Process, asked: Asked, name: str, **what: int) -> Iterator[Load]:
        folder = self.place / name
        folder.mkdir(exist_ok=True)
        with load(self.programs, server, folder, asked, **what) as found:
            yield found


def measure(run: Run, sizes: Sizes, place: Path) -> None:
    programs = compiled(place)
    logs = asyncio.run(fill_logs(place / "data", sizes.events, sizes.large_events))
    ground = Ground(run, sizes, programs, logs, place)
    with serving(logs, place) as server:
        asyncio.run(wait_open(server, logs, SMALL))
        asyncio.run(wait_open(server, logs, LARGE))
        single, many = asyncio.run(questions(server, logs, sizes.questions, IN_ONE))
        compare_cost(ground, server, single)
        compare_batches(ground, server, single, many)
        compare_idle(ground, server, single)
    compare_replay(ground, single)


# ------------------------------------------------------------------------------ beside the echo


def compare_cost(ground: Ground, server: Process, asked: Asked) -> None:
    """
    Compare the server's cost of a look-up with the answer of a server in C, with as many busy
    clients as are connected at once, one request each.
    """
    ground.run.section(f"{CLIENTS} clients, one look-up a frame, {len(asked.answer)} B answered")
    with ExitStack() as opened:
        echo = opened.enter_context(echo_server(ground.programs, ground.place, asked.answer))
        ours = opened.enter_context(ground.load(server, asked, "ours", clients=CLIENTS))
        theirs = opened.enter_context(ground.load(echo, asked, "theirs", clients=CLIENTS))
        noted_c, noted = ground.passes(theirs, ours)
    _state(ground.run, "echo in C", noted_c)
    _state(ground.run, "rlmm", noted)
    ratios = [one.cpu_us / other.cpu_us for one, other in zip(noted, noted_c, strict=True)]
    for name, value in (("least", min(ratios)), ("most", max(ratios))):
        ground.run.add(
            Figure(f"server CPU per look-up, rlmm / C, {name} of a pass", value, "times")
        )
    ratio = _cpu_us(noted) / _cpu_us(noted_c)
    ground.run.add(Figure("server CPU per look-up, rlmm / C", ratio, "times", at_most=CPU_TO_C_MAX))


def _state(run: Run, who: str, noted: list[Noted]) -> None:
    run.add(Figure(f"server CPU per look-up, {who}", _cpu_us(noted), "us"))
    run.add(Figure(f"look-ups, {who}", _rate(noted), "answers/s"))
    for figure in _times(who, noted):
        run.add(figure)


def _cpu_us(noted: list[Noted]) -> float:
    """Sum over all passes, because the system counts in steps of some milliseconds."""
    return sum(one.cpu_us * one.answers for one in noted) / sum(one.answers for one in noted)


def _rate(noted: list[Noted]) -> float:
    return sum(one.answers for one in noted) / sum(one.elapsed_s for one in noted)


def _times(who: str, noted: list[Noted]) -> list[Figure]:
    return [
        Figure(f"answered within, {who}, p50", median(one.p50_us for one in noted), "us"),
        Figure(f"answered within, {who}, p99", median(one.p99_us for one in noted), "us"),
        Figure(f"answered within, {who}, max", max(one.max_us for one in noted), "us"),
    ]


def compare_batches(ground: Ground, server: Process, single: Asked, many: Asked) -> None:
    ground.run.section(f"a frame of {IN_ONE} look-ups beside {IN_ONE} frames, one after the other")
    ways: dict[str, tuple[int, Callable[[list[Noted]], float]]] = {
        "time to one client": (1, _turn_us),
        f"server CPU, {CLIENTS} clients": (CLIENTS, _cpu_us),
    }
    for name, (clients, cost_of) in ways.items():
        with (
            ground.load(server, single, "single", clients=clients) as one,
            ground.load(server, many, "many", clients=clients) as together,
        ):
            noted_one, noted_many = ground.passes(one, together)
        apart_us, together_us = IN_ONE * cost_of(noted_one), cost_of(noted_many)
        ground.run.add(Figure(f"{IN_ONE} frames of one look-up, {name}", apart_us, "us"))
        ground.run.add(Figure(f"one frame of {IN_ONE} look-ups, {name}", together_us, "us"))
        ratio = together_us / apart_us
        ground.run.add(
            Figure(f"{IN_ONE} in one / one by one, {name}", ratio, "times",
                   at_most=MANY_TO_SINGLE_MAX)
        )  # fmt: skip


def _turn_us(noted: list[Noted]) -> float:
    return 1e6 / _rate(noted)


# --------------------------------------------------------------------------- while others want it


def compare_replay(ground: Ground, asked: Asked) -> None:
    sizes = ground.sizes
    busy: list[Noted] = []
    idle: list[Noted] = []
    for _ in range(sizes.starts):
        with serving(ground.logs, ground.place) as server:
            asyncio.run(wait_open(server, ground.logs, SMALL))
            with ground.load(server, asked, "replay", clients=CLIENTS) as clients:
                found = clients.run(sizes.pass_ms)
                if not asyncio.run(is_open(server, ground.logs, LARGE)):
                    busy.append(found)
                asyncio.run(wait_open(server, ground.logs, LARGE))
                idle.append(clients.run(sizes.pass_ms))
    ground.run.section(
        f"{CLIENTS} clients while {sizes.large_events:,} events of another log are read"
    )
    if not busy:
        click.echo("  the log was read to its end before the clients were done: nothing to compare")
        return
    for who, noted in (("during a replay", busy), ("without one", idle)):
        for figure in _times(who, noted):
            ground.run.add(figure)
    ratio = median(one.p99_us for one in busy) / median(one.p99_us for one in idle)
    ground.run.add(
        Figure("p99 during a replay / without one", ratio, "times", at_most=REPLAY_TO_IDLE_MAX)
    )


def compare_idle(ground: Ground, server: Process, asked: Asked) -> None:
    count = min(ground.sizes.idle, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - _FILES_KEPT)
    ground.run.section(f"{count:,} idle connections beside {CLIENTS} busy ones")
    with ground.load(server, asked, "busy", clients=CLIENTS) as clients:
        (without,) = ground.passes(clients)
        before = server.resident_bytes
        with ground.load(server, asked, "idle", clients=0, idle=count):
            held = server.resident_bytes - before
            (beside,) = ground.passes(clients)
    ground.run.add(
        Figure("memory of the server", held / count, "B/connection", at_most=IDLE_BYTES_MAX)
    )
    for who, noted in (("without them", without), ("beside them", beside)):
        for figure in _times(who, noted):
            ground.run.add(figure)
    ratio = median(one.p99_us for one in beside) / median(one.p99_us for one in without)
    ground.run.add(
        Figure("p99 beside idle connections / without", ratio, "times", at_most=IDLE_P99_MAX)
    )


@click.command()
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that it runs, measures nothing.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; by default in the system's folder for temporary files.",
)
@output_option
def main(*, quick: bool, folder: Path | None, output: Path | None) -> None:
    """Measure the frame server beside an echo server in C; judge what is asked."""
    run = Run()
    sizes = QUICK if quick else FULL
    with (
        tempfile.TemporaryDirectory(prefix="bench-sidecar-", dir=folder) as place,
        recording(run, output, sizes=asdict(sizes)),
    ):
        measure(run, sizes, Path(place))


if __name__ == "__main__":
    main()
