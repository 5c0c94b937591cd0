"""Jobs that begin at one moment, on every kind of store: one of them gets the topics."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.job_registry.claims import TopicsBusy, TopicsClaimed
from spark_tiering.job_registry.heartbeats import SKEW_MS, BeatState, newest_beat
from spark_tiering.job_registry.job_store import JobStore
from tests.support.stores.memory_store import NOW_MS
from tests.support.tier.jobs import ORDERS, PAYMENTS, TTL_MS, Job, WallClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_tiering.stores.protocol import ObjectStore
    from tests.support.stores.stores_under_test import Place

JOBS = 4
ROUNDS = 3
WAIT_S = 60


class Told(NamedTuple):
    number: int
    outcome: TopicsClaimed | TopicsBusy
    has_it: bool
    """What it was told when it asked again, after all others had been told."""


def raced(place: Place, prefix: str, numbers: Sequence[int], now_ms: int) -> list[Told]:
    """Start a job beside all the others, return its outcome, and then end most of them."""
    begin = threading.Barrier(len(numbers))
    judged = threading.Barrier(len(numbers))

    def run(number: int) -> Told:
        with place.open() as store:
            job = Job(number, store, WallClock(now_ms), place.is_atomic, prefix).alive()
            begin.wait(WAIT_S)
            outcome = job.claims.acquire([PAYMENTS, ORDERS])
            judged.wait(WAIT_S)
            has_it = job.claims.check(ORDERS)
            assert job.claims.check(PAYMENTS) == has_it
            judged.wait(WAIT_S)
            if not has_it or number % 2:
                job.heart.stop()
            return Told(number, outcome, has_it)

    with ThreadPoolExecutor(len(numbers)) as pool:
        return list(pool.map(run, numbers))


def test_jobs_when_begun_together_then_one_has_the_topics(place: Place, prefix: str) -> None:
    """One of several jobs gets the topics, also after an ended one; others learn its name."""
    for at in range(ROUNDS):
        now_ms = NOW_MS + at * (TTL_MS + SKEW_MS + 1)
        told = raced(place, prefix, range(at * JOBS, (at + 1) * JOBS), now_ms)
        (winner,) = (one for one in told if one.has_it)
        assert isinstance(winner.outcome, TopicsClaimed)
        if place.is_atomic:
            busy = [one.outcome for one in told if isinstance(one.outcome, TopicsBusy)]
            assert {one.host for one in busy} == {f"host-{winner.number}"}
            assert len(busy) == JOBS - 1


def test_job_when_ended_then_keeps_its_last_beat_alone(store: ObjectStore, prefix: str) -> None:
    """Each heartbeat replaces the previous one, on every kind of store."""
    job = Job(1, store, prefix=prefix).alive()
    assert job.heart.beat()
    job.heart.stop()
    newest = newest_beat(JobStore(store, prefix), job.job_id)
    assert newest is not None
    assert (newest.number, newest.state) == (3, BeatState.ENDED)
    folder = job.jobs.job_key(job.job_id, "beats/")
    assert [one.key for one in store.list(folder)] == [job.jobs.beat_key(job.job_id, 3)]
