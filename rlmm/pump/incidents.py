"""
Incidents, within bounds: rejected events, undecodable records, remarks. The oldest are dropped
first.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.metadata.verdicts import COUNTED_APART, Applied, Duplicate, Rejected, Undecodable, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.report import Entry

_log = logging.getLogger(__name__)

_VALUE_BYTES_MAX = 64 * 1024
_LOGGED_BYTES = 64
"""Frame, key and version stand in the first bytes."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Holds one event that was not simply applied, with the first of *size* bytes of its value."""

    metadata_partition: int
    offset: int
    next_offset: int
    seen_ms: int
    verdict: Verdict
    partition: TopicIdPartition | None
    segment: Uuid | None
    value: bytes | None
    size: int


@dataclass(frozen=True, slots=True)
class KindStatistics:
    events: Mapping[str, int]
    """Events since the start, by reason. An event that is read again counts again."""
    kept: int
    forgotten: int


@dataclass(frozen=True, slots=True)
class IncidentStatistics:
    rejected: KindStatistics
    undecodable: KindStatistics
    remarked: KindStatistics
    """Events that were applied with a remark."""
    bytes_held: int


class Incidents:
    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._kinds: dict[type[Verdict], deque[Incident]] = {
            Rejected: deque(),
            Undecodable: deque(),
            Applied: deque(),
        }
        self._events: dict[type[Verdict], Counter[str]] = {kind: Counter() for kind in self._kinds}
        self._forgotten: Counter[type[Verdict]] = Counter()
        self._count_max = count_max
        self._bytes_max = bytes_max
        self.bytes_held = 0

    @property
    def forgotten(self) -> int:
        return self._forgotten.total()

    def note(self, metadata_partition: int, entries: Iterable[Entry], now_ms: int) -> None:
        """Remember *entries* but for repeats; log the first undecodable one with its bytes."""
        is_logged = False
        for entry in entries:
            if isinstance(entry.verdict, Duplicate):
                continue
            if not is_logged and isinstance(entry.verdict, Undecodable):
                is_logged = _log_undecodable(metadata_partition, entry, entry.verdict)
            value, kind = entry.value, type(entry.verdict)
            self._events[kind][_reason_of(entry.verdict)] += entry.next_offset - entry.offset
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
        for kind in self._kinds.values():
            for incident in list(kind):
                if (
                    metadata_partition in {None, incident.metadata_partition}
                    and partition in {None, incident.partition}
                    and segment in {None, incident.segment}
                ):
                    yield incident

    def forget(self, metadata_partition: int) -> None:
        for kind, held in self._kinds.items():
            self._kinds[kind] = deque(
                found for found in held if found.metadata_partition != metadata_partition
            )
        self.bytes_held = sum(
            len(found.value or b"") for held in self._kinds.values() for found in held
        )

    def statistics(self) -> IncidentStatistics:
        return IncidentStatistics(
            self._statistics_of(Rejected),
            self._statistics_of(Undecodable),
            self._statistics_of(Applied),
            self.bytes_held,
        )

    def _statistics_of(self, kind: type[Verdict]) -> KindStatistics:
        return KindStatistics(
            dict(self._events[kind]), len(self._kinds[kind]), self._forgotten[kind]
        )

    def _keep(self, incident: Incident) -> None:
        kind = type(incident.verdict)
        held = self._kinds[kind]
        held.append(incident)
        self.bytes_held += len(incident.value or b"")
        while len(held) > self._count_max:
            self._drop(kind)
        undecodable = self._kinds[Undecodable]
        while self.bytes_held > self._bytes_max and undecodable:
            self._drop(Undecodable)

    def _drop(self, kind: type[Verdict]) -> None:
        self.bytes_held -= len(self._kinds[kind].popleft().value or b"")
        self._forgotten[kind] += 1


def _log_undecodable(metadata_partition: int, entry: Entry, verdict: Undecodable) -> bool:
    """Log a skipped record unless a healthy history holds such; return whether it was logged."""
    if verdict.reason in COUNTED_APART:
        return False
    value = entry.value or b""
    _log.warning(
        "metadata partition %d, offset %d: set aside, it could not be decoded (%s), %d bytes: %s",
        metadata_partition, entry.offset, verdict.reason, len(value), value[:_LOGGED_BYTES].hex(),
        extra={"metadata_partition": metadata_partition, "offset": entry.offset},
    )  # fmt: skip
    return True


def _reason_of(verdict: Verdict) -> str:
    match verdict:
        case Rejected(reason=reason) | Undecodable(reason=reason):
            return reason
        case Applied(remark=remark) if remark is not None:
            return remark
        case _:
            return "none"
