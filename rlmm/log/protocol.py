"""
The protocol of the log of events, kept in memory, in our own files, or in Kafka.

Every call ends by its deadline, with an answer or an error of `rlmm.errors`, and one partition
never waits for another. `InvalidArgument` (as for an unknown partition) is raised before any I/O.
The suite in `tests/conformance/log` holds every implementation to this contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.metadata.ids import Uuid
    from rlmm.records.record_set import RecordSet


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """The identity of a log: state of one log is void for another."""

    cluster_id: str
    topic_id: Uuid
    partition_count: int


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The offsets that readers of a partition may see: [log_start_offset, high_watermark)."""

    log_start_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """Figures of a log as they are now; each kind has its own."""


class MetadataLog(Protocol):
    """Reads and writes one metadata topic. Safe to use from many tasks of one event loop."""

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        """
        Ask for the identity, freshly, and bind this log to that topic.

        Where another takes its place, every other call raises `LogRecreated` until `identity` is
        called again. Raises `LogUnavailable`, `LogNotPermitted`, or `ConfigError` where the topic
        contradicts the configuration (partition count, topic absent).
        """

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        """Ask for the bounds, or the error, of each of *partitions*; raises only when closed."""

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """
        Return record sets from *position* on as soon as there are any; `None` when the time is up.

        The first batch may begin below *position*; at least one whole batch comes, however large,
        otherwise up to *bytes_max*. `next_offset` of the set, never None, is where to go on, maybe
        beyond the last batch (compaction, control records); with nothing else left the set has no
        bytes. Other tasks get their turn. Raises `LogTruncated` for a *position* outside the
        bounds, `LogRecreated`, `LogUnavailable`, `LogNotPermitted`, `LogDamaged`. Cancelling loses
        nothing.
        """

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        """
        Store one event and return its offset; readers see it from then on.

        Raises `AppendRefused` (event too large, disk full, no producer) or another error where it
        was surely not stored, `AppendUncertain` where unknown; a cancelled append is uncertain,
        too.
        """

    def statistics(self) -> LogStatistics: ...

    async def close(self) -> None:
        """
        Release everything; later calls raise `LogUnavailable`. Idempotent.

        Appends in flight end with their true outcome: the offset, surely not stored, or unknown.
        """


@runtime_checkable
class GaplessLog(Protocol):
    """A log that knows whether anything compacts it."""

    @property
    def is_gapless(self) -> bool:
        """Whether each offset has a record: then one that no batch has is damage, and no hole."""


@runtime_checkable
class CompactionSource(Protocol):
    """A log that has to ask whether anything compacts it: the `kafka` log."""

    async def learn_compaction(self) -> None:
        """Ask within seconds; without an answer, or the right to it, the log is not gapless."""


@runtime_checkable
class ReplaceableLog(Protocol):
    """A log that its owner may cut, or make anew, while this process reads it: an observer's."""

    def replacements(self, partition: int) -> int:
        """
        Return how often *partition* was found cut or made anew. A reader that finds another number
        than when its reading began must prove what it has read.
        """


def is_gapless(log: MetadataLog) -> bool:
    return isinstance(log, GaplessLog) and log.is_gapless


def replacements_of(log: MetadataLog, partition: int) -> int:
    return log.replacements(partition) if isinstance(log, ReplaceableLog) else 0
