"""
The registry of all partitions below one folder: each is opened once and has one handle.

A caller that comes while a partition is being opened waits for that opening. Openings run in
threads beside each other, descriptors are bounded, and the check points of all partitions are
written here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from rlmm.base.threads import OwnThread, finished
from rlmm.errors import LogDamaged, LogError, LogRecreated, LogUnavailable, NotFound
from rlmm.partition_log.descriptors import Descriptors, open_files_max_by_limit
from rlmm.partition_log.disk import DISK, Disk
from rlmm.partition_log.names import TopicPartition, topic_partition
from rlmm.partition_log.opening import PartitionOpening, open_partition, wrong_topic_id
from rlmm.partition_log.partition import PartitionLog
from rlmm.partition_log.root import RootFolder
from rlmm.partition_log.settings import LogSettings
from rlmm.partition_log.shared_resources import LoadedEntries, LogPlace, LogThreads

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

_LOGS_PER_TURN = 256


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class RegistryStatistics(NamedTuple):
    """The partitions of a registry, and its counts since it was opened."""

    partitions: int
    offline: int
    opened: int
    """Openings that were begun, failed ones included."""
    open_files: int
    note_failures: int
    """How often the check points could not be written; a recovery takes longer."""


class LogRegistry:
    """The partitions of one folder. Lives on one event loop; close it, or leave its `with`."""

    def __init__(
        self,
        root: RootFolder,
        settings: LogSettings,
        disk: Disk,
        now_ms: Callable[[], int],
        *,
        in_core: bool = False,
    ) -> None:
        files_max = settings.open_files_max or open_files_max_by_limit()
        self._root = root
        self._settings = settings
        self._now_ms = now_ms
        self._workers = LogThreads()
        self._descriptors = Descriptors(disk, files_max, read_only=root.is_read_only)
        self._place = LogPlace(
            disk, self._descriptors, LoadedEntries(), settings, root.is_read_only, in_core
        )
        self._logs: dict[TopicPartition, asyncio.Future[PartitionLog]] = {}
        self._recovery_points = dict(root.recovery_points or {})
        self._log_starts = dict(root.log_starts)
        self._opened = self._note_failures = 0
        self._touched: set[TopicPartition] = set()
        self._moved: set[PartitionLog] = set()
        """Whose recovery point or log start has changed since the last note."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._within = copy_context()
        """
        The context of notes: they are for all partitions, and must not inherit a caller's fields.
        """

    @classmethod
    async def open(
        cls,
        root: Path,
        settings: LogSettings | None = None,
        *,
        read_only: bool = False,
        disk: Disk = DISK,
        now_ms: Callable[[], int] = _wall_clock_ms,
        in_core: bool = False,
    ) -> Self:
        """
        Take the folder *root*, making it where there is none. With *in_core* the native core, which
        must be installed, scans files in a recovery.

        Raises `ConfigError` when it is in use, is a folder of something else or cannot be written,
        `LogUnavailable` when its disk is full. A read-only folder is unchanged and may be in use.
        Cancelled, it gives the folder back.
        """
        take = partial(RootFolder.open, Path(root), disk, is_read_only=read_only)
        own = OwnThread("log-root")
        taking = asyncio.get_running_loop().run_in_executor(own, take)
        try:
            await asyncio.wait((taking,))
            await own.over()
        except asyncio.CancelledError:
            own.let_go()
            taking.add_done_callback(_give_back)
            raise
        return cls(taking.result(), settings or LogSettings(), disk, now_ms, in_core=in_core)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def path(self) -> Path:
        return self._root.path

    @property
    def was_clean(self) -> bool:
        return self._root.was_clean

    async def topic_partitions(self) -> list[TopicPartition]:
        return await finished(self._workers.files, self._root.topic_partitions)

    async def partition(self, topic: str, number: int) -> PartitionLog:
        """Return an existing partition's handle; `NotFound`, or `LogDamaged` until reopened."""
        return await self._log_of(topic_partition(topic, number), None, may_create=False)

    async def create(self, topic: str, number: int, topic_id: bytes) -> PartitionLog:
        """Return a partition's handle, making its folder; `LogRecreated` for another topic id."""
        return await self._log_of(topic_partition(topic, number), topic_id, may_create=True)

    async def look_again(self, topic: str, number: int) -> PartitionLog:
        """Return the handle of a partition, once it shows all that its owner has written so far."""
        log = await self.partition(topic, number)
        name = topic_partition(topic, number)
        if log.fault is None:
            await log.look_again(lambda: self._root.noted_log_start(name))
        return log

    async def reopen(self, topic: str, number: int) -> PartitionLog:
        """Recover a partition, if it is offline, as after a crash, and return its handle."""
        name = topic_partition(topic, number)
        opening = self._logs.get(name)
        if opening is not None and opening.done():
            if opening.exception() is None and opening.result().fault is not None:
                opening.result().begin_stop()
                await opening.result().stopped()
                self._recovery_points[name] = opening.result().recovery_point
                self._moved.discard(opening.result())
            if self._root.is_read_only:
                await finished(self._workers.files, self._root.read_notes)
                self._recovery_points = dict(self._root.recovery_points or {})
                self._log_starts = dict(self._root.log_starts)
            if self._logs.get(name) is opening and _is_offline(opening):
                del self._logs[name]
        return await self._log_of(name, None, may_create=False)

    def statistics(self) -> RegistryStatistics:
        offline = sum(_is_offline(opening) for opening in self._logs.values() if opening.done())
        return RegistryStatistics(
            len(self._logs), offline, self._opened, len(self._descriptors), self._note_failures
        )

    # opening

    async def _log_of(
        self, name: TopicPartition, topic_id: bytes | None, *, may_create: bool
    ) -> PartitionLog:
        while True:
            if self._is_closed:
                raise LogUnavailable(f"{self.path} is closed")
            opening = self._logs.get(name)
            is_mine = opening is None
            try:
                if opening is None:
                    opening = self._begin_opening(name, topic_id, may_create=may_create)
                log = await asyncio.shield(opening)
            except NotFound:
                if is_mine or not may_create:
                    raise
            except OSError as error:
                msg = f"{self.path / str(name)} cannot be opened: {error.strerror or error}"
                raise LogUnavailable(msg) from error
            else:
                if topic_id is not None and log.topic_id not in (None, topic_id):
                    raise LogRecreated(wrong_topic_id(log.path, log.topic_id, topic_id))
                return log

    def _begin_opening(
        self, name: TopicPartition, topic_id: bytes | None, *, may_create: bool
    ) -> asyncio.Future[PartitionLog]:
        opening = PartitionOpening(
            name,
            self.path / str(name),
            self._place,
            self._recovery_points.get(name),
            self._log_starts.get(name),
            # The mark is about how the folder was found, not about what happened since.
            is_clean=self._root.was_clean and name not in self._touched,
            now_ms=self._now_ms(),
            topic_id=topic_id,
            may_create=may_create,
        )
        self._opened += 1
        self._touched.add(name)
        loop = asyncio.get_running_loop()
        work = partial(copy_context().run, self._blocking_open, opening)
        future = loop.run_in_executor(self._workers.opening, work)
        self._logs[name] = future
        future.add_done_callback(partial(self._end_opening, name))
        return future

    def _blocking_open(self, opening: PartitionOpening) -> PartitionLog:
        return PartitionLog(open_partition(opening), self._workers, self, self._now_ms)

    def _end_opening(self, name: TopicPartition, opening: asyncio.Future[PartitionLog]) -> None:
        error = opening.exception()
        if error is None:
            log = opening.result()
            if log.recovered.cut_bytes or log.recovered.rebuilt_files:
                level = logging.WARNING if log.recovered.is_loss else logging.INFO
                _log.log(level, "%s: recovered: %s", log.path, log.recovered)
            self.note_soon(log)
            if self._is_closed:
                log.begin_stop()  # who waits for it gets a handle that is closed, too
        elif isinstance(error, LogDamaged):
            _log.error("partition %s is offline: %s", name, error)
        else:
            del self._logs[name]  # the next touch tries again

    # what is noted for all partitions together

    async def checkpoint(self) -> None:
        """Note on disk how far everything is synced, and where logs begin."""
        if self._root.is_read_only:
            return
        try:
            await asyncio.shield(self._begin_note())
        except OSError as error:
            self._note_failures += 1
            raise LogUnavailable(f"{self.path}: check points not written: {error}") from error

    def note_soon(self, log: PartitionLog) -> None:
        self._moved.add(log)
        if self._timer is None and not self._is_closed and not self._root.is_read_only:
            loop = asyncio.get_running_loop()
            due_s = self._settings.checkpoint_interval_ms / 1000
            self._timer = loop.call_later(due_s, self._note_by_timer, context=self._within.copy())

    async def note_now(self, log: PartitionLog) -> None:
        """Called by a partition: its log start has moved, and something will be deleted."""
        self._moved.add(log)
        await self.checkpoint()

    def _begin_note(self) -> asyncio.Future[None]:
        for log in self._moved:
            name = TopicPartition(log.topic, log.number)
            self._recovery_points[name] = log.recovery_point
            if log.log_start > log.first_segment_offset:
                self._log_starts[name] = log.log_start
            else:
                self._log_starts.pop(name, None)
        self._moved.clear()
        note = partial(self._root.note, dict(self._recovery_points), dict(self._log_starts))
        return asyncio.get_running_loop().run_in_executor(self._workers.notes, note)

    def _note_by_timer(self) -> None:
        self._timer = None
        try:
            self._begin_note().add_done_callback(lambda noting: self._end_note(noting.exception()))
        except OSError as error:
            self._end_note(error)

    def _end_note(self, error: BaseException | None) -> None:
        if error is not None:
            self._note_failures += 1
            _log.warning("%s: check points not written, recovery is slower: %s", self.path, error)

    # time

    async def run(self) -> None:
        """Roll, expire and note periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._settings.tick_interval_ms / 1000)
            await self.tick()

    async def tick(self) -> None:
        """
        Look for removed files, roll aged segments, apply retention, note; failures are logged and
        tried again.
        """
        if self._root.is_read_only:
            return
        expires = (self._settings.retention_bytes, self._settings.retention_ms) != (None, None)
        online = [log for log in self._opened_logs() if log.fault is None]
        for number, log in enumerate(online):
            if number % _LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
            try:
                await log.look_for_files()
                await log.roll_when_aged(self._now_ms())
                if expires:
                    await log.delete_expired(self._now_ms())
            except LogError as error:
                _log.warning("%s: not rolled or expired: %s", log.path, error)
        try:
            await self.checkpoint()
        except LogUnavailable as error:
            _log.warning("%s; a recovery takes longer until they are", error)

    def _opened_logs(self) -> list[PartitionLog]:
        return [f.result() for f in self._logs.values() if f.done() and not f.exception()]

    # the end

    async def close(self) -> None:
        """
        Sync everything and leave the mark of a clean end, unless a partition is offline.

        Calls in flight end with `LogUnavailable`, appends that are written with their offsets.
        Idempotent. Cancelled, it leaves no mark, and no handle that could still be written through.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        try:
            if self._logs:
                await asyncio.wait(self._logs.values())
            is_whole = await self._stop_all()
            if not self._root.is_read_only:
                await self._begin_note()
                if is_whole:
                    await finished(self._workers.notes, self._root.mark_clean_end)
        except OSError as error:
            _log.warning("%s: no clean end, the next start recovers: %s", self.path, error)
        finally:
            for log in self._opened_logs():
                log.begin_stop()
            own = OwnThread("log-end")
            try:
                await finished(own, self._blocking_release)
            finally:
                await own.over()

    async def _stop_all(self) -> bool:
        logs = self._opened_logs()
        for log in logs:
            log.begin_stop()
        for log in logs:
            await log.stopped()
        loop = asyncio.get_running_loop()
        sealing = [loop.run_in_executor(self._workers.syncing, log.blocking_seal) for log in logs]
        failed = [each for each in await asyncio.gather(*sealing, return_exceptions=True) if each]
        for error in failed:
            _log.warning("%s: an index was not written: %s", self.path, error)
        self._moved.update(logs)
        if failed or any(map(_is_offline, self._logs.values())):
            return False
        if self._root.was_clean or self._root.is_read_only:
            return True
        # After a crash, what was not opened was not recovered either.
        opened = {TopicPartition(log.topic, log.number) for log in logs}
        return opened.issuperset(await self.topic_partitions())

    def _blocking_release(self) -> None:
        self._workers.close()
        self._descriptors.close()
        self._root.release()


def _give_back(taking: asyncio.Future[RootFolder]) -> None:
    if not taking.cancelled() and taking.exception() is None:
        taking.result().release()


def _is_offline(opening: asyncio.Future[PartitionLog]) -> bool:
    error = opening.exception()
    return error is not None or opening.result().fault is not None
