"""How a job stands by its beats, and the end of one that is overdue."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from rlmm.errors import StoreUnavailable
from spark_tiering.job_registry.heartbeats import (
    SKEW_MS,
    BeatState,
    Heartbeat,
    JobStatus,
    ended_if_overdue,
    newest_beat,
    parse_beat,
)
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier.jobs import TTL_MS, Job, WallClock, job_id, names

BEAT = Heartbeat(3, BeatState.RUNNING, NOW_MS, "a host", 77, NOW_MS - 5)
BY = job_id(99)


@pytest.mark.parametrize(
    ("later_ms", "standing"),
    [(0, JobStatus.ALIVE), (SKEW_MS, JobStatus.ALIVE), (SKEW_MS + 1, JobStatus.OVERDUE)],
)
def test_beat_when_expired_is_overdue_after_allowance(later_ms: int, standing: JobStatus) -> None:
    """A heartbeat is overdue only after its expiry plus the allowance for clocks."""
    assert BEAT.standing(NOW_MS + later_ms) is standing
    assert replace(BEAT, state=BeatState.ENDED).standing(0) is JobStatus.ENDED


FIELDS = {
    "number": 3, "state": "ended", "expiresAtMs": 1, "host": "h", "pid": 1, "startedMs": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    "changed", [{"number": 4}, {"state": "paused"}, {"expiresAtMs": 10**30}, {"host": "h" * 1_000}]
)
def test_beat_when_it_cannot_be_read_then_never_expires(changed: dict[str, object]) -> None:
    """A heartbeat that cannot be read never expires, as its job may be a newer version's."""
    assert parse_beat(json.dumps(FIELDS).encode(), 3).state is BeatState.ENDED
    for content in (json.dumps(FIELDS | changed).encode(), b"", b"\xff"):
        assert parse_beat(content, 3).standing(NOW_MS + 10**12) is JobStatus.ALIVE


def test_newest_beat_when_replaced_between_listing_and_reading_then_looked_for_again() -> None:
    """The newest heartbeat is looked up again when it is replaced between listing and reading."""
    store = MemoryStore()
    job = Job(1, MemoryStore(store.objects)).alive()

    def beats_meanwhile(name: str, key: str) -> None:
        if name == "get" and job.heart.number == 1:
            assert job.heart.beat()

    store.before = beats_meanwhile
    found = newest_beat(Job(2, store).jobs, job.job_id)
    assert found is not None
    assert found.number == 2


def test_newest_beat_when_what_is_listed_is_never_there_then_raised() -> None:
    """Listed objects that the store does not have end in an error after bounded tries."""
    store = MemoryStore()
    job = Job(1, store).alive()
    listed = dict(store.objects)

    def hides(name: str, key: str) -> None:
        store.objects.clear()
        if name == "list":
            store.objects.update(listed)

    store.before = hides
    with pytest.raises(StoreUnavailable):
        newest_beat(job.jobs, job.job_id)


def test_job_when_its_beats_are_not_overdue_then_is_not_ended() -> None:
    """A job whose heartbeats are not overdue is not ended."""
    job = Job(1).alive()
    other = Job(2, job.store, WallClock(NOW_MS + TTL_MS + SKEW_MS))
    assert ended_if_overdue(other.jobs, job.job_id, other.job_id).state is BeatState.RUNNING
    assert job.heart.beat()


def test_job_when_its_beats_are_overdue_then_is_over_for_good() -> None:
    """An overdue job's next heartbeat is taken, and it learns by which job."""
    job = Job(1).alive()
    other = Job(2, job.store, WallClock(NOW_MS + TTL_MS + SKEW_MS + 1))
    ended = ended_if_overdue(other.jobs, job.job_id, other.job_id)
    assert (ended.number, ended.state, ended.ended_by) == (2, BeatState.ENDED, other.job_id)
    assert (ended.host, ended.pid) == ("host-1", 1)
    assert ended_if_overdue(other.jobs, job.job_id, BY) == ended
    assert not job.heart.beat()
    assert job.heart.ended_by == other.job_id
    assert not job.heart.is_valid()
    assert len(names(job.store, f"jobs/{job.job_id}/")) == 2


def test_job_when_it_beats_just_before_it_would_be_ended_then_stays_alive() -> None:
    """A job that beats just before its end would be written stays alive."""
    store = MemoryStore()
    job = Job(1, MemoryStore(store.objects)).alive()
    other = Job(2, store, WallClock(NOW_MS + TTL_MS + SKEW_MS + 1))

    def wakes(name: str, key: str) -> None:
        if name == "put" and job.heart.number < 4:
            job.clock.now_ms = other.clock.now_ms
            for _ in range(3):  # so that the number which was free then is free again
                assert job.heart.beat()

    store.before = wakes
    found = ended_if_overdue(other.jobs, job.job_id, other.job_id)
    assert (found.number, found.state) == (4, BeatState.RUNNING)
    assert job.heart.beat()


def test_job_when_it_never_beat_then_can_be_ended() -> None:
    """A job that never wrote a heartbeat can be ended, as it holds no topic."""
    other = Job(2).alive()
    assert ended_if_overdue(other.jobs, job_id(1), other.job_id).number == 1
    assert not Job(1, other.store).heart.beat()
