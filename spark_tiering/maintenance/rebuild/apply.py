"""The application of a file of events: what the metadata lacks is published, a group at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rlmm.errors import ConfigError
from spark_tiering.maintenance.json_lines import LineFault, read_objects, typed
from spark_tiering.maintenance.rebuild.apply_steps import groups, steps_for, taken_by_a_service
from spark_tiering.maintenance.rebuild.document import (
    LINE_BYTES_MAX,
    EventsFileEnd,
    EventsFileHeader,
    RestoredSegment,
    parse_entry,
    parse_head,
)
from spark_tiering.maintenance.rebuild.publishing import open_publisher
from spark_tiering.maintenance.rebuild.report import ApplyReport
from spark_tiering.maintenance.wiring import access_of
from spark_tiering.reporting.progress import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from spark_tiering.maintenance.rebuild.apply_steps import ApplyStep
    from spark_tiering.maintenance.rebuild.publishing import Event, RebuildPublisher
    from spark_tiering.maintenance.tier import Tier
    from spark_tiering.tier_metadata.opening import AccessSettings


@dataclass(frozen=True, slots=True)
class EventsFile:
    """A file of events that was read whole once, with the right digest."""

    path: Path
    head: EventsFileHeader
    segments: frozenset[SegmentId]

    def entries(self) -> Iterator[RestoredSegment]:
        return (one for one in _read(self.path) if isinstance(one, RestoredSegment))


def open_events(path: Path) -> EventsFile:
    """Read the file to its end. Raise `ConfigError` for another, cut or changed file."""
    head: EventsFileHeader | None = None
    found: list[SegmentId] = []
    is_whole = False
    for one in _read(path):
        if isinstance(one, EventsFileHeader):
            head = one
        elif isinstance(one, RestoredSegment):
            found.append(one.start.id)
        else:
            is_whole = True
    if head is None or not is_whole:
        raise ConfigError(f"{path}: it is cut: what stands at its end is missing")
    segments = frozenset(found)
    if len(segments) != len(found):
        raise ConfigError(f"{path}: a segment stands in it twice")
    return EventsFile(path, head, segments)


def _read(path: Path) -> Iterator[EventsFileHeader | RestoredSegment | bool]:
    """Yield the header and the segments, and True at the end, when the digest was right."""
    found = read_objects(path, _EventsParser().parse, LINE_BYTES_MAX, "file of events")
    return (one for one in found if one is not None)


class _EventsParser:
    """Pairs the two lines of a segment. Raises `LineFault`."""

    def __init__(self) -> None:
        self._prefix = ""
        self._first: dict[str, Any] | None = None
        self._events = 0

    def parse(
        self, number: int, found: dict[str, Any], sha256: str
    ) -> EventsFileHeader | RestoredSegment | bool | None:
        """Return what the line completes, if anything."""
        if number == 1:
            head = parse_head(found)
            self._prefix = head.prefix
            return head
        if sha256:
            self._check_end(typed(found, EventsFileEnd), sha256)
            return True
        self._events += 1
        if self._first is None:
            self._first = found
            return None
        first, self._first = self._first, None
        return parse_entry(first, found, self._prefix)

    def _check_end(self, end: EventsFileEnd, sha256: str) -> None:
        if self._first is not None or end.events != self._events:
            raise LineFault(f"{self._events} events, its end says {end.events}")
        if end.sha256 != sha256:
            raise LineFault("not what was written: its digest differs; make the file anew")


def apply(
    tier: Tier,
    path: Path,
    *,
    is_applied: bool = True,
    is_other_log: bool = False,
    why_stop: Callable[[], str] = lambda: "",
    access: AccessSettings | None = None,
    meter: Meter | None = None,
) -> ApplyReport:
    """
    Publish the segments of the file *path* that the metadata lacks, or report them. Raise
    `ConfigError`, with nothing published, for another file, and for one that was made for another
    log, unless *is_other_log*.
    """
    began_s = time.monotonic()
    events = open_events(path)
    identity = events.head.identity
    count = None if identity is None else identity.partition_count
    report = ApplyReport(str(path), is_applied=is_applied)
    meter = meter or Meter()
    publisher = open_publisher(
        tier, access or access_of(tier.request), events.segments, count, is_written=is_applied
    )
    try:
        report.target = publisher.where
        if not is_other_log:
            _require_same_log(events, publisher)
        application = _Application(tier, events, publisher, report, why_stop)
        for group in groups(application.steps()):
            application.publish(group)
            failed = report.refused + report.failed + report.left
            meter.reach(
                "segments handled", report.published + report.equal + failed,
                len(events.segments), failed=failed,
            )  # fmt: skip
        unmet = tier.request.topics.unmet({one.partition.topic for one in events.segments})
        report.notes += [f"{path} has no topic {name}" for name in unmet]
    finally:
        publisher.close()
    report.elapsed_s = time.monotonic() - began_s
    return report


def _require_same_log(events: EventsFile, publisher: RebuildPublisher) -> None:
    meant, there = events.head.identity, publisher.identity
    if meant is None or there is None or meant == there:
        return
    for what, was, now in (
        ("cluster", meant.cluster_id, there.cluster_id),
        ("metadata topic id", meant.topic_id, there.topic_id),
        ("number of metadata partitions", meant.partition_count, there.partition_count),
    ):
        if was != now:
            msg = (
                f"{events.path} was made for another log: its {what} is {was}, that of"
                f" {publisher.where} is {now}; make it anew, or say --other-log"
            )
            raise ConfigError(msg)


class _Application:
    def __init__(
        self,
        tier: Tier,
        events: EventsFile,
        publisher: RebuildPublisher,
        report: ApplyReport,
        why_stop: Callable[[], str],
    ) -> None:
        self._wants_topic = tier.request.topics.wants_topic
        self._events = events
        self._publisher = publisher
        self._report = report
        self._why_stop = why_stop
        self._failed: set[TopicIdPartition] = set()

    def steps(self) -> Iterator[ApplyStep]:
        """Yield steps by user partition, each by the metadata at that time."""
        by_partition = groupby(self._events.entries(), lambda entry: entry.start.id.partition)
        for partition, found in by_partition:
            if not self._wants_topic(partition.topic):
                continue
            known = self._publisher.known(partition)
            steps = steps_for(list(found), known.segments, known.gone, known.deletion)
            if self._publisher.judges:
                steps = taken_by_a_service(steps)
            self._report.equal += steps.equal
            for refusal in steps.refused:
                self._report.refuse(*refusal)
            yield from steps.steps

    def publish(self, group: Sequence[ApplyStep]) -> None:
        """Publish the starts of a group, and then the finishes of those that took effect."""
        report = self._report
        if not report.stopped_by:
            report.stopped_by = self._why_stop()
        steps = []
        if not report.stopped_by:  # nothing follows a failed segment of its partition
            steps = [one for one in group if one.entry.start.id.partition not in self._failed]
        report.left += len(group) - len(steps)
        if not report.is_applied:
            report.published += len(steps)
            report.resumed += sum(not one.needs_start for one in steps)
            return
        begun = [one for one in steps if one.needs_start]
        why_not = self._outcomes([one.entry.start for one in begun])
        rest = [one for one in steps if one.entry.start.id not in why_not]
        why_not |= self._outcomes([one.entry.finish for one in rest])
        for one in steps:
            segment_id = one.entry.start.id
            if segment_id in why_not:
                report.fail(segment_id, why_not[segment_id])
                self._failed.add(segment_id.partition)
            else:
                report.published += 1
                report.resumed += not one.needs_start

    def _outcomes(self, events: Sequence[Event]) -> dict[SegmentId, str]:
        """Return why segments do not have the expected state now."""
        if not events:
            return {}
        outcomes = self._publisher.publish(events)
        return {event.id: why for event, why in zip(events, outcomes, strict=True) if why}
