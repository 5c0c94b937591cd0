"""
The one handle of a partition: append, sync, roll, expire; reading is in `readable`.

Appends pass one lock, so offsets are given in the order of writing. Short ones are written on the
loop, to the kernel's memory; everything that can take long goes to a thread.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rlmm.base.threads import finished
from rlmm.errors import AppendRefused, AppendUncertain, InvalidArgument, LogDamaged, LogUnavailable
from rlmm.partition_log.epochs import EpochStarts
from rlmm.partition_log.group_commit import GroupCommit
from rlmm.partition_log.incoming import check_batches
from rlmm.partition_log.readable import LogReads
from rlmm.partition_log.reading import INLINE_BYTES_MAX
from rlmm.partition_log.settings import SyncPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.partition_log.incoming import IncomingBatch
    from rlmm.partition_log.registry import LogRegistry
    from rlmm.partition_log.segment import Segment
    from rlmm.partition_log.shared_resources import LogThreads
    from rlmm.partition_log.store import PartitionStore, StoredAppend, SyncWork


class AppendedRange(NamedTuple):
    """The offsets [base_offset, next_offset) that an append got."""

    base_offset: int
    next_offset: int


class PartitionStatistics(NamedTuple):
    """The state of one partition, and its counts since it was opened."""

    log_start: int
    next_offset: int
    recovery_point: int
    segments: int
    size_bytes: int
    appends: int
    syncs: int
    fault: str | None


class PartitionLog(LogReads):
    """Handles one partition. Only the registry makes it."""

    def __init__(
        self,
        store: PartitionStore,
        workers: LogThreads,
        keeper: LogRegistry,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(store, workers)
        self._settings = store.place.settings
        self._policy = self._settings.sync
        self._keeper = keeper
        self._now_ms = now_ms
        self._commit = GroupCommit(store, workers.syncing, self)
        self._append_count = 0

    def statistics(self) -> PartitionStatistics:
        store = self._store
        return PartitionStatistics(
            self.log_start,
            self.next_offset,
            store.recovery_point,
            len(store.segments),
            sum(segment.size for segment in store.segments),
            self._append_count,
            self._commit.sync_count,
            self._fault,
        )

    # appending

    async def append(
        self,
        record_set: bytes,
        *,
        leader_epoch: int = 0,
        verify_crc: bool = True,
        timeout_s: float | None = None,
    ) -> AppendedRange:
        """
        Store whole batches at the log's end and return their offsets, once acknowledged.

        Raises `InvalidArgument` for unsound batches, holes, or a leader epoch below the latest;
        `AppendRefused` where surely nothing was stored, `AppendUncertain` where it was written and
        not acknowledged, could not be cut back, or was cancelled. However slow the disk, the call
        ends in time. Without *verify_crc* the caller answers for the CRCs.
        """
        is_written = False
        try:
            async with asyncio.timeout(timeout_s):
                async with self._writing:  # first of all: calls keep their order
                    self._require_writable()
                    batches = await self._checked(record_set, verify_crc=verify_crc)
                    await self._make_room(record_set, batches)
                    await self._enter_epoch(leader_epoch)
                    append = self._store.plan_append(record_set, batches, leader_epoch)
                    is_written = True
                    await self._write(append)
                if self._policy is SyncPolicy.EACH_GROUP:
                    await self._commit.wait(append.placed.next_offset)
        except TimeoutError as error:
            msg = f"{self._store.name}: append not acknowledged within {timeout_s} s"
            raise (AppendUncertain if is_written else AppendRefused)(msg) from error
        return AppendedRange(append.base_offset, append.placed.next_offset)

    async def _checked(self, record_set: bytes, *, verify_crc: bool) -> list[IncomingBatch]:
        check = partial(
            check_batches,
            record_set,
            batch_bytes_max=self._settings.batch_bytes_max,
            verify_crc=verify_crc,
        )
        if len(record_set) <= INLINE_BYTES_MAX:
            return check()
        return await finished(self._workers.files, check)

    async def _make_room(self, record_set: bytes, batches: list[IncomingBatch]) -> None:
        offset_count = sum(batch.offset_count for batch in batches)
        if self._store.needs_roll(len(record_set), offset_count, self._now_ms()):
            await self._roll()
        elif self._store.active.is_index_stored:
            await self._unstore_index()

    async def _unstore_index(self) -> None:
        active = self._store.active

        def take(removing: asyncio.Future[None]) -> None:
            del removing
            self._store.names_are_new = True

        try:
            await self._writing.do(self._workers.files, active.remove_index_files, take)
        except OSError as error:
            msg = f"{active.path}: index not removed, so nothing was written: {error}"
            raise AppendRefused(msg) from error

    async def _enter_epoch(self, leader_epoch: int) -> None:
        store = self._store
        if leader_epoch == store.epochs.latest:
            return
        if leader_epoch < store.epochs.latest or leader_epoch < 0:
            latest = store.epochs.latest
            msg = f"{store.name}: leader epoch {leader_epoch}, the latest is {latest}"
            raise InvalidArgument(msg)
        epochs = EpochStarts(store.epochs.entries)
        epochs.assign(leader_epoch, store.next_offset)

        def take(saved: asyncio.Future[None]) -> None:
            if saved.exception() is None:
                store.epochs = epochs

        try:
            save = partial(store.blocking_save_epochs, epochs)
            await self._writing.do(self._workers.files, save, take)
        except OSError as error:
            msg = f"{store.folder}: leader epoch {leader_epoch} not noted, nothing written: {error}"
            raise AppendRefused(msg) from error

    async def _write(self, append: StoredAppend) -> None:
        try:
            if append.size > INLINE_BYTES_MAX:
                write = partial(self._store.blocking_write, append)
                await self._writing.do(self._workers.files, write, partial(self._written, append))
                return
            self._store.blocking_write(append)
        except LogDamaged as error:
            # Its bytes may all be there: a recovery that finds them whole keeps them.
            self._go_offline(str(error))
            msg = f"{self._store.name}: an append at offset {append.base_offset}: {error}"
            raise AppendUncertain(msg) from error
        except OSError as error:  # no thread could be started
            msg = f"{self._store.name}: nothing written at offset {append.base_offset}: {error}"
            raise AppendRefused(msg) from error
        self._take(append)

    def _written(self, append: StoredAppend, writing: asyncio.Future[None]) -> None:
        error = writing.exception()
        if error is None:
            self._take(append)
        elif isinstance(error, LogDamaged):
            self._go_offline(str(error))  # also when nobody waits for the answer any more

    def _take(self, append: StoredAppend) -> None:
        self._append_count += 1
        self._store.take_append(append)
        if self._policy is SyncPolicy.EACH_GROUP:
            self._commit.start_soon()
            return
        self._show(self._store.end())
        if self._policy is SyncPolicy.INTERVAL:
            self._commit.start_within(self._settings.sync_interval_ms)

    async def sync(self) -> None:
        self._require_writable()
        self._commit.start()
        await self._commit.wait(self._store.next_offset)

    def synced(self, work: SyncWork) -> None:
        """Called by the group commit: everything below the end of *work* is safe."""
        if self._policy is SyncPolicy.EACH_GROUP:
            self._show(work.end)
        self._keeper.note_soon(self)

    def sync_failed(self, error: BaseException) -> None:
        """Note a failed sync: written bytes may be lost, and no later sync can tell."""
        self._go_offline(f"{self._store.folder}: sync failed: {error}")

    # rolling and deleting

    async def roll(self) -> bool:
        """Close the active segment, unless it is empty, and go on in a new one."""
        async with self._writing:
            self._require_writable()
            if self._store.active.size == 0:
                return False
            await self._roll()
            return True

    async def roll_when_aged(self, now_ms: int) -> bool:
        """Close the active segment if its age asks for it, also when nothing is appended."""
        return self._store.is_aged(now_ms) and await self.roll()

    async def delete_expired(self, now_ms: int) -> int:
        """Delete the closed segments that retention does not keep, and count them."""
        async with self._writing:
            self._require_writable()
            return await self._drop_expired(now_ms)

    async def advance_log_start(self, offset: int) -> None:
        """Let the log begin at *offset*, for good; whole segments below it are deleted."""
        async with self._writing:
            self._require_writable()
            if not self.log_start <= offset <= self.next_offset:
                raise InvalidArgument(f"{self._store.name}: no log start {offset} in {self!r}")
            self._store.log_start = offset
            await self._keeper.note_now(self)
            await self._drop_expired(self._now_ms())

    async def look_for_files(self) -> None:
        """Go offline where a file of the log was removed or moved: nothing in it would be kept."""
        async with self._writing:
            self._require_writable()
            try:
                missing = await finished(self._workers.files, self._store.blocking_missing)
            except OSError as error:
                raise LogUnavailable(f"{self._store.folder}: not looked at: {error}") from error
            if missing is not None:
                self._go_offline(f"{missing} was removed or moved while in use")

    async def _roll(self) -> None:
        if not self._store.is_noted:
            # A recovery without a note trusts every closed segment: so note before there is one.
            try:
                await self._keeper.note_now(self)
            except LogUnavailable as error:
                msg = f"{self._store.folder}: no new segment, so nothing was written: {error}"
                raise AppendRefused(msg) from error
            self._store.is_noted = True

        def take(making: asyncio.Future[Segment]) -> None:
            if making.exception() is None:
                self._store.take_segment(making.result())
                if self._policy is not SyncPolicy.EACH_GROUP:
                    self._show(self._store.end())
                self._commit.start_soon()

        make = partial(self._store.blocking_new_segment, self._now_ms())
        await self._writing.do(self._workers.files, make, take)

    async def _drop_expired(self, now_ms: int) -> int:
        store, pool = self._store, self._workers.files
        try:
            count = await finished(pool, partial(store.blocking_expired, now_ms))
            if count:
                dropped = store.drop_first(count)
                await finished(pool, partial(store.blocking_remove, dropped))
            epochs = EpochStarts(store.epochs.entries)
            if epochs.advance_to(store.log_start):
                store.epochs = epochs
                await finished(pool, partial(store.blocking_save_epochs, epochs))
        except OSError as error:
            msg = f"{store.folder}: expired segments are still there: {error}"
            raise LogUnavailable(msg) from error
        return count

    # the end

    @property
    def recovery_point(self) -> int:
        return self._store.recovery_point

    def begin_stop(self) -> None:
        """Take no more calls, end those that wait, and begin to sync the written bytes."""
        self._is_closed = True
        self._wake_all()
        if not self._store.place.is_read_only:
            self._commit.start()

    async def stopped(self) -> None:
        """Wait until nothing is under way and, after `begin_stop`, everything is synced."""
        async with self._writing:
            pass
        if not self._store.place.is_read_only:
            await self._commit.finish()

    def blocking_seal(self) -> None:
        """Write the marks of a clean end; after `stopped`, in a thread."""
        if self._fault is None and not self._store.place.is_read_only:
            self._store.blocking_seal()

    def _go_offline(self, fault: str) -> None:
        super()._go_offline(fault)
        self._commit.fail(fault)

    def _require_writable(self) -> None:
        if self._store.place.is_read_only:
            raise AppendRefused(f"{self._store.folder} is open for reading only")
        self._require_readable()
