"""
Heartbeats: beats of a job, its status by them, and the end of an overdue job. The newest counts. A
beating job removes the one before, so a listed one may be gone: it is listed again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec.structs import replace

from rlmm.errors import StoreUnavailable
from spark_tiering.job_registry.job_store import read_record, record_bytes

if TYPE_CHECKING:
    from spark_tiering.job_registry.job_store import JobStore

SKEW_MS: Final = 30_000
"""How far the clocks of two hosts may be apart: a beat is overdue only so long after it expires.
Clocks that are further apart cost a job its topics too early, or hold others up; never more."""
TEXT_MAX: Final = 300
NEVER_MS: Final = 253_402_300_799_000
"""The last second of the year 9999: when what cannot be read expires."""

_LOOKS_MAX: Final = 20


class BeatState(StrEnum):
    RUNNING = "running"
    ENDED = "ended"


class JobStatus(StrEnum):
    ALIVE = "alive"
    OVERDUE = "overdue"
    """Its beats have stopped. It may still be paused: only when it was ended is it over."""
    ENDED = "ended"


Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]
Number = Annotated[int, msgspec.Meta(ge=0, le=NEVER_MS)]


class Heartbeat(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    number: int
    """Numbers count from 1, without a gap."""
    state: BeatState
    expires_at_ms: Number
    """By the clock of *host*; of one that has ended, when that was."""
    host: Text
    pid: Number
    started_ms: Number
    ended_by: Text = ""
    """The job that has ended this one; empty where it ended by itself."""

    def standing(self, now_ms: int) -> JobStatus:
        if self.state is BeatState.ENDED:
            return JobStatus.ENDED
        is_overdue = now_ms > self.expires_at_ms + SKEW_MS
        return JobStatus.OVERDUE if is_overdue else JobStatus.ALIVE

    def is_of(self, other: Heartbeat) -> bool:
        own = (self.host, self.pid, self.started_ms)
        return own == (other.host, other.pid, other.started_ms)


def parse_beat(content: bytes, number: int) -> Heartbeat:
    """Return the beat *number*; an unreadable one is taken for a beat that never expires."""
    beat = read_record(content, Heartbeat)
    if beat is None or beat.number != number:
        return Heartbeat(number, BeatState.RUNNING, NEVER_MS, "unreadable", 0, 0)
    return beat


def read_beat(jobs: JobStore, job_id: str, number: int) -> Heartbeat | None:
    """Return one beat; `None` where it is not, or not any more."""
    content = jobs.read(jobs.beat_key(job_id, number))
    return None if content is None else parse_beat(content, number)


def newest_beat(jobs: JobStore, job_id: str) -> Heartbeat | None:
    """Return the beat that counts; `None` for a job that never beat."""
    folder = jobs.job_key(job_id, "beats/")
    for _ in range(_LOOKS_MAX):
        number = jobs.highest(folder)
        if not number:
            return None
        beat = read_beat(jobs, job_id, number)
        if beat is not None:
            return beat
    msg = f"{folder}: each listed heartbeat is gone when it is read"
    raise StoreUnavailable(msg)


def ended_if_overdue(jobs: JobStore, job_id: str, by: str) -> Heartbeat:
    """Return the newest beat of a job, which is ended where its beats are overdue, or absent."""
    for _ in range(_LOOKS_MAX):
        newest, now_ms = newest_beat(jobs, job_id), jobs.now_ms()
        if newest is not None and newest.standing(now_ms) is not JobStatus.OVERDUE:
            return newest
        before = newest or Heartbeat(0, BeatState.ENDED, now_ms, "unknown", 0, now_ms)
        end = replace(
            before,
            number=before.number + 1,
            state=BeatState.ENDED,
            expires_at_ms=now_ms,
            ended_by=by,
        )
        if not jobs.write_once(jobs.beat_key(job_id, end.number), record_bytes(end)):
            continue
        # The number may have been free because the job has beaten, and removed, a beat of it:
        # then there is a newer one, and the job is alive.
        if jobs.highest(jobs.job_key(job_id, "beats/")) == end.number:
            return end
    msg = f"job {job_id}: its beats change faster than they can be read"
    raise StoreUnavailable(msg)
