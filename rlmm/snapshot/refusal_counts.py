"""Refusals of snapshots: counted by kind, and the latest named."""

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
    CORRUPT = "corrupt"
    """No build has written it so."""
    UNSUPPORTED = "unsupported"
    FOREIGN = "foreign"
    """Of another cluster, topic, partition count or metadata partition."""
    UNREADABLE = "unreadable"
    """The disk did not read it, or it does not fit into memory."""
    BEYOND_LOG = "beyond-log"
    """Its position is behind the log end offset: the log lost that history."""
    BEFORE_LOG = "before-log"
    """Its position is before the log start offset: records in between are gone."""


@dataclass(frozen=True, slots=True)
class SnapshotRefusal:
    path: Path
    partition: int
    position: int
    kind: RefusalKind
    detail: str


def kind_of(error: Exception) -> RefusalKind:
    if isinstance(error, SnapshotForeign):
        return RefusalKind.FOREIGN
    if isinstance(error, SnapshotUnsupported):
        return RefusalKind.UNSUPPORTED
    is_unread = isinstance(error, OSError | MemoryError)
    return RefusalKind.UNREADABLE if is_unread else RefusalKind.CORRUPT


class Refusals:
    def __init__(self) -> None:
        self._counts: Counter[RefusalKind] = Counter()
        self._latest: deque[SnapshotRefusal] = deque(maxlen=_NAMED_MAX)
        self._kinds: dict[Path, RefusalKind] = {}

    def note(self, refusal: SnapshotRefusal) -> None:
        self._counts[refusal.kind] += 1
        self._latest.append(refusal)
        self._kinds[refusal.path] = refusal.kind

    def forget(self, path: Path) -> None:
        """Forget *path*: another file, or none, is there now."""
        self._kinds.pop(path, None)

    def paths(self, *kinds: RefusalKind) -> frozenset[Path]:
        return frozenset(path for path, kind in self._kinds.items() if kind in kinds)

    @property
    def counts(self) -> dict[str, int]:
        """Return counts by kind; every kind is in it."""
        return {str(kind): self._counts[kind] for kind in RefusalKind}

    @property
    def latest(self) -> tuple[SnapshotRefusal, ...]:
        return tuple(self._latest)
