"""
The heartbeat thread of this process's job: it writes a heartbeat at intervals. Invariant: a number
is passed only when this process's heartbeat lies under it. Where another's does, the job is over.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace

from rlmm.errors import InvalidArgument, RlmmError, StoreUnavailable
from spark_tiering.job_registry.heartbeats import (
    SKEW_MS,
    BeatState,
    Heartbeat,
    read_beat,
)
from spark_tiering.job_registry.job_store import record_bytes

if TYPE_CHECKING:
    from spark_tiering.job_registry.job_store import JobStore

_log = logging.getLogger(__name__)

TTL_MS: Final = 60_000
"""How long a beat holds, though two of three are lost; `SKEW_MS` later topics are free."""
BEATS_IN_TTL: Final = 3
STOP_S: Final = 15.0
"""How long a beat that is under way is waited for at the end."""


class HeartbeatThread:
    def __init__(
        self,
        jobs: JobStore,
        job_id: str,
        *,
        ttl_ms: int = TTL_MS,
        host: str | None = None,
        pid: int | None = None,
    ) -> None:
        """The thread uses *jobs* while it beats; other threads must not."""
        if ttl_ms < BEATS_IN_TTL:
            msg = f"a beat has to hold {BEATS_IN_TTL} ms at least, got {ttl_ms}"
            raise InvalidArgument(msg)
        self.job_id = job_id
        self._jobs = jobs
        self._ttl_ms = ttl_ms
        now_ms = jobs.now_ms()
        self._own = Heartbeat(
            0, BeatState.RUNNING, 0, host or socket.gethostname(),
            os.getpid() if pid is None else pid, now_ms,
        )  # fmt: skip
        self._newest = self._own
        """Replaced whole, since other threads look at it."""
        self._older: list[int] = []
        self._ended_by = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def number(self) -> int:
        """Return the newest beat that is surely written; 0 before the first."""
        return self._newest.number

    @property
    def ended_by(self) -> str:
        """Return the job that has ended this one, as far as this process knows; else empty."""
        return self._ended_by

    def is_valid(self, now_ms: int | None = None) -> bool:
        """Return whether the newest heartbeat holds by this clock; only the store is sure."""
        now_ms = self._jobs.now_ms() if now_ms is None else now_ms
        newest = self._newest
        is_running = newest.state is BeatState.RUNNING and not self._ended_by
        return is_running and newest.number > 0 and now_ms < newest.expires_at_ms

    def beat(self, state: BeatState = BeatState.RUNNING) -> bool:
        """Write a heartbeat, by one thread; False once ended. A call after an error goes on."""
        while not self._ended_by:
            number, now_ms = self.number + 1, self._jobs.now_ms()
            holds_ms = self._ttl_ms if state is BeatState.RUNNING else 0
            beat = replace(self._own, number=number, state=state, expires_at_ms=now_ms + holds_ms)
            key = self._jobs.beat_key(self.job_id, number)
            if self._jobs.write_once(key, record_bytes(beat)):
                self._passed(beat)
                return True
            found = read_beat(self._jobs, self.job_id, number)
            if found is None:
                msg = f"{key}: it was taken, and is gone"
                raise StoreUnavailable(msg)
            if found.is_of(self._own) and not found.ended_by:
                # An earlier call wrote it, and never heard so.
                self._passed(found)
                continue
            self._ended_by = found.ended_by or f"{found.host}, process {found.pid}"
            _log.error("job %s has been ended by %s", self.job_id, self._ended_by)
        return False

    def _passed(self, beat: Heartbeat) -> None:
        if self.number:
            self._older.append(self.number)
        self._newest = beat
        while self._older:
            try:
                self._jobs.remove_beat(self.job_id, self._older[0])
            except RlmmError as error:
                _log.debug("an older beat stays until the next one: %s", error)
                return
            del self._older[0]

    def start(self) -> None:
        """Beat once, and then regularly in a thread. Raise as the store does."""
        if not self.beat():
            msg = f"another process has the job id {self.job_id}: {self._ended_by}"
            raise InvalidArgument(msg)
        self._thread = threading.Thread(target=self._run, name="rlmm-job-heart", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self._ttl_ms / 1_000 / BEATS_IN_TTL):
            try:
                if not self.beat():
                    return
            except RlmmError as error:
                _log.warning("job %s could not say that it is alive: %s", self.job_id, error)

    def stop(self) -> None:
        """Say that the job has ended, so that its topics are free at once. Never raises for it."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                _log.warning("job %s: a beat hangs, and its end is not told", self.job_id)
                return
            self._thread = None
        if not self.number or self._newest.state is BeatState.ENDED:
            return
        try:
            self.beat(BeatState.ENDED)
        except RlmmError as error:
            free_s = (self._ttl_ms + SKEW_MS) // 1_000
            _log.warning(
                "job %s could not say that it has ended: its topics are free in %d s at most: %s",
                self.job_id, free_s, error,
            )  # fmt: skip

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
