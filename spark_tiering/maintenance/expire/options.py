"""What is asked of a run: limits, what else may go, how much at most. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

DAY_MS: Final = 86_400_000

PartitionName = tuple[str, int]
"""A topic's name and the number of a partition: what people can write."""


@dataclass(frozen=True, slots=True)
class ExpireOptions:
    """
    Limits that are given count before those of the cluster; where neither says anything, none is
    applied, and only what was begun is finished.
    """

    retention_ms: int | None = None
    """-1: no limit, whatever the cluster says."""
    retention_bytes: int | None = None
    log_starts: Mapping[PartitionName, int] = field(default_factory=dict)
    asks_log_start: bool = False
    """Take the cluster's log start also where the metadata is not its own: an archive then ends
    where the local log does."""
    open_for_ms: int = DAY_MS
    """A copy whose last event is younger may be at work."""
    ends_open_copies: bool = False
    """Open copies go that nobody works at, also where retention does not come to them."""
    drops_old_epochs: bool = False
    """Segments go all of whose leader epochs were replaced, as the other segments tell."""
    drops_deleted_topics: bool = False
    """What is left goes of topics that the cluster has deleted, where the metadata is its own."""
    max_delete: int | None = None
    """Most segments of one run."""
    old_prefixes: tuple[str, ...] = ()
    """Where segments are looked for that are not under the present prefix."""
    is_without_objects: bool = False
    """The objects are known to be gone: the metadata goes also where none is found."""
    is_offline: bool = False
    """Who asks answers for it that no broker expires these topics."""
    publish_s: float = 30.0

    def __post_init__(self) -> None:
        if self.max_delete is not None and self.max_delete < 1:
            msg = f"a run that deletes {self.max_delete} segments at most deletes none"
            raise ConfigError(msg)
        if self.open_for_ms < 0:
            msg = f"a copy is open for a time, not for {self.open_for_ms} ms"
            raise ConfigError(msg)
