"""Statistics of this process from the operating system."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SELF: Final = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Resources of the process; `None` if the system does not tell."""

    resident_bytes: int | None = None
    threads: int | None = None
    open_fds: int | None = None
    max_fds: int | None = None
    cpu_s: float | None = None
    begin_s: float | None = None


def measure_process() -> ProcessFigures:
    try:
        fields = (_SELF / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2]
        said = fields.split()
        ticks = os.sysconf("SC_CLK_TCK")
        return ProcessFigures(
            resident_bytes=int(said[21]) * os.sysconf("SC_PAGE_SIZE"),
            threads=int(said[17]),
            open_fds=sum(1 for _ in (_SELF / "fd").iterdir()) - 1,  # one of them is for this look
            max_fds=_limit(),
            cpu_s=(int(said[11]) + int(said[12])) / ticks,
            begin_s=_boot_s() + int(said[19]) / ticks,
        )
    except (OSError, ValueError, IndexError):
        return ProcessFigures()


def _limit() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _boot_s() -> float:
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name == "btime":
            return float(value)
    raise ValueError(line)
