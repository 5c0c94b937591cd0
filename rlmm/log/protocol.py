"""
The protocol of the log of events, kept in memory, in our own files, or in Kafka.

A log has an identity, bounds per partition, and record sets from an offset on; an append adds an
event to a partition and returns its offset. Every call ends by its deadline, with an answer or with
an error of `rlmm.errors`, and one partition never waits for another. `log_start_offset` is the
first offset that is there, `high_watermark` the one after the last that readers may see.

`InvalidArgument` is raised before any I/O, for example for a partition that the topic does not
have. The suite in `tests/conformance/log` holds every implementation to this contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
        Ask for the identity, freshly.

        From then on this log is the one of that topic: where another takes its place, every other
        call meets `LogRecreated` until the identity is asked again.

        Raises `LogUnavailable`, `LogNotPermitted`, or `ConfigError` where the topic contradicts
        the configuration (partition count, topic absent).
        """

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        """
        Ask for the bounds of each partition, freshly; every partition asked for is in the answer.

        A partition whose bounds are not known now has its error there; the others have theirs. Only
        a log that is closed raises, `LogUnavailable`.
        """

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """
        Return record sets from *position* on as soon as there are any; `None` when the time is up.

        The first batch may begin below *position*; at least one whole batch is returned however
        large it is, otherwise no more than *bytes_max*. `next_offset` of the set, never None, is
        where to go on; it may be beyond the last batch (compaction, control records), and where
        nothing but that is left the set has no bytes at all. Others get their turn even when there
        is always something to read. Raises `LogTruncated` when *position* lies outside the
        bounds, `LogRecreated`, `LogUnavailable`, `LogNotPermitted`, `LogDamaged`. Cancelling a read
        leaves nothing behind and loses nothing.
        """

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        """
        Store one event and return its offset; readers see it from then on.

        Raises `AppendRefused` (an event that is too large, a full disk) or another error where it
        was surely not stored, and `AppendUncertain` where that is unknown; a cancelled append is
        uncertain, too. A log without a producer (observer) refuses every append.
        """

    def statistics(self) -> LogStatistics: ...

    async def close(self) -> None:
        """
        Release everything; calls in flight, and later ones, end with `LogUnavailable`.

        Appends in flight end with their true outcome: the offset, surely not stored, or unknown.
        Idempotent.
        """
