"""
How much memory the container may have, as the kernel's control groups say it.

Both versions are read, and every group that the process is in: a limit of an outer one kills as
surely as its own. What cannot be read sets no limit. Blocks, for as long as a few reads of /proc
and /sys take.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOUNT = "sys/fs/cgroup"
_UNIFIED = ("", "unified")
"""Where version 2 is mounted: alone, or beside version 1."""
_UNLIMITED = 1 << 62
"""Version 1 has no word for "no limit": it says the largest number of whole pages."""


def container_limit_bytes(root: Path = Path("/")) -> int | None:
    """
    The least of all limits on the memory of this process's control groups; `None` without any.

    *root* is where `proc` and `sys` are.
    """
    limits = (_limit_in(path) for path in _limit_files(root))
    return min((limit for limit in limits if limit is not None), default=None)


def _limit_files(root: Path) -> Iterator[Path]:
    """
    Every file that may hold a limit.

    Inside a container the groups are often mounted from its own one down, while the path is told
    from the host's: then the path leads nowhere, and the mount itself is the group. So the mount is
    looked at whatever the path is.
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
    """Controllers and path of each group that this process is in; version 2 names none."""
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
    """The group at *path* and all those around it, up to the mount, relative to that."""
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
