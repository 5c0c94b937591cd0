"""
Claims of topics: a topic belongs to the job of the claim with the highest generation. Claims are
never removed, so a free generation was never taken. One without a job gives the topic back.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from rlmm.errors import StoreError, StoreUnavailable
from spark_tiering.job_registry.heartbeats import SKEW_MS, BeatState, ended_if_overdue, read_beat
from spark_tiering.job_registry.ids import began_ms
from spark_tiering.job_registry.job_store import read_record, record_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spark_tiering.job_registry.heartbeat_thread import HeartbeatThread
    from spark_tiering.job_registry.job_store import JobStore, JobTopic

_ATTEMPTS_MAX: Final = 20
_NOBODY: Final = ""


class Claim(msgspec.Struct, frozen=True, rename="camel"):
    job_id: str
    """Empty where the topic was given back."""


class TopicsClaimed(NamedTuple):
    topics: tuple[JobTopic, ...]


class TopicsBusy(NamedTuple):
    """Another job has a topic, until *until_ms* if it beats no more; none was taken."""

    topic: JobTopic
    job_id: str
    host: str
    since_ms: int
    until_ms: int


class Claims:
    """The topics of one job. For the one thread that publishes."""

    def __init__(
        self,
        jobs: JobStore,
        heart: HeartbeatThread,
        *,
        is_put_conditional: bool = True,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """*heart* beats already. Without *is_put_conditional* each claim is read back."""
        self._jobs = jobs
        self._heart = heart
        self._is_put_conditional = is_put_conditional
        self._monotonic_s = monotonic_s
        self._held: dict[JobTopic, int] = {}
        self._looked_s: dict[JobTopic, float] = {}
        self._own = record_bytes(Claim(heart.job_id))

    @property
    def held(self) -> tuple[JobTopic, ...]:
        return tuple(self._held)

    def acquire(self, topics: Iterable[JobTopic]) -> TopicsClaimed | TopicsBusy:
        """
        Take all of *topics*, or none; a job with overdue heartbeats is ended. Raises the store's
        errors, and `StoreUnavailable` where this job's heartbeats do not get through.
        """
        wanted = sorted(set(topics), key=lambda topic: (topic.name, topic.topic_id))
        new: list[JobTopic] = []
        for topic in wanted:
            if topic in self._held:
                continue
            outcome = self._acquire(topic)
            if isinstance(outcome, TopicsBusy):
                with suppress(StoreError):  # it is free when this job ends
                    self.release(new)
                return outcome
            self._held[topic] = outcome
            new.append(topic)
        return TopicsClaimed(tuple(wanted))

    def _acquire(self, topic: JobTopic) -> int | TopicsBusy:
        for _ in range(_ATTEMPTS_MAX):
            if not self._heart.is_valid():
                msg = f"job {self._heart.job_id}: its beats do not get through, so it takes nothing"
                raise StoreUnavailable(msg)
            generation = self._jobs.highest(self._jobs.claims_folder(topic))
            holder = self._holder(topic, generation) if generation else _NOBODY
            if holder == self._heart.job_id:
                return generation
            if holder != _NOBODY:
                busy = self._why_busy(topic, holder)
                if busy is not None:
                    return busy
            key = self._jobs.claim_key(topic, generation + 1)
            if self._jobs.write_once(key, self._own) and self._is_written(key):
                return generation + 1
        msg = f"the claims of topic {topic.name} change faster than they can be read"
        raise StoreUnavailable(msg)

    def _holder(self, topic: JobTopic, generation: int) -> str:
        claim = read_record(self._jobs.read(self._jobs.claim_key(topic, generation)), Claim)
        return "unreadable" if claim is None else claim.job_id

    def _why_busy(self, topic: JobTopic, holder: str) -> TopicsBusy | None:
        """End the job *holder* where its beats are overdue; else say why the topic is busy."""
        if began_ms(holder) is None:
            now_ms = self._jobs.now_ms()
            return TopicsBusy(topic, "unreadable", "unknown", now_ms, now_ms)
        beat = ended_if_overdue(self._jobs, holder, self._heart.job_id)
        if beat.state is BeatState.ENDED:
            return None
        return TopicsBusy(topic, holder, beat.host, beat.started_ms, beat.expires_at_ms + SKEW_MS)

    def _is_written(self, key: str) -> bool:
        return self._is_put_conditional or self._jobs.read(key) == self._own

    def check(self, topic: JobTopic, *, younger_ms: int = 0) -> bool:
        """
        Return whether *topic* is still this job's; called before each event that finishes a copy.

        The store is asked, so that a job that slept through its own end learns of it. An answer at
        most *younger_ms* old counts while the newest heartbeat holds: no job with a correct clock
        can have taken the topic. A lost topic stays lost. Raises the store's errors: the state is
        unknown.
        """
        generation = self._held.get(topic)
        if generation is None or not self._heart.is_valid():
            return False
        now_s = self._monotonic_s()
        looked_s = self._looked_s.get(topic)
        if looked_s is not None and (now_s - looked_s) * 1_000 < younger_ms:
            return True
        key = self._jobs.claim_key(topic, generation)
        is_taken = self._jobs.is_there(self._jobs.claim_key(topic, generation + 1))
        if is_taken or not self._is_written(key) or self._is_ended():
            self._held.pop(topic, None)
            return False
        self._looked_s[topic] = now_s
        return self._heart.is_valid()

    def _is_ended(self) -> bool:
        while not self._heart.ended_by:
            # Behind the newest that is known here may be one that was written and not heard of.
            number = self._heart.number + 1
            while (beat := read_beat(self._jobs, self._heart.job_id, number)) is not None:
                if beat.state is BeatState.ENDED:
                    return True
                number += 1
            # A number below the newest may be absent because that has replaced it.
            if self._heart.number < number:
                return False
        return True

    def release(self, topics: Iterable[JobTopic] | None = None) -> None:
        """Give back *topics*, or all. A job that ends need not do so."""
        for topic in self.held if topics is None else tuple(topics):
            generation = self._held.pop(topic, None)
            if generation is not None:
                key = self._jobs.claim_key(topic, generation + 1)
                self._jobs.write_once(key, record_bytes(Claim(_NOBODY)))
