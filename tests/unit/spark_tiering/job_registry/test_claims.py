"""Which job has a topic."""

from __future__ import annotations

import pytest

from rlmm.errors import StoreUnavailable
from spark_tiering.job_registry.claims import Claims, TopicsBusy, TopicsClaimed
from spark_tiering.job_registry.heartbeats import SKEW_MS, ended_if_overdue
from tests.support.stores.memory_store import NOW_MS, MemoryStore
from tests.support.tier.jobs import ORDERS, PAYMENTS, TTL_MS, Job, WallClock, names

LATER_MS = NOW_MS + TTL_MS + SKEW_MS + 1


def test_topic_when_free_then_claimed_and_held() -> None:
    """A free topic is claimed, and a job does not hold a topic that it did not claim."""
    job = Job(1).alive()
    assert job.claims.acquire([PAYMENTS, ORDERS, ORDERS]) == TopicsClaimed((ORDERS, PAYMENTS))
    assert job.claims.check(ORDERS)
    assert job.claims.check(PAYMENTS)
    assert job.jobs.read(job.jobs.claim_key(ORDERS, 1)) == f'{{"jobId":"{job.job_id}"}}\n'.encode()
    assert job.claims.acquire([ORDERS]) == TopicsClaimed((ORDERS,))
    assert Claims(job.jobs, job.heart).acquire([ORDERS]) == TopicsClaimed((ORDERS,))
    assert len(names(job.store, "claims/")) == 2
    assert not Job(2, job.store).alive().claims.check(ORDERS)


def test_topic_when_its_job_is_alive_then_busy_and_nothing_is_taken() -> None:
    """A claim of several topics takes none where one belongs to a living job."""
    job = Job(1).alive()
    job.claims.acquire([PAYMENTS])
    other = Job(2, job.store, WallClock(NOW_MS + TTL_MS + SKEW_MS)).alive()
    told = other.claims.acquire([ORDERS, PAYMENTS])
    until_ms = NOW_MS + TTL_MS + SKEW_MS
    assert told == TopicsBusy(PAYMENTS, job.job_id, "host-1", NOW_MS, until_ms)
    assert other.claims.held == ()
    assert job.claims.acquire([ORDERS]) == TopicsClaimed((ORDERS,))
    assert job.claims.check(PAYMENTS)


def test_topic_when_its_job_has_ended_then_free_at_once() -> None:
    """A finished job's topics are free at once."""
    job = Job(1).alive()
    job.claims.acquire([ORDERS])
    job.heart.stop()
    assert not job.claims.check(ORDERS)
    other = Job(2, job.store).alive()
    assert isinstance(other.claims.acquire([ORDERS]), TopicsClaimed)
    assert other.claims.check(ORDERS)


def test_topic_when_given_back_then_free_while_its_job_goes_on() -> None:
    """A job that gives one topic back keeps its other topics."""
    job = Job(1).alive()
    job.claims.acquire([ORDERS, PAYMENTS])
    job.claims.release([ORDERS])
    assert not job.claims.check(ORDERS)
    assert job.claims.check(PAYMENTS)
    assert isinstance(Job(2, job.store).alive().claims.acquire([ORDERS]), TopicsClaimed)
    job.claims.release()
    assert job.claims.held == ()


def test_f105_job_when_it_was_paused_and_taken_over_then_hears_so_whatever_its_clock_says() -> None:
    """A job that was taken over learns it from the store, whatever its clock says."""
    job = Job(1).alive()
    job.claims.acquire([ORDERS, PAYMENTS])
    assert job.claims.check(PAYMENTS)
    other = Job(2, job.store, WallClock(LATER_MS)).alive()
    assert other.claims.acquire([ORDERS]) == TopicsClaimed((ORDERS,))
    assert job.heart.is_valid()
    assert not job.claims.check(PAYMENTS)
    assert not job.claims.check(ORDERS)
    assert other.claims.check(ORDERS)
    assert not job.heart.beat()


def test_job_when_only_its_end_is_written_then_has_nothing_any_more() -> None:
    """A topic has no holder between the end of its old job and the new claim."""
    store = MemoryStore()
    job = Job(1, MemoryStore(store.objects)).alive()
    job.claims.acquire([ORDERS])

    def dies(name: str, key: str) -> None:
        if name == "put" and "/claims/" in key:
            raise StoreUnavailable("away")

    other = Job(2, store, WallClock(LATER_MS)).alive()
    store.before = dies
    with pytest.raises(StoreUnavailable):
        other.claims.acquire([ORDERS])
    assert job.heart.is_valid()
    assert not job.claims.check(ORDERS)
    assert job.claims.held == ()


