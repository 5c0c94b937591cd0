"""
Why a snapshot is not used: counted by kind, and the latest named. Nothing is refused in silence.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.errors import SnapshotForeign, SnapshotUnsupported

if TYPE_CHECKING:
    from pathlib import Path

_NAMED_MAX = 100


class RefusalKind(StrEnum):
    """Why a snapshot is not used."""

    CORRUPT = "corrupt"
    """Not what was written, or nothing that any build would have written."""
    UNSUPPORTED = "unsupported"
    """Of a version that this build does not know."""
    FOREIGN = "foreign"
    """Of another cluster, topic, partition count or metadata partition."""
    UNREADABLE = "unreadable"
    """The disk did not give it, or it does not fit into memory."""
    BEYOND_LOG = "beyond-log"
    """Its position lies behind the log's end: that history is not the log's any more."""
    BEFORE_LOG = "before-log"
    """Its position lies before the log's start: the records in between are lost."""


@dataclass(frozen=True, slots=True)
class SnapshotRefusal:
    """One snapshot that was not used."""

    path: Path
    partition: int
    position: int
    kind: RefusalKind
    detail: str


def kind_of(error: Exception) -> RefusalKind:
    """The kind that an error stands for which came up while a snapshot was read."""
    if isinstance(error, SnapshotForeign):
        return RefusalKind.FOREIGN
    if isinstance(error, SnapshotUnsupported):
        return RefusalKind.UNSUPPORTED
    is_unread = isinstance(error, OSError | MemoryError)
    return RefusalKind.UNREADABLE if is_unread else RefusalKind.CORRUPT


class Refusals:
    """Those of one folder, since the start of the process."""

    def __init__(self) -> None:
        self._counts: Counter[RefusalKind] = Counter()
        self._latest: deque[SnapshotRefusal] = deque(maxlen=_NAMED_MAX)
        self._kinds: dict[Path, RefusalKind] = {}

    def note(self, refusal: SnapshotRefusal) -> None:
        self._counts[refusal.kind] += 1
        self._latest.append(refusal)
        self._kinds[refusal.path] = refusal.kind

    def forget(self, path: Path) -> None:
        """Something else stands at *path* now, or nothing."""
        self._kinds.pop(path, None)

    def paths(self, *kinds: RefusalKind) -> frozenset[Path]:
        """Where those of some kinds stand."""
        return frozenset(path for path, kind in self._kinds.items() if kind in kinds)

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind; every kind is there."""
        return {str(kind): self._counts[kind] for kind in RefusalKind}

    @property
    def latest(self) -> tuple[SnapshotRefusal, ...]:
        return tuple(self._latest)
