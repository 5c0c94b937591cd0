"""
The memory budget: alerts first, then refuses more, so that the kernel never kills the service.
Compares the resident memory with the machine's or the limits of its control groups, of both
versions and every outer group. A limit that cannot be read counts as none.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rlmm.base.doorbell import Doorbell
from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.errors import ConfigError, OverBudget
from rlmm.metadata.ids import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger(__name__)

_RELIEF = 0.97
"""Share of the limit below which the pump goes on."""
_MIB = 1 << 20
_MOUNT = "sys/fs/cgroup"
_UNIFIED = ("", "unified")
"""Mounts of version 2: alone, or beside version 1."""
_UNLIMITED = 1 << 62
"""Version 1 writes the largest number of whole pages for "no limit"."""


@dataclass(frozen=True, slots=True)
class MemorySettings:
    alert_bytes: int | None = None
    """Resident memory from which an alert is raised. Unset: 80 % of what there is: the least of the
    machine's memory and the limits of all control groups, of version 2 or 1, that the process is
    in, which is how a container is bounded. It is looked up anew at every measurement."""
    limit_bytes: int | None = None
    """Resident memory from which events are refused by name, before the kernel ends the process;
    questions are still answered from the state, as long as it is current. Unset: 90 % of the memory
    there is, found in the same way."""

    def __post_init__(self) -> None:
        bounds = (1, INT64_MAX)
        require_whole_numbers("memory.", self, alert_bytes=bounds, limit_bytes=bounds)
        if self.alert_bytes and self.limit_bytes and self.alert_bytes > self.limit_bytes:
            msg = (
                f"memory.alert_bytes must not be above memory.limit_bytes, "
                f"got {self.alert_bytes} and {self.limit_bytes}"
            )
            raise ConfigError(msg)


@dataclass(frozen=True, slots=True)
class BudgetStatistics:
    resident_bytes: int
    alert_bytes: int
    limit_bytes: int
    is_alert: bool
    is_exhausted: bool
    refusals: int


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    resident_bytes: int
    total_bytes: int


def measure_memory() -> MemoryUsage:
    """
    Return the memory of this process and of the machine, or of the container where that is less.
    Asks the kernel, never a disk, so it needs no thread.
    """
    return MemoryUsage(_resident_bytes(), _total_bytes())


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _total_bytes() -> int:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    container = container_limit_bytes()
    return machine if container is None else min(machine, container)


class Budget:
    """Compares resident memory with the limits; callers that take memory ask it, and wait."""

    def __init__(
        self,
        settings: MemorySettings,
        measure: Callable[[], MemoryUsage] = measure_memory,
    ) -> None:
        self._settings = settings
        self._alert = self._limit = 0
        self._measure = measure
        self._bell = Doorbell()
        self._resident = 0
        self._refusals = 0
        self._is_alert = False
        self.is_exhausted = False

    def look(self) -> None:
        try:
            memory = self._measure()
        except (OSError, MemoryError, ValueError) as error:
            _log.warning("memory could not be measured, the last figure holds: %r", error)
            return
        settings = self._settings
        self._resident = resident = memory.resident_bytes
        self._limit = settings.limit_bytes or memory.total_bytes * 9 // 10
        self._alert = min(settings.alert_bytes or memory.total_bytes * 8 // 10, self._limit)
        was_alert, was_exhausted = self._is_alert, self.is_exhausted
        self._is_alert = resident >= self._alert
        self.is_exhausted = resident >= self._limit * (_RELIEF if was_exhausted else 1)
        if self.is_exhausted and not was_exhausted:
            _log.error(
                "%d MiB are resident, the limit is %d: nothing more is read or written",
                resident // _MIB,
                self._limit // _MIB,
            )
        elif was_exhausted and not self.is_exhausted:
            _log.warning("%d MiB are resident: there is room again", resident // _MIB)
            self._bell.ring()
        elif self._is_alert and not was_alert:
            _log.warning(
                "%d MiB are resident: at %d nothing more will be taken",
                resident // _MIB,
                self._limit // _MIB,
            )

    async def wait_room(self) -> None:
        while self.is_exhausted:
            await self._bell.wait()

    def require_room(self, what: str) -> None:
        """Refuse *what* while the budget is used up."""
        if self.is_exhausted:
            self._refusals += 1
            msg = (
                f"{what}: {self._resident // _MIB} MiB are resident, "
                f"memory.limit_bytes allows {self._limit // _MIB}"
            )
            raise OverBudget(msg)

    def statistics(self) -> BudgetStatistics:
        return BudgetStatistics(
            self._resident,
            self._alert,
            self._limit,
            self._is_alert,
            self.is_exhausted,
            self._refusals,
        )


def container_limit_bytes(root: Path = Path("/")) -> int | None:
    """Return the lowest control group limit, or `None`; *root* holds `proc` and `sys`."""
    limits = (_limit_in(path) for path in _limit_files(root))
    return min((limit for limit in limits if limit is not None), default=None)


def _limit_files(root: Path) -> Iterator[Path]:
    """
    Yield every file that may hold a limit. Containers often mount their own group while /proc shows
    the host's path, which then leads nowhere; so the mount is always among them.
    """
    mount = root / _MOUNT
    for controllers, path in _groups(root):
        if not controllers:
            mounts, name = _UNIFIED, "memory.max"
        elif "memory" in controllers.split(","):
            mounts, name = ("memory", controllers), "memory.limit_in_bytes"
        else:
            continue
        for folder in dict.fromkeys(mounts):
            yield from (mount / folder / group / name for group in _up_from(path))


def _groups(root: Path) -> Iterator[tuple[str, str]]:
    """Controllers and path of each group of this process; version 2 has no controllers."""
    try:
        text = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        text = "0::/\n1:memory:/\n"
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, is_group, path = rest.partition(":")
        if is_group:
            yield controllers, path


def _up_from(path: str) -> Iterator[str]:
    """Yield the group at *path* and all groups around it, relative to the mount."""
    group = PurePosixPath(path.lstrip("/"))
    if ".." in group.parts:  # outside of what can be seen from here
        group = PurePosixPath()
    yield from (str(outer) for outer in (group, *group.parents))


def _limit_in(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    limit = int(text) if text.isdigit() else _UNLIMITED
    return limit if limit < _UNLIMITED else None
