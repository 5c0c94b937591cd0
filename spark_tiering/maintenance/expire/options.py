"""The options of an expire job: limits, further deletions, and how much at most. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

DAY_MS: Final = 86_400_000

PartitionName = tuple[str, int]
"""The name of a topic and the number of a partition."""


@dataclass(frozen=True, slots=True)
class ExpireOptions:
    """Limits precede the cluster's; without any the job only finishes begun deletions."""

    retention_ms: int | None = None
    """-1: no limit, whatever the cluster has."""
    retention_bytes: int | None = None
    log_starts: Mapping[PartitionName, int] = field(default_factory=dict)
    asks_log_start: bool = False
    """Use the cluster's log start offset for an archive, too, which then ends with the log."""
    open_for_ms: int = DAY_MS
    """A copy with a younger last event may still have a writer."""
    ends_open_copies: bool = False
    """Delete open copies without a writer, also above the limits."""
    drops_old_epochs: bool = False
    """Delete segments whose leader epochs were all replaced, by the other segments."""
    drops_deleted_topics: bool = False
    """Delete the rest of topics that the cluster deleted, where the metadata is its own."""
    max_delete: int | None = None
    old_prefixes: tuple[str, ...] = ()
    """Prefixes to look under for segments that are not under the present one."""
    is_without_objects: bool = False
    """The objects are already deleted: delete the metadata although no object is found."""
    is_offline: bool = False
    """The caller guarantees that no broker expires these topics."""
    publish_s: float = 30.0

    def __post_init__(self) -> None:
        if self.max_delete is not None and self.max_delete < 1:
            raise ConfigError(f"a run that deletes {self.max_delete} segments at most deletes none")
        if self.open_for_ms < 0:
            raise ConfigError(f"a copy is open for a time, not for {self.open_for_ms} ms")
