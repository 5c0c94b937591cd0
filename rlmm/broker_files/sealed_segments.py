"""
Sealed segments of brokers as the service offers them: partitions, their files, pieces of a file.

Invariant: the service looks at a file first and then compares it with its partition's last stable
offset; a later read returns bytes of that same file, or nothing.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from rlmm.base.threads import OwnThread
from rlmm.broker_files import disk
from rlmm.broker_files.last_stable_offsets import CachedStableOffsets
from rlmm.broker_files.sealed_files import (
    WITHOUT_LOG,
    SealedFiles,
    is_ever_read,
    why_not,
)
from rlmm.broker_files.statistics import BrokerFilesCounters
from rlmm.broker_files.views import dumped, files_view, partitions_view
from rlmm.errors import FileAbsent, LogError, LogUnavailable, NotSealed, TooBusy

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.broker_files.disk import FileIdentity, FolderPlace, ListedFile
    from rlmm.http.settings import BrokerLogSettings
    from rlmm.kafka_client.offsets.log_ends import LastStableOffsets

T = TypeVar("T")

_log = logging.getLogger(__name__)

PIECE_BYTES: Final = 512 * 1024


class SealedFile(NamedTuple):
    """A file that may be read, with its identity at the moment of the check."""

    place: FolderPlace
    name: str
    identity: FileIdentity

    @property
    def size_bytes(self) -> int:
        return self.identity.size_bytes


class BrokerLog:
    def __init__(self, settings: BrokerLogSettings, teller: LastStableOffsets) -> None:
        self.figures = BrokerFilesCounters()
        self._settings = settings
        self._teller = teller
        age_s = settings.stable_age_ms_max / 1_000
        self._stable = CachedStableOffsets(teller, age_s, self.figures)
        self._turns = DiskThreads(settings.reads_max, settings.read_timeout_ms / 1_000)

    async def run(self) -> None:
        _log.info("sealed segments below %s are served by HTTP", ", ".join(self._settings.folders))
        await self._teller.run()

    async def partitions(self) -> bytes:
        folders, serves = self._settings.folders, self._settings.serves
        return await self._turns.do(lambda: dumped(partitions_view(folders, serves)))

    async def files(self, place: FolderPlace) -> bytes:
        self._require_served(place)
        facts = await self._turns.do(partial(disk.facts_of, place))
        stable = await self._stable.of(place.partition)
        # Thousands of files are some megabytes of text.
        return await self._turns.do(lambda: dumped(files_view(facts, stable)))

    async def sealed(self, place: FolderPlace, name: str) -> SealedFile:
        """
        Return the file *name* if it may be read.

        Raises `FileAbsent`, `NotSealed`, or the `LogError` that hides its last stable offset.
        """
        looked = await self._looked(place, name)
        needs = SealedFiles(looked.names).needs(name)
        if needs == WITHOUT_LOG:
            self.figures.refused["absent"] += 1
            msg = f"{place}/{name}: {needs}"
            raise FileAbsent(msg)
        stable = await self._stable.of(place.partition, needs if isinstance(needs, int) else 0)
        why = why_not(needs, stable.offset)
        if not why:
            return SealedFile(place, name, looked.identity)
        if stable.trouble is not None:
            self.figures.refused["stable-offset-unknown"] += 1
            msg = f"{place}: its last stable offset is not known: {stable.trouble}"
            raise type(stable.trouble)(msg)
        self.figures.refused["not-sealed"] += 1
        msg = f"{place}/{name} is not to be read now: {why}"
        raise NotSealed(msg)

    async def _looked(self, place: FolderPlace, name: str) -> ListedFile:
        try:
            self._require_served(place)
            _require_name(name)
            return await self._turns.do(partial(disk.look_at, place, name))
        except FileAbsent:
            self.figures.refused["absent"] += 1
            raise
        except TooBusy:
            self.figures.refused["busy"] += 1
            raise
        except LogError:
            self.figures.refused["disk"] += 1
            raise

    async def read(self, file: SealedFile, start: int, size: int) -> bytes:
        """Read [start, start + size) of *file*, at most `PIECE_BYTES`; empty if it is gone."""
        work = partial(disk.read_piece, file.place, file.name, file.identity, start, size)
        return await self._turns.do(work)

    def _require_served(self, place: FolderPlace) -> None:
        _ = place.name
        if not self._settings.serves(place.partition.topic):
            msg = (
                f"{place.partition.topic} is not served: it is Kafka's own topic, or "
                "broker_log.topics and broker_log.without_topics leave it out"
            )
            raise FileAbsent(msg)
        if place.folder not in self._settings.folders:
            msg = f"no folder {place.folder!a:.200} is served"
            raise FileAbsent(msg)


def _require_name(name: str) -> None:
    if not is_ever_read(name):
        msg = f"no file is served that is called {name!a:.80}"
        raise FileAbsent(msg)


class DiskThreads:
    def __init__(self, most: int, timeout_s: float) -> None:
        self._places = asyncio.Semaphore(most)
        self._most = most
        self._timeout_s = timeout_s

    async def do(self, work: Callable[[], T]) -> T:
        """
        Run *work* in a thread and return its result; a cancelled caller does not wait.

        Raises `TooBusy` if no thread was free in time, `LogUnavailable` if the work did not end.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._places.acquire()
        except TimeoutError:
            msg = f"{self._most} reads of disks are under way, and none has ended"
            raise TooBusy(msg) from None
        own = OwnThread("broker log")
        future = asyncio.get_running_loop().run_in_executor(own, work)
        future.add_done_callback(self._done)
        try:
            await asyncio.wait((future,), timeout=self._timeout_s)
        finally:
            if not future.done():
                own.let_go()
        if not future.done():
            msg = f"the disk has not answered for {self._timeout_s:g} s"
            raise LogUnavailable(msg)
        return future.result()

    def _done(self, future: asyncio.Future[T]) -> None:
        self._places.release()
        with suppress(asyncio.CancelledError):
            future.exception()  # looked at, so that it is not reported as forgotten