def test_check_when_the_heart_beats_meanwhile_then_not_mistaken_for_an_end() -> None:
    """A heart that finds its own late or replaced heartbeats does not take them for its end."""
    store = MemoryStore()
    job = Job(1, MemoryStore(store.objects)).alive()
    claims = Claims(Job(1, store).jobs, job.heart)
    claims.acquire([ORDERS])

    def beats(name: str, key: str) -> None:
        if name == "get" and job.heart.number < 5:
            assert job.heart.beat()

    store.before = beats
    assert claims.check(ORDERS)
    assert job.heart.number == 5
    unheard = job.jobs.beat_key(job.job_id, 6)
    store.objects[unheard] = store.objects[job.jobs.beat_key(job.job_id, 5)].replace(
        b'"number":5', b'"number":6'
    )
    assert claims.check(ORDERS)
    store.objects[job.jobs.beat_key(job.job_id, 7)] = store.objects[unheard].replace(
        b'"number":6,"state":"running"', b'"number":7,"state":"ended"'
    )
    assert not claims.check(ORDERS)


def test_check_when_the_heart_is_ended_while_it_beats_then_no() -> None:
    """A check of an ended job fails, because the newest heartbeat counts."""
    store = MemoryStore()
    job = Job(1, MemoryStore(store.objects)).alive()
    claims = Claims(Job(1, store).jobs, job.heart)
    claims.acquire([ORDERS])

    def beats_and_is_ended(name: str, key: str) -> None:
        if name == "get" and job.heart.number < 3:
            assert job.heart.beat()
            assert job.heart.beat()
            later = WallClock(LATER_MS)
            other = Job(2, MemoryStore(store.objects), later)
            ended_if_overdue(other.jobs, job.job_id, other.job_id)

    store.before = beats_and_is_ended
    assert not claims.check(ORDERS)
    assert job.heart.is_valid()


def test_check_when_a_later_claim_is_there_then_no() -> None:
    """A check fails once a later claim exists, whatever the heartbeats say."""
    job = Job(1).alive()
    job.claims.acquire([ORDERS, PAYMENTS])
    job.store.objects[job.jobs.claim_key(ORDERS, 2)] = b"{}"  # type: ignore[attr-defined]
    assert not job.claims.check(ORDERS)
    assert job.claims.check(PAYMENTS)


def test_check_when_the_beat_has_expired_then_no_until_the_next() -> None:
    """A check fails once the own heartbeat expired, and succeeds after the next one."""
    job = Job(1).alive()
    job.claims.acquire([ORDERS])
    job.clock.now_ms = NOW_MS + TTL_MS
    assert not job.claims.check(ORDERS)
    assert job.heart.beat()
    assert job.claims.check(ORDERS)


def test_check_when_an_answer_may_be_older_then_the_store_is_asked_once() -> None:
    """A check may use a recent answer, never beyond the job's own heartbeat."""
    store = MemoryStore()
    job = Job(1, store).alive()
    seconds = [100.0]
    claims = Claims(job.jobs, job.heart, monotonic_s=lambda: seconds[0])
    claims.acquire([ORDERS])
    assert claims.check(ORDERS, younger_ms=500)
    asked = len(store.calls)
    seconds[0] += 0.4
    assert claims.check(ORDERS, younger_ms=500)
    assert len(store.calls) == asked
    seconds[0] += 0.2
    assert claims.check(ORDERS, younger_ms=500)
    assert len(store.calls) == asked + 2
    job.clock.now_ms = NOW_MS + TTL_MS
    assert not claims.check(ORDERS, younger_ms=500)


def test_f126_claim_when_its_outcome_is_unknown_then_what_lies_there_decides() -> None:
    """After a claim of unknown outcome, a claim with the job's name is its own."""
    store = MemoryStore()
    job = Job(1, store).alive()
    store.next_puts.extend(["landed", "lost"])
    assert isinstance(job.claims.acquire([ORDERS, PAYMENTS]), TopicsClaimed)
    assert len(names(store, "claims/")) == 2


@pytest.mark.parametrize(
    "content", [b"", b"nothing", b'{"jobId":5}', b'{"jobId":"../x"}', b"{}", b"[]"]
)
def test_topic_when_its_claim_cannot_be_read_then_busy(content: bytes) -> None:
    """A topic whose claim cannot be read is busy, and an operator has to look."""
    job = Job(1).alive()
    job.store.objects[job.jobs.claim_key(ORDERS, 5)] = content  # type: ignore[attr-defined]
    told = job.claims.acquire([ORDERS])
    assert isinstance(told, TopicsBusy)
    assert told.job_id == "unreadable"


def test_job_when_its_beats_do_not_get_through_then_takes_nothing() -> None:
    """A job whose heartbeats cannot be written takes no topic."""
    job = Job(1)
    with pytest.raises(StoreUnavailable, match="beats"):
        job.claims.acquire([ORDERS])
    assert names(job.store) == []


def test_claim_when_the_store_ignores_conditions_then_read_back() -> None:
    """A job reads its claim back, because a store may ignore conditions."""
    job = Job(1, is_put_conditional=False).alive()
    job.claims.acquire([ORDERS])
    assert job.claims.check(ORDERS)
    job.store.objects[job.jobs.claim_key(ORDERS, 1)] = b'{"jobId":"another"}\n'  # type: ignore[attr-defined]
    assert not job.claims.check(ORDERS)
