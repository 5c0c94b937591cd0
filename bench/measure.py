"""
Measurements: CPU time of this process, memory, the cycle collector in a named mode, and facts of
the machine.
"""

from __future__ import annotations

import cProfile
import gc
import io
import os
import platform
import pstats
import resource
import time
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiokafka.record.default_records import DefaultRecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

cpu_ns = time.process_time_ns
PROFILE_LINES = 12


class Collector(StrEnum):
    ON = "on"
    """As Python starts: full passes walk everything that was loaded, again and again."""
    OFF = "off"


@contextmanager
def collector(mode: Collector) -> Iterator[None]:
    """
    Run a block with the cycle collector in *mode*; the collector skips objects made before the
    block.
    """
    gc.collect()
    gc.freeze()
    if mode is Collector.OFF:
        gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def freeze_what_is_loaded() -> None:
    gc.freeze()
    gc.enable()


def resident_bytes() -> int:
    """
    Return the resident bytes of this process, or its peak where Linux does not tell the present.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def held_bytes(root: object) -> int:
    """
    Return the size of all objects that only *root* leads to, without types, functions and modules.
    """
    seen = {id(root)}
    waiting = [root]
    total = 0
    while waiting:
        found = waiting.pop()
        total += found.__sizeof__()
        for referred in gc.get_referents(found):
            if (
                id(referred) not in seen
                and not isinstance(referred, type)
                and not callable(referred)
            ):
                seen.add(id(referred))
                waiting.append(referred)
    return total


def percentile(values: Sequence[int], percent: float) -> int:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def profile_of(work: Callable[[], object]) -> list[str]:
    profiler = cProfile.Profile()
    profiler.runcall(work)
    out = io.StringIO()
    stats = pstats.Stats(profiler, stream=out).strip_dirs().sort_stats("tottime")
    stats.print_stats(PROFILE_LINES)
    lines = out.getvalue().splitlines()
    begin = next(at for at, line in enumerate(lines) if "tottime" in line)
    return [line.rstrip() for line in lines[begin:] if line.strip()]


def machine_facts() -> dict[str, Any]:
    """Return the facts a reader of the figures needs; nothing names the machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "processor": _processor_model() or platform.machine(),
        "memory_gib": round(memory / 2**30, 1),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiled_record_reader": _has_compiled_reader(),
    }


def _processor_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else ""


def _has_compiled_reader() -> bool:
    return not DefaultRecordBatch.__name__.endswith("Py")
