"""
`python -m bench hostile`: what others notice while hostile clients send what they like.

A friendly client pings over TCP and asks for `/livez`, first alone, then beside the clients of each
shape; the memory of the service is its resident memory against that before the shape. Every shape
meets a service that has just started.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from bench.figures import Figure, Run
from bench.hostile_attackers import attacked
from bench.hostile_ground import Watcher, served
from bench.hostile_shapes import HTTP, KNOWN, STRANGERS, Role
from bench.measure import percentile
from bench.recording import output_option, recording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.hostile_shapes import Shape

PING_P99_MS_MAX: Final = 20.0
LIVEZ_MS_MAX: Final = 100.0
GROWTH_MIB_MAX: Final = 64.0


@dataclass(frozen=True, slots=True)
class Times:
    alone_s: float
    attacked_s: float


FULL: Final = Times(alone_s=2.0, attacked_s=6.0)
QUICK: Final = Times(alone_s=0.3, attacked_s=0.5)


def shapes(*, has_tls: bool) -> Iterator[Shape]:
    yield from STRANGERS
    yield from KNOWN
    if not has_tls:
        yield from HTTP


def measure(run: Run, times: Times, only: str) -> None:
    for has_tls in (False, True):
        run.section("With TLS" if has_tls else "Without TLS")
        for shape in shapes(has_tls=has_tls):
            if only in shape.name:
                for figure in _judged(times, shape, has_tls=has_tls):
                    run.add(figure)


def _judged(times: Times, shape: Shape, *, has_tls: bool) -> list[Figure]:
    """Measure *shape*; where a limit is missed twice more: the median of each figure counts."""
    found = [measure_shape(times, shape, has_tls=has_tls)]
    if not all(figure.is_met for figure in found[0]) and times is FULL:
        found += [measure_shape(times, shape, has_tls=has_tls) for _ in range(2)]
    return [
        sorted(each, key=lambda figure: figure.value)[len(each) // 2]
        for each in zip(*found, strict=True)
    ]


def measure_shape(times: Times, shape: Shape, *, has_tls: bool) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-hostile-") as place,
        served(Path(place), has_tls=has_tls) as (process, target),
    ):
        watcher = Watcher(process, target)
        with watcher.watching() as alone:
            time.sleep(times.alone_s)
            watcher.wait_for_both()
        before = process.resident_bytes
        with attacked(target, shape), watcher.watching() as found:
            time.sleep(times.attacked_s)
            watcher.wait_for_both()
        process.require_running()
        if alone.failures or found.failures:
            msg = f"{shape.name}: {alone.failures + found.failures}"
            raise click.ClickException(msg)
        growth = (max(found.resident_bytes) - before) / 2**20
    who = f"{shape.role}{', TLS' if has_tls else ''}: {shape.name}"
    return [
        Figure(f"{who}, {name}", value, unit, at_most=most)
        for name, value, unit, most in (
            ("ping alone p99", _percent(alone.pings_ms, 99), "ms", None),
            ("ping p50", _percent(found.pings_ms, 50), "ms", None),
            ("ping p99", _percent(found.pings_ms, 99), "ms", PING_P99_MS_MAX),
            ("ping max", max(found.pings_ms), "ms", None),
            ("livez max", max(found.livez_ms), "ms", LIVEZ_MS_MAX),
            ("memory", growth, "MiB", GROWTH_MIB_MAX),
        )
    ]


def _percent(values: list[float], percent: int) -> float:
    return percentile([round(one * 1_000) for one in values], percent) / 1_000


@click.command()
@click.option("--quick", is_flag=True, help="Short: shows that it runs, its times mean little.")
@click.option("--only", default="", help="Shapes with this text in their names.")
@output_option
def main(*, quick: bool, only: str, output: Path | None) -> None:
    """Measure pings, health checks and memory beside hostile clients, and judge the limits."""
    run = Run()
    times = QUICK if quick else FULL
    with recording(run, output, times=asdict(times), roles=list(Role)):
        measure(run, times, only)


if __name__ == "__main__":
    main()
