"""A shard beside its twin that never takes the fast path."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlmm.metadata import python_shard
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.report import Tally
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from random import Random

    from rlmm.metadata.report import Report

METADATA_PARTITION = 3
_TURNS_MAX = 40
_SET_ASIDE_MAX = 4


class Twins:
    def __init__(self, rng: Random, counts: Counter[str], *, is_sound: bool) -> None:
        self._rng = rng
        self._is_sound = is_sound
        self._counts = counts
        begin = rng.choice((0, 0, 0, 100))
        self._begin = begin
        self._shard = PythonShard(METADATA_PARTITION, begin)
        self._twin = PythonShard(METADATA_PARTITION, begin) if rng.random() < 0.3 else None

    @property
    def position(self) -> int:
        return self._shard.position

    def apply(self, data: bytes) -> None:
        max_events = self._rng.choice((None, None, 1, 3))
        distance = self._rng.randint(1, 9)
        reports = _apply(self._shard, data, max_events, distance)
        for report in reports:
            self._counts["reports"] += 1
            self._counts["events applied"] += report.tally.applied
        if self._twin is not None:
            # Where nothing is damaged the turns end by themselves, so the twin may take others.
            others = self._rng.choice((None, 1, 2)) if self._is_sound else max_events
            with _without_cut():
                told = _apply(self._twin, data, others, distance)
            assert _merged(told) == _merged(reports), "the cut or the turns change what is told"
            self._counts["reports equal without the cut"] += len(reports)

    def check_state(self) -> None:
        shard = self._shard
        assert shard.validate() == []
        assert shard.statistics().tally.offsets == shard.position - self._begin
        image = shard.image()
        assert PythonShard.from_image(image).image() == image
        if self._twin is not None:
            assert self._twin.image() == image
            self._counts["images equal without the cut"] += 1


def _apply(shard: PythonShard, data: bytes, max_events: int | None, distance: int) -> list[Report]:
    record_set = RecordSet(METADATA_PARTITION, data)
    reports: list[Report] = []
    set_aside = 0
    for _ in range(_TURNS_MAX):
        before = shard.position
        report = shard.apply(record_set, max_events)
        _check_report(shard, report, before)
        reports.append(report)
        if report.complete:
            break
        damage = report.damage
        if damage is None:
            assert shard.position > before, "a turn without an end and without progress"
            continue
        set_aside += 1
        if shard.position == INT64_MAX or set_aside > _SET_ASIDE_MAX:
            break
        before = shard.position
        next_offset = min(shard.position + distance, INT64_MAX)
        report = shard.set_aside(damage, data, next_offset)
        _check_report(shard, report, before)
        reports.append(report)
    return reports


def _merged(reports: list[Report]) -> tuple[object, ...]:
    tally = Tally()
    for report in reports:
        tally.add(report.tally)
    return (
        tally,
        sum(report.redelivered for report in reports),
        [entry for report in reports for entry in report.entries],
        [partition for report in reports for partition in report.deleted],
        reports[-1].next_offset,
    )


def _check_report(shard: PythonShard, report: Report, before: int) -> None:
    assert report.from_offset == before
    assert report.next_offset == shard.position >= before, "the position goes back"
    assert report.tally.offsets == shard.position - before, "offsets are not counted once"
    for entry in report.entries:
        assert before <= entry.offset < entry.next_offset <= shard.position


@contextmanager
def _without_cut() -> Iterator[None]:
    names = vars(python_shard)
    kept = names["cut"]
    names["cut"] = lambda _value: None
    try:
        yield
    finally:
        names["cut"] = kept
