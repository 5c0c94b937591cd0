"""Pausing: how often units ask for the mark, and a store that fails."""

from __future__ import annotations

import pytest

from rlmm.errors import StoreUnavailable
from spark_tiering.executor import stop_mark
from spark_tiering.executor.limited_io import UnitEnd, UnitLimits
from spark_tiering.executor.stop_mark import UNMARKED_AGE_S, require_not_paused
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.executor.throttle import PaceLimits, Throttle
from tests.support.stores.memory_store import MemoryStore

KEY = "rlmm-jobs/jobs/one/pause"


class Place:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stop_mark, "_unmarked", {})
        self.now_s = 100.0
        self.asked: list[str] = []
        self.slept: list[float] = []
        self.store = MemoryStore()
        self.store.before = self._hear
        self.watch = self.watch_at(PaceLimits())

    def watch_at(self, pace: PaceLimits) -> UnitLimits:
        return UnitLimits(60.0, Throttle(pace, lambda: self.now_s, self.slept.append))

    def _hear(self, name: str, key: str) -> None:
        self.asked.append(key)

    def look(self, key: str = KEY) -> None:
        require_not_paused(key, self.store, self.watch, lambda: self.now_s)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(monkeypatch)


def test_mark_when_it_is_there_then_no_unit_begins(place: Place) -> None:
    """A unit that finds the job's mark does not begin; other jobs go on."""
    place.look()
    place.store.objects[KEY] = b"{}"
    place.look()
    place.now_s += UNMARKED_AGE_S
    for _ in range(2):
        with pytest.raises(UnitEnd) as ended:
            place.look()
        assert ended.value.outcome is UnitOutcome.STOPPED
    place.look("rlmm-jobs/jobs/another/pause")


def test_mark_when_many_small_units_begin_then_is_asked_for_once_a_second(place: Place) -> None:
    """Units of one process ask for the mark once a second, within their rate limit."""
    place.watch = place.watch_at(PaceLimits(requests_per_s=0.5))
    for _ in range(10):
        place.look()
        place.now_s += UNMARKED_AGE_S / 4
    assert place.asked == [KEY] * 3
    assert place.watch.requests == 0
    assert place.slept
    place.look("")
    assert len(place.asked) == 3


def test_mark_when_the_store_does_not_answer_then_the_unit_goes_on(place: Place) -> None:
    """A store that does not answer about the mark does not stop a unit."""

    def fail(name: str, key: str) -> None:
        place.asked.append(key)
        raise StoreUnavailable("away")

    place.store.before = fail
    place.look()
    place.look()
    assert len(place.asked) == 2


def test_marks_when_there_are_many_jobs_then_not_all_are_remembered(place: Place) -> None:
    """A worker forgets the marks of old jobs."""
    for number in range(1_000):
        place.look(f"{KEY}-{number}")
    assert len(stop_mark._unmarked) <= stop_mark.JOBS_KEPT
