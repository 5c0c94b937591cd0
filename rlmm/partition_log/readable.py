"""
The readable side of a partition: readers read, look up a time and follow the end, until it closes.

Readers see [log_start, next_offset), which moves only when an append was acknowledged; that wakes a
reader that follows the end, and no reader polls. Lives on one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.threads import finished
from rlmm.errors import LogDamaged, LogTruncated, LogUnavailable
from rlmm.partition_log.log_lock import LogLock
from rlmm.partition_log.observation import FolderWatch
from rlmm.partition_log.reading import INLINE_BYTES_MAX, OffsetAtTime, PartitionReader
from rlmm.partition_log.segment import IndexWrong, Segment
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.partition_log.observation import FolderNews
    from rlmm.partition_log.recovery_rules import LogRecoveryResult
    from rlmm.partition_log.shared_resources import LogThreads
    from rlmm.partition_log.store import LogPosition, PartitionStore

_log = logging.getLogger(__name__)

_ATTEMPTS = 3
"""How often a read starts anew after an index was built anew: one for each index, and one more."""

Found = TypeVar("Found")


class LogReads:
    """The readers' half of a partition."""

    def __init__(self, store: PartitionStore, workers: LogThreads) -> None:
        self._store = store
        self._workers = workers
        self._reader = PartitionReader(store)
        self._visible = store.end()
        self._followers: dict[asyncio.Future[None], int] = {}
        self._fault: str | None = None
        self._is_closed = False
        self._watch = FolderWatch(store) if store.place.is_read_only else None
        self.is_replaced = False
        """Whether the partition is offline because its owner cut the log, or made it anew."""
        self._writing = LogLock()
        """Held by the task that changes the log, one at a time."""

    def __repr__(self) -> str:
        return f"PartitionLog({self._store.name}, offsets {self.log_start}-{self.next_offset})"

    @property
    def topic(self) -> str:
        return self._store.name.topic

    @property
    def number(self) -> int:
        return self._store.name.number

    @property
    def topic_id(self) -> bytes | None:
        """Id of the topic, 16 bytes; None when the folder names none."""
        return self._store.topic_id

    @property
    def path(self) -> Path:
        return self._store.folder

    @property
    def first_segment_offset(self) -> int:
        """Return where the first segment begins, at *log_start* or below."""
        return self._store.segments[0].base_offset

    @property
    def log_start(self) -> int:
        return self._store.log_start

    @property
    def next_offset(self) -> int:
        return self._visible.next_offset

    @property
    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of leader epoch and the first offset written under it."""
        return self._store.epochs.entries

    @property
    def fault(self) -> str | None:
        """Return why the partition is offline; None while it is not."""
        return self._fault

    @property
    def recovered(self) -> LogRecoveryResult:
        return self._store.recovered

    # reading

    async def read(self, position: int, *, bytes_max: int = INLINE_BYTES_MAX) -> RecordSet | None:
        """
        Read whole batches from the one that holds *position* on; None at the end of the log.

        At least one batch, however large; the first may begin below *position*. Raises
        `LogTruncated` for a position outside [log_start, next_offset], `LogDamaged` when the stored
        bytes have changed, `LogUnavailable` when it cannot be read now.
        """
        self._require_readable()
        self._require_within(position)
        visible = self._visible
        if position == visible.next_offset:
            return None
        content, next_offset = await self._look(
            partial(self._reader.read, position, bytes_max, visible),
            lambda: self._reader.is_at_hand(position, bytes_max, visible),
            position,
        )
        return RecordSet(self.number, content, next_offset)

    async def offset_for_time(self, timestamp_ms: int) -> OffsetAtTime | None:
        """Find the first record of *timestamp_ms* or later; None when there is none."""
        self._require_readable()
        log_start, visible = self.log_start, self._visible
        find = partial(self._reader.offset_for_time, timestamp_ms, log_start, visible)
        return await self._look(find, lambda: False, log_start)

    async def wait_past(self, position: int, timeout_s: float | None) -> bool:
        """Wait until *next_offset* is above *position*; False at the timeout; None waits on."""
        if self.next_offset > position:
            return True
        self._require_readable()
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers[follower] = position
        try:
            async with asyncio.timeout(timeout_s):
                await follower
        except TimeoutError:
            return self.next_offset > position
        finally:
            del self._followers[follower]
        if self.next_offset <= position:
            self._require_readable()
        return True

    async def _look(
        self, find: Callable[[], Found], is_at_hand: Callable[[], bool], position: int
    ) -> Found:
        loop = asyncio.get_running_loop()
        for _ in range(_ATTEMPTS):
            try:
                if is_at_hand():
                    return find()
                return await loop.run_in_executor(self._workers.files, find)
            except IndexWrong as wrong:
                _log.warning("%s: built anew", wrong)
                await self._rebuild_index(wrong.segment)
            except LogDamaged as error:
                self._go_offline(str(error))
                raise
            except OSError as error:
                self._require_within(position)  # the segment may have been deleted meanwhile
                if isinstance(error, FileNotFoundError) and not self._store.place.is_read_only:
                    self._go_offline(f"{error.filename} was removed or moved while in use")
                    self._require_readable()
                msg = f"{self._store.folder}: no read at offset {position}: {error}"
                raise LogUnavailable(msg) from error
        msg = f"{self._store.folder}: batches at offset {position} cannot be found"
        self._go_offline(msg)
        raise LogDamaged(msg)

    async def _rebuild_index(self, segment: Segment) -> None:
        store, pool = self._store, self._workers.files
        async with self._writing:
            try:
                segment.index = await finished(pool, partial(self._reader.scanned_index, segment))
                if segment is not store.active and not store.place.is_read_only:
                    await finished(pool, segment.write_index)
                    segment.use_stored_index()
            except LogDamaged as error:
                self._go_offline(str(error))
                raise
            except OSError as error:
                raise LogUnavailable(f"{segment.path}: index not built anew: {error}") from error

    async def look_again(self, noted_log_start: Callable[[], int]) -> None:
        """
        Show what the owner of a folder opened read-only has written since. Where the log was cut or
        replaced, the partition is offline afterwards: reopen it.
        """
        assert self._watch is not None, self._store.folder
        look = partial(self._watch.blocking_look, noted_log_start)
        async with self._writing:
            self._require_readable()
            try:  # a caller that leaves must not take the news along: no later look finds them
                await self._writing.do(self._workers.files, look, self._take_news)
            except OSError as error:
                msg = f"{self._store.folder}: what was written since is not known: {error}"
                raise LogUnavailable(msg) from error

    def _take_news(self, looking: asyncio.Future[FolderNews]) -> None:
        if looking.exception() is not None:
            return
        news = looking.result()
        if news.fault is not None:
            self.is_replaced = news.is_replaced
            self._go_offline(news.fault)
            return
        self._store.take_news(news)
        self._show(self._store.end())

    # what readers see

    def _show(self, end: LogPosition) -> None:
        """Let readers see everything below *end*, and wake readers that wait for it."""
        self._visible = end
        for follower, position in self._followers.items():
            if position < end.next_offset and not follower.done():
                follower.set_result(None)

    def _go_offline(self, fault: str) -> None:
        """Refuse everything from now on, naming *fault*, until the partition is reopened."""
        if self._fault is not None:
            return
        self._fault = fault
        _log.error(
            "partition %s is offline at offset %d: %s",
            self._store.name,
            self.next_offset,
            fault,
            extra={"offset": self.next_offset},
        )
        self._wake_all()

    def _wake_all(self) -> None:
        for follower in self._followers:
            if not follower.done():
                follower.set_result(None)

    def _require_readable(self) -> None:
        if self._fault is not None:
            raise LogDamaged(f"partition {self._store.name} is offline: {self._fault}")
        if self._is_closed:
            raise LogUnavailable(f"partition {self._store.name} is closed")

    def _require_within(self, position: int) -> None:
        log_start, next_offset = self.log_start, self.next_offset
        if not log_start <= position <= next_offset:
            msg = f"{self._store.name}: no offset {position} in [{log_start}, {next_offset}]"
            raise LogTruncated(msg, log_start, next_offset)
