"""
Targets of an import: a folder, or the topic of a cluster, that takes records as they once were. A
folder without a log gets the identity of the backed-up log; it is filled under another name and
renamed at the end, so that no service uses it before. An existing log keeps its identity. Blocking,
for one thread.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from rlmm.base.loop_thread import LoopThread
from rlmm.base.threads import in_own_thread
from rlmm.errors import (
    AppendRefused,
    ConfigError,
    InvalidArgument,
    LogError,
    LogNotPermitted,
    LogRecreated,
)
from rlmm.log.files.log_folder import (
    TOPIC,
    UNKNOWN_CLUSTER_ID,
    UNKNOWN_TOPIC_ID,
    keep_identity,
    kept_identity,
    look_at,
    new_identity,
)
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.new_ids import random_uuid
from rlmm.log.protocol import LogIdentity
from rlmm.partition_log.disk import DISK
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.header import BATCH_BYTES_MAX
from rlmm.records.writer import build_batch
from spark_tiering.maintenance.backup.records import READ_BYTES
from spark_tiering.maintenance.backup.rows import BackupExtent
from spark_tiering.tier_metadata.embedded import kafka_settings
from spark_tiering.tier_metadata.settings import EmbeddedAccess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rlmm.records.record_set import RecordSet
    from spark_tiering.maintenance.backup.rows import BackupRow
    from spark_tiering.tier_metadata.opening import AccessSettings

IMPORTING: Final = ".importing"
"""The suffix of a folder that is being filled."""
TIMEOUT_S: Final = 60.0
_DELETING: Final = ("retention.ms", "retention.bytes", "cleanup.policy")


class BackupTarget(Protocol):
    where: str
    identity: LogIdentity

    def extents(self) -> dict[int, BackupExtent]: ...

    def deletes(self) -> str:
        """Return the setting by which the log would delete imported records; empty without one."""
        return ""

    def read(self, place: int, position: int) -> RecordSet | None:
        """Return record sets from *position* on; None where none came in time."""

    def append(self, place: int, rows: Sequence[BackupRow]) -> list[int]:
        """Store *rows* in their order, and return the offset of each."""

    def finish(self) -> None:
        """Make the log usable: all records are stored."""
        return

    def close(self) -> None:
        """Close the log; a second call does nothing."""
        return


@contextmanager
def open_target(
    access: AccessSettings, like: LogIdentity, *, is_written: bool
) -> Iterator[BackupTarget]:
    """
    Yield the log of *access*; a new one gets the identity of *like*. Raise `ConfigError` for a
    service: it judges events, and an import restores records as they are.
    """
    if not isinstance(access, EmbeddedAccess):
        msg = "a service takes no records as they are: name --embedded or --bootstrap-server"
        raise ConfigError(msg)
    thread = LoopThread("rlmm-import")
    try:
        target = _opened(access, like, thread, is_written=is_written)
        try:
            yield target
        finally:
            target.close()
    finally:
        thread.close()


def _opened(
    access: EmbeddedAccess, like: LogIdentity, thread: LoopThread, *, is_written: bool
) -> BackupTarget:
    folder = access.folder
    if folder is None:
        return TopicTarget(thread.wait(KafkaLog.open(kafka_settings(access))), thread, access.topic)
    found = look_at(folder)
    if new_identity(found, like.partition_count) is None:
        return _OpenFolder(folder, kept_identity(found, None), thread)
    identity = _begun_like(like)
    return _NewFolder(folder, identity, thread) if is_written else _NoFolder(folder, identity)


def _begun_like(like: LogIdentity) -> LogIdentity:
    """Return the settings of the same log; a backup of an unknown cluster gets a new identity."""
    cluster_id, topic_id = like.cluster_id, like.topic_id
    return LogIdentity(
        str(random_uuid()) if cluster_id == UNKNOWN_CLUSTER_ID else cluster_id,
        random_uuid() if topic_id == UNKNOWN_TOPIC_ID else topic_id,
        like.partition_count,
    )


class _NoFolder(BackupTarget):
    """A log that does not exist, for a dry run."""

    def __init__(self, folder: Path, identity: LogIdentity) -> None:
        self.where = str(folder)
        self.identity = identity

    def extents(self) -> dict[int, BackupExtent]:
        return dict.fromkeys(range(self.identity.partition_count), BackupExtent(0, 0))

    def read(self, place: int, position: int) -> RecordSet | None:
        raise InvalidArgument(f"{self.where} is not there: {place} at {position}")

    def append(self, place: int, rows: Sequence[BackupRow]) -> list[int]:
        raise InvalidArgument(f"{self.where} is not there: {place}, {len(rows)} records")


class _OpenFolder(BackupTarget):
    """An existing log of a folder; the lock keeps other processes out."""

    def __init__(
        self, folder: Path, identity: LogIdentity, thread: LoopThread, *, is_new: bool = False
    ) -> None:
        self.where = str(folder)
        self.identity = identity
        self._thread = thread
        # What is not acknowledged by a sync each time is synced when it is closed.
        settings = LogSettings(sync=SyncPolicy.NEVER, batch_bytes_max=BATCH_BYTES_MAX)
        self._registry = thread.wait(LogRegistry.open(folder, settings))
        try:
            thread.wait(self._open_all(is_new=is_new))
        except BaseException:
            self.close()
            raise

    async def _open_all(self, *, is_new: bool) -> None:
        topic_id, numbers = bytes(self.identity.topic_id), range(self.identity.partition_count)
        opened = [
            self._registry.create(TOPIC, number, topic_id)
            if is_new
            else self._registry.partition(TOPIC, number)
            for number in numbers
        ]
        self._logs = await asyncio.gather(*opened)

    def extents(self) -> dict[int, BackupExtent]:
        return {log.number: BackupExtent(log.log_start, log.next_offset) for log in self._logs}

    def read(self, place: int, position: int) -> RecordSet | None:
        return self._thread.wait(self._logs[place].read(position, bytes_max=READ_BYTES))

    def append(self, place: int, rows: Sequence[BackupRow]) -> list[int]:
        records = [row.record._replace(offset=number) for number, row in enumerate(rows)]
        try:
            batch = build_batch(records, 0)
            appended = self._thread.wait(
                self._logs[place].append(batch, verify_crc=False, timeout_s=TIMEOUT_S)
            )
        except InvalidArgument as error:
            msg = f"metadata partition {place}, records from offset {rows[0].offset} on: {error}"
            raise AppendRefused(msg) from error
        return list(range(appended.base_offset, appended.next_offset))

    def close(self) -> None:
        """Sync and unlock the folder."""
        self._thread.wait(self._registry.close())


class _NewFolder(_OpenFolder):
    """A new log that gets its name when it is complete; it continues an earlier attempt."""

    def __init__(self, folder: Path, identity: LogIdentity, thread: LoopThread) -> None:
        self._folder = folder
        self._filled = folder.with_name(folder.name + IMPORTING)
        try:
            folder.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{folder.parent}: {error.strerror or error}") from error
        try:
            super().__init__(self._filled, identity, thread, is_new=True)
        except LogRecreated as error:
            msg = f"{self._filled} was left by the import of another log: remove it ({error})"
            raise ConfigError(msg) from error
        self.where = str(folder)

    def finish(self) -> None:
        """Write the identity last, then rename the folder."""
        self.close()
        self._thread.wait(in_own_thread("import", partial(self._give_name)))

    def _give_name(self) -> None:
        try:
            keep_identity(self._filled, self.identity)
            DISK.sync_folder(self._filled)
            self._filled.rename(self._folder)
            DISK.sync_folder(self._folder.parent)
        except OSError as error:
            raise ConfigError(f"{self._folder}: {error.strerror or error}") from error


class TopicTarget(BackupTarget):
    """The topic of a cluster. Records of another writer are noticed."""

    def __init__(self, log: KafkaLog, thread: LoopThread, topic: str) -> None:
        self._log = log
        self._thread = thread
        self.identity = thread.wait(log.identity(timeout_s=TIMEOUT_S))
        self.where = f"the topic {topic} of cluster {self.identity.cluster_id}"

    def extents(self) -> dict[int, BackupExtent]:
        places = range(self.identity.partition_count)
        found: dict[int, BackupExtent] = {}
        bounds = self._thread.wait(self._log.bounds(places, timeout_s=TIMEOUT_S))
        for place, bound in bounds.items():
            if isinstance(bound, LogError):
                raise bound
            found[place] = BackupExtent(bound.log_start_offset, bound.high_watermark)
        return found

    def deletes(self) -> str:
        # Who may not see the settings is told when what was imported is read back.
        with suppress(LogNotPermitted):
            dangers = self._thread.wait(self._log.dangers(timeout_s=TIMEOUT_S))
            return "; ".join(str(one) for one in dangers if one.key in _DELETING)
        return ""

    def read(self, place: int, position: int) -> RecordSet | None:
        return self._thread.wait(
            self._log.read(place, position, timeout_s=TIMEOUT_S, bytes_max=READ_BYTES)
        )

    def append(self, place: int, rows: Sequence[BackupRow]) -> list[int]:
        return self._thread.wait(self._append(place, rows))

    async def _append(self, place: int, rows: Sequence[BackupRow]) -> list[int]:
        appended = [self._log.append_record(place, row.record, timeout_s=TIMEOUT_S) for row in rows]
        outcomes = await asyncio.gather(*appended, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [one for one in outcomes if not isinstance(one, BaseException)]

    def close(self) -> None:
        self._thread.wait(self._log.close())
