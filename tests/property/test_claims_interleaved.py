"""Jobs that want one topic, in every order in which their calls can reach the store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from spark_tiering.job_registry.claims import TopicsClaimed
from spark_tiering.job_registry.heartbeats import SKEW_MS, BeatState, newest_beat
from tests.support.stores.interleavings import explore
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier.jobs import ORDERS, TTL_MS, Job, WallClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LATER_MS = NOW_MS + TTL_MS + SKEW_MS + 1


class Story:
    """Jobs that start at once, and perhaps a paused holder that wakes and beats *beats* times."""

    def __init__(
        self, rivals: int, *, is_held: bool, wakes_ms: int | None = None, beats: int = 1
    ) -> None:
        self.objects: dict[str, bytes] = {}
        self._rivals = rivals
        self._wakes_ms = wakes_ms
        self._beats = beats
        self._holder = Job(0, MemoryStore(self.objects)) if is_held else None
        if self._holder is not None:
            assert isinstance(self._holder.alive().claims.acquire([ORDERS]), TopicsClaimed)
        self._jobs: list[Job] = []

    def actors(self, stores: Sequence[MemoryStore]) -> list[Callable[[], object]]:
        for number, store in enumerate(stores[: self._rivals], 1):
            # Their first beats are long written when it becomes interesting.
            job = Job(number, MemoryStore(self.objects), WallClock(LATER_MS)).alive()
            job.jobs._store = store
            self._jobs.append(job)
        acts: list[Callable[[], object]] = [partial(_acquire, job) for job in self._jobs]
        if self._wakes_ms is not None:
            assert self._holder is not None
            self._holder.jobs._store = stores[-1]
            self._holder.clock.now_ms = self._wakes_ms
            acts.append(partial(_beat, self._holder, self._beats))
        return acts

    def judge(self, *, is_over: bool) -> None:
        """Check that at most one job holds the topic, and that a job that lost it never does."""
        if self._holder is not None and any(job.claims.held for job in self._jobs):
            newest = newest_beat(self._holder.jobs, self._holder.job_id)
            assert newest is not None
            assert newest.state is BeatState.ENDED
        told = [job for job in self._jobs if job.claims.held]
        told += [self._holder] if self._holder else []
        for job in told:
            job.clock.now_ms = NOW_MS  # whatever time it is: no clock says that it is over
        holding = [job.job_id for job in told if job.claims.check(ORDERS)]
        assert len(holding) <= 1, holding
        if is_over:
            assert len(holding) == 1


def _acquire(job: Job) -> None:
    job.claims.acquire([ORDERS])


def _beat(job: Job, times: int) -> None:
    for _ in range(times):
        job.heart.beat()


STORIES = {
    "free": partial(Story, 2, is_held=False),
    "free-three": partial(Story, 3, is_held=False),
    "overdue": partial(Story, 2, is_held=True),
    "overdue-and-back": partial(Story, 1, is_held=True, wakes_ms=LATER_MS, beats=3),
    "overdue-and-back-by-a-slow-clock": partial(Story, 1, is_held=True, wakes_ms=NOW_MS, beats=2),
    "overdue-two-and-back": partial(Story, 2, is_held=True, wakes_ms=LATER_MS),
    "overdue-three": partial(Story, 3, is_held=True),
}
LONG = {"overdue-three"}
ACTORS = {"free": 2, "overdue": 2, "overdue-and-back": 2, "overdue-and-back-by-a-slow-clock": 2}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in STORIES]
)
def test_topic_when_wanted_by_several_then_in_every_order_one_has_it(name: str) -> None:
    """At most one job has the topic at any moment, and one has it in the end."""
    found = explore(STORIES[name], ACTORS.get(name, 3))
    assert found > 10
