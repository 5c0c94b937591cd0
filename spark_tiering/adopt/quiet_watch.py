"""
Whether the metadata of a topic has been left alone for a while. Pure: it is told what was seen,
and when.

A broker that is told to stop copying interrupts what it has under way, and a storage plugin may
ignore that: what it finishes later has to be seen before anything is planned. That every open copy
is closed is no condition: what a broker was interrupted in stays open for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import TopicIdPartition


class QuietWatch:
    """Compares digests of partitions over time."""

    def __init__(self, quiet_ms: int) -> None:
        self._quiet_ms = quiet_ms
        self._seen: dict[TopicIdPartition, str | None] | None = None
        self._since_ms = 0

    def saw(self, now_ms: int, digests: Mapping[TopicIdPartition, str | None]) -> bool:
        """
        Return whether the metadata is quiet, now that *digests* were read; None stands for metadata
        that could not be read, which is never quiet. Times are of a clock that does not step.
        """
        seen = dict(digests)
        if seen != self._seen or None in seen.values():
            self._seen, self._since_ms = seen, now_ms
        return None not in seen.values() and now_ms - self._since_ms >= self._quiet_ms

    @property
    def unread(self) -> list[TopicIdPartition]:
        """Partitions whose metadata could not be read at the last look."""
        return [] if self._seen is None else [one for one, seen in self._seen.items() if not seen]
