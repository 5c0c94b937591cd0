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
"""Mounts of version 2: alone, or beside version 1."""
_UNLIMITED = 1 << 62
"""Version 1 writes the largest number of whole pages for "no limit"."""


def container_limit_bytes(root: Path = Path("/")) -> int | None:
    """
    The lowest limit on the memory of this process's control groups; `None` without any.

    *root* is the folder of `proc` and `sys`.
    """
    limits = (_limit_in(path) for path in _limit_files(root))
    return min((limit for limit in limits if limit is not None), default=None)


def _limit_files(root: Path) -> Iterator[Path]:
    """
    Every file that may hold a limit.

    Containers often mount their groups from their own one down, while /proc shows the host's path:
    then the path leads nowhere, and the mount itself is the group. So the mount is always among
    them.
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
    """The group at *path* and all groups around it, relative to the mount."""
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
