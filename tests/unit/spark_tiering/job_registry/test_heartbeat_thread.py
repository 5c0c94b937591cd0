"""The heart of a job and its heartbeats."""

from __future__ import annotations

import threading

import pytest

from rlmm.errors import InvalidArgument, StoreUnavailable
from spark_tiering.job_registry.heartbeat_thread import HeartbeatThread
from spark_tiering.job_registry.heartbeats import BeatState, JobStatus, newest_beat
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier.jobs import TTL_MS, Job, job_id, names

WAIT_S = 30.0


def test_heart_when_it_beats_then_each_beat_takes_the_place_of_the_one_before() -> None:
    """Each heartbeat replaces the previous one with its expiry, and no other object is removed."""
    job = Job(1)
    assert not job.heart.is_valid()
    for number in (1, 2, 3):
        job.clock.now_ms = NOW_MS + number
        assert job.heart.beat()
        newest = newest_beat(job.jobs, job.job_id)
        assert newest is not None
        assert (newest.number, newest.state) == (number, BeatState.RUNNING)
        assert newest.expires_at_ms == NOW_MS + number + TTL_MS
        assert newest.started_ms == NOW_MS
        assert len(names(job.store)) == 1
    job.heart.stop()
    newest = newest_beat(job.jobs, job.job_id)
    assert newest is not None
    assert (newest.state, newest.expires_at_ms) == (BeatState.ENDED, NOW_MS + 3)


def test_heart_when_time_passes_then_its_beat_holds_until_it_expires() -> None:
    """A heartbeat holds to the millisecond by the job's clock, and a later one holds again."""
    job = Job(1).alive()
    assert job.heart.is_valid(NOW_MS + TTL_MS - 1)
    assert not job.heart.is_valid(NOW_MS + TTL_MS)
    job.clock.now_ms = NOW_MS + 10 * TTL_MS
    assert not job.heart.is_valid()
    assert job.heart.beat()
    assert job.heart.is_valid()


@pytest.mark.parametrize("told", ["landed", "lost"])
def test_f126_heart_when_unanswered_then_its_next_beat_follows(told: str) -> None:
    """After an unanswered heartbeat the job continues with the next number in the store."""
    store = MemoryStore()
    job = Job(1, store).alive()
    failures = iter([True])

    def fails(name: str, key: str) -> None:
        if name == "get" and next(failures, False):
            raise StoreUnavailable("away")

    store.before = fails
    store.next_puts.append(told)
    with pytest.raises(StoreUnavailable):
        job.heart.beat()
    assert job.heart.number == 1
    job.clock.now_ms += 1
    assert job.heart.beat()
    assert job.heart.number == (3 if told == "landed" else 2)
    assert job.heart.ended_by == ""
    assert len(names(store)) == 1


def test_heart_when_an_older_beat_cannot_be_removed_then_removed_later() -> None:
    """An older heartbeat that could not be removed is removed with the next beat."""
    store = MemoryStore()
    job = Job(1, store).alive()

    def refuses(name: str, key: str) -> None:
        if name == "delete":
            raise StoreUnavailable("away")

    store.before = refuses
    assert job.heart.beat()
    assert len(names(store)) == 2
    store.before = lambda name, key: None
    assert job.heart.beat()
    assert len(names(store)) == 1


def test_heart_when_another_process_has_its_id_then_does_not_begin() -> None:
    """A heart whose id another process uses does not begin."""
    job = Job(1).alive()
    other = HeartbeatThread(job.jobs, job.job_id, host="host-1", pid=2)
    with pytest.raises(InvalidArgument, match="another process"):
        other.start()


def test_heart_when_started_then_beats_by_itself_until_stopped() -> None:
    """A started heart beats by itself, survives an outage of the store, and stops at its end."""
    store = MemoryStore()
    beaten = threading.Event()
    failed = threading.Event()

    def watch(name: str, key: str) -> None:
        if name == "put" and not failed.is_set() and heart.number:
            failed.set()
            raise StoreUnavailable("away")
        if name == "put" and heart.number >= 3:
            beaten.set()

    heart = HeartbeatThread(Job(1, store).jobs, job_id(1), ttl_ms=3)
    store.before = watch
    with heart:
        assert heart.number >= 1
        assert beaten.wait(WAIT_S)
    assert failed.is_set()
    newest = newest_beat(Job(2, store).jobs, job_id(1))
    assert newest is not None
    assert newest.standing(0) is JobStatus.ENDED
    assert newest.ended_by == ""
    assert not [one for one in threading.enumerate() if one.name == "rlmm-job-heart"]
    number = heart.number
    heart.stop()
    assert heart.number == number


def test_heart_when_its_end_cannot_be_told_then_nothing_is_raised() -> None:
    """An end that cannot be written raises nothing; topics become free by expiry."""
    store = MemoryStore()
    job = Job(1, store).alive()

    def fails(name: str, key: str) -> None:
        raise StoreUnavailable("away")

    store.before = fails
    job.heart.stop()


def test_heart_when_it_was_ended_then_its_thread_is_over() -> None:
    """The thread of an ended heart stops beating and does not write the end again."""
    store = MemoryStore()
    job = Job(1, store)
    heart = HeartbeatThread(job.jobs, job.job_id, ttl_ms=3)
    said = b'{"number":2,"state":"ended","expiresAtMs":1,"host":"h","pid":1,"startedMs":1}'
    store.objects[job.jobs.beat_key(job.job_id, 2)] = said
    heart.start()
    thread = heart._thread
    assert thread is not None
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert heart.ended_by == "h, process 1"
    assert not heart.is_valid()
    heart.stop()
    assert heart.number == 1


def test_heart_when_a_beat_holds_no_time_then_refused() -> None:
    """A heartbeat that expires at once is refused."""
    with pytest.raises(InvalidArgument):
        HeartbeatThread(Job(1).jobs, job_id(1), ttl_ms=2)
