"""Shards that are validated after every test: a pytest plugin. `breaks_shards` exempts a test."""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.encoding import encode_any
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.verdicts import APPLIED, Applied, Duplicate, Rejected, Undecodable
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    segment_id,
    started,
    tp,
)
from tests.support.engine.chosen import IS_NATIVE, ChosenShard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.partition_state import PartitionState
    from rlmm.metadata.report import Report
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.metadata.verdicts import Verdict

METADATA_PARTITION = 3


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "breaks_shards: breaks a shard on purpose; none is checked afterwards"
    )


def pytest_report_header() -> str:
    return f"rlmm: engine {'native' if IS_NATIVE else 'python'}"


@pytest.fixture(autouse=True)
def _shards_stay_sound(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    touched: list[PythonShard] = []
    make = PythonShard.__init__  # every engine's calls it

    def remember(shard: PythonShard, *arguments: Any, **options: Any) -> None:
        make(shard, *arguments, **options)
        touched.append(shard)

    monkeypatch.setattr(PythonShard, "__init__", remember)
    yield
    if request.node.get_closest_marker("breaks_shards") is None:
        broken = [violation for shard in touched for violation in shard.validate()]
        assert not broken, broken


def values_of(events: Iterable[Event | bytes | None]) -> list[bytes | None]:
    return [
        event if event is None or isinstance(event, bytes) else encode_any(event)
        for event in events
    ]


def batch_of(events: Iterable[Event | bytes | None], base_offset: int = 0) -> bytes:
    return build_batch(records_of(values_of(events), base_offset), base_offset)


def record_set(*batches: bytes, next_offset: int | None = None) -> RecordSet:
    return RecordSet(METADATA_PARTITION, b"".join(batches), next_offset)


def new_shard(position: int = 0) -> ChosenShard:
    return ChosenShard(METADATA_PARTITION, position)


def state_of(shard: Shard, partition: TopicIdPartition | None = None) -> PartitionState:
    assert isinstance(shard, PythonShard)
    key = (tp() if partition is None else partition).key
    return shard._states.get(key) or shard._ended.state(key) or shard._states[key]


def check_report(report: Report) -> Report:
    """Every offset passed is counted once, and every entry is counted where it belongs."""
    tally = report.tally
    assert tally.offsets == report.next_offset - report.from_offset, report
    spans = {Applied: 0, Duplicate: 0, Rejected: 0, Undecodable: 0}
    at = report.from_offset
    for entry in report.entries:
        assert at <= entry.offset < entry.next_offset <= report.next_offset, report
        assert entry.verdict != APPLIED, "an event that was simply applied needs no entry"
        spans[type(entry.verdict)] += entry.next_offset - entry.offset
        at = entry.next_offset
    assert spans[Applied] <= tally.applied, report
    found = (spans[Duplicate], spans[Rejected], spans[Undecodable])
    assert found == (tally.duplicate, tally.rejected, tally.undecodable), report
    return report


def apply(shard: Shard, given: RecordSet, max_events: int | None = None) -> Report:
    """Apply a record set and check that the report accounts for every offset."""
    before = shard.position
    report = check_report(shard.apply(given, max_events))
    assert (report.from_offset, report.next_offset) == (before, shard.position)
    return report


class Tier:
    """One user partition of a shard, with segments by label."""

    def __init__(self, shard: Shard | None = None, partition: TopicIdPartition | None = None):
        self.shard = new_shard() if shard is None else shard
        self.partition = tp() if partition is None else partition
        self._labels: dict[bytes, str] = {}

    def event(self, event: Event | bytes | None) -> Verdict:
        position = self.shard.position
        report = apply(self.shard, record_set(batch_of([event], position)))
        assert report.next_offset == position + 1
        return report.entries[0].verdict if report.entries else APPLIED

    def start(
        self,
        label: str,
        start: int = 0,
        last: int = 99,
        epochs: Mapping[int, int] | None = None,
        **fields: Any,
    ) -> Verdict:
        segment = segment_id(label, self.partition)
        self._labels[segment.uuid] = label
        return self.event(started(segment, start, last, epochs, **fields))

    def finish(self, label: str) -> Verdict:
        return self.event(finished(segment_id(label, self.partition)))

    def copy(self, label: str, *where: Any, **fields: Any) -> Verdict:
        """Start a copy as `start` does, and finish it; return the verdict on the finish."""
        self.start(label, *where, **fields)
        return self.finish(label)

    def begin_delete(self, *labels: str) -> None:
        for label in labels:
            self.event(delete_started(segment_id(label, self.partition)))

    def delete(self, *labels: str) -> None:
        for label in labels:
            self.begin_delete(label)
            self.event(delete_finished(segment_id(label, self.partition)))

    def play(self, *story: Step) -> None:
        """Do the steps; a step of answers by question (`"at 0"`, `"size 0"`) is compared."""
        for step in story:
            if callable(step):
                step(self)
                continue
            for question, expected in step.items():
                name, *numbers = question.split()
                method = partial(getattr(self, name), *map(int, numbers))
                if name in ("at", "next_txn"):
                    assert isinstance(expected, dict), question
                    assert {offset: method(offset) for offset in expected} == expected, question
                else:
                    assert method() == expected, question

    def at(self, epoch: int, offset: int) -> str | None:
        return self._label(self.shard.segment_for(self.partition, epoch, offset))

    def next_txn(self, epoch: int, offset: int) -> str | None:
        return self._label(self.shard.next_segment_with_txn_index(self.partition, epoch, offset))

    def highest(self, epoch: int) -> int | None:
        return self.shard.highest_offset(self.partition, epoch)

    def size(self, epoch: int | None = None) -> int:
        if epoch is None:
            return self.shard.size(self.partition)
        return self.shard.size_of_epoch(self.partition, epoch)

    def listed(self) -> list[str]:
        return self._all(self.shard.segments(self.partition))

    def listed_in(self, epoch: int) -> list[str]:
        return self._all(self.shard.segments_of_epoch(self.partition, epoch))

    def slots(self, epoch: int) -> dict[int, str]:
        view = self.shard.epoch_view(self.partition, epoch)
        assert view is not None
        return {offset: self._labels[uuid] for offset, uuid in view.slots.items()}

    def unreferenced(self, epoch: int) -> set[str]:
        view = self.shard.epoch_view(self.partition, epoch)
        assert view is not None
        return {self._labels[uuid] for uuid in view.unreferenced}

    def segment(self, label: str) -> SegmentMetadata | None:
        return self.shard.segment(segment_id(label, self.partition))

    def image(self) -> bytes | None:
        return self.shard.partition_image(self.partition)

    def _label(self, segment: SegmentMetadata | None) -> str | None:
        return None if segment is None else self._labels[segment.id.uuid]

    def _all(self, segments: list[SegmentMetadata]) -> list[str]:
        return [self._labels[segment.id.uuid] for segment in segments]


Step = methodcaller | dict[str, object]
copy, start, finish = (partial(methodcaller, name) for name in ("copy", "start", "finish"))
begin_delete, delete, put = (
    partial(methodcaller, name) for name in ("begin_delete", "delete", "event")
)
