"""
What was not simply applied, within bounds: rejected events, undecodable records, remarks.

Counters live in the shards and are exact; here is what an operator wants to look at. The oldest go
first, and how many went is counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.metadata.verdicts import Applied, Duplicate, Rejected, Undecodable, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.report import Entry

_VALUE_BYTES_MAX = 64 * 1024
"""Most bytes that are kept of one record."""


@dataclass(frozen=True, slots=True)
class Incident:
    """One event that was not simply applied; of a value of *size* bytes the first are kept."""

    metadata_partition: int
    offset: int
    next_offset: int
    seen_ms: int
    verdict: Verdict
    partition: TopicIdPartition | None
    segment: Uuid | None
    value: bytes | None
    size: int


class Incidents:
    """The last so many of each kind."""

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._kinds: dict[type[Verdict], deque[Incident]] = {
            Rejected: deque(),
            Undecodable: deque(),
            Applied: deque(),
        }
        self._count_max = count_max
        self._bytes_max = bytes_max
        self.bytes_held = 0
        self.forgotten = 0
        """How many had to make room."""

    def note(self, metadata_partition: int, entries: Iterable[Entry], now_ms: int) -> None:
        """Remember *entries*; exact repeats are none of our business."""
        for entry in entries:
            if isinstance(entry.verdict, Duplicate):
                continue
            value = entry.value
            self._keep(
                Incident(
                    metadata_partition,
                    entry.offset,
                    entry.next_offset,
                    now_ms,
                    entry.verdict,
                    entry.partition,
                    entry.segment,
                    None if value is None else value[:_VALUE_BYTES_MAX],
                    0 if value is None else len(value),
                )
            )

    def of(
        self,
        *,
        metadata_partition: int | None = None,
        partition: TopicIdPartition | None = None,
        segment: Uuid | None = None,
    ) -> Iterator[Incident]:
        """Those that fit, the oldest of each kind first."""
        for kind in self._kinds.values():
            for incident in list(kind):
                if (
                    metadata_partition in {None, incident.metadata_partition}
                    and partition in {None, incident.partition}
                    and segment in {None, incident.segment}
                ):
                    yield incident

    def forget(self, metadata_partition: int) -> None:
        """That partition is read anew from its start: it will all be seen again."""
        for kind, held in self._kinds.items():
            self._kinds[kind] = deque(
                found for found in held if found.metadata_partition != metadata_partition
            )
        self.bytes_held = sum(
            len(found.value or b"") for held in self._kinds.values() for found in held
        )

    def _keep(self, incident: Incident) -> None:
        held = self._kinds[type(incident.verdict)]
        held.append(incident)
        self.bytes_held += len(incident.value or b"")
        while len(held) > self._count_max:
            self._drop(held)
        undecodable = self._kinds[Undecodable]
        while self.bytes_held > self._bytes_max and undecodable:
            self._drop(undecodable)

    def _drop(self, held: deque[Incident]) -> None:
        self.bytes_held -= len(held.popleft().value or b"")
        self.forgotten += 1
