"""A store and a source of files that fail at any of their calls."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, cast

from rlmm.errors import LogUnavailable, StoreUnavailable
from spark_tiering.stores.results import ObjectWritten, PutRefusal, PutRefused, PutUnknown
from tests.support.partitions.segments import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from spark_tiering.segments.partition_files import SourceFileFacts
    from spark_tiering.stores.content import ContentStream, ObjectContent
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import (
        GetOutcome,
        ObjectAbsent,
        ObjectFacts,
        OpenUpload,
        PutOutcome,
    )


class StoreTrouble(StrEnum):
    AWAY = "away"
    """Not done, and raised."""
    DONE_UNKNOWN = "done-unknown"
    """Done, but the answer is lost."""
    UNKNOWN = "unknown"
    """Not done, and the answer is lost."""
    NO_ROOM = "no-room"
    SWEPT = "swept"
    """Refused where something is written; else nothing."""


class SourceTrouble(StrEnum):
    AWAY = "away"
    GONE = "gone"
    """The broker deletes the segment at this moment: its files have other names from now on."""
    CUT = "cut"
    """The file is shorter from now on."""
    OTHER = "other"
    """One bit of the log is another one from now on."""
    TOUCHED = "touched"
    """The log was written to meanwhile, and has as many bytes."""


class FailingStore:
    """*store* with a failure at some of the calls, counted from 0."""

    def __init__(self, store: ObjectStore, troubles: Mapping[int, StoreTrouble]) -> None:
        self.calls = 0
        self._store = store
        self._troubles = troubles

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def put(self, key: str, content: ObjectContent) -> PutOutcome:
        return self._put(lambda: self._store.put(key, content))

    def put_stream(self, key: str, stream: ContentStream) -> PutOutcome:
        return self._put(lambda: self._store.put_stream(key, stream))

    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent:
        self._ask()
        return self._store.head(key, is_sum_wanted=is_sum_wanted)

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome:
        self._ask()
        return self._store.get(key, first_byte, last_byte)

    def delete(self, key: str) -> None:
        self._ask()
        self._store.delete(key)

    def open_uploads(self, prefix: str = "") -> Iterator[OpenUpload]:
        self._ask()
        return self._store.open_uploads(prefix)

    def _trouble(self) -> StoreTrouble | None:
        self.calls += 1
        return self._troubles.get(self.calls - 1)

    def _ask(self) -> None:
        trouble = self._trouble()
        if trouble in (StoreTrouble.AWAY, StoreTrouble.DONE_UNKNOWN, StoreTrouble.UNKNOWN):
            msg = "the store is away"
            raise StoreUnavailable(msg)

    def _put(self, put: Callable[[], PutOutcome]) -> PutOutcome:
        trouble = self._trouble()
        if trouble is StoreTrouble.AWAY:
            msg = "the store is away"
            raise StoreUnavailable(msg)
        if trouble is StoreTrouble.UNKNOWN:
            return PutUnknown("no answer")
        if trouble in (StoreTrouble.NO_ROOM, StoreTrouble.SWEPT):
            return PutRefused(PutRefusal(trouble.value), "as told")
        outcome = put()
        if trouble is StoreTrouble.DONE_UNKNOWN and isinstance(outcome, ObjectWritten):
            return PutUnknown("no answer")
        return outcome


def failing(store: ObjectStore, troubles: Mapping[int, StoreTrouble]) -> ObjectStore:
    return cast("ObjectStore", FailingStore(store, troubles))


class FailingFiles(MemoryFiles):
    """*files* with a failure at some of the calls, counted from 0."""

    def __init__(self, files: MemoryFiles, log: str, troubles: Mapping[int, SourceTrouble]) -> None:
        super().__init__(files.contents)
        self.calls = 0
        self._log = log
        self._troubles = troubles
        self._touched = False

    def facts(self) -> dict[str, SourceFileFacts]:
        self._befall()
        found = super().facts()
        if self._touched and self._log in found:
            found[self._log] = found[self._log]._replace(modified_ms=1)
        return found

    def read(self, name: str, start: int, size: int) -> bytes:
        self._befall()
        return super().read(name, start, size)

    def _befall(self) -> None:
        trouble = self._troubles.get(self.calls)
        self.calls += 1
        stem = self._log.removesuffix(".log")
        if trouble is SourceTrouble.AWAY:
            msg = "the source is away"
            raise LogUnavailable(msg)
        if trouble is SourceTrouble.GONE:
            for name in [name for name in self.contents if name.startswith(stem)]:
                self.contents[f"{name}.deleted"] = self.contents.pop(name)
        elif trouble is SourceTrouble.CUT and self._log in self.contents:
            self.contents[self._log] = self.contents[self._log][:-100]
        elif trouble is SourceTrouble.OTHER and self._log in self.contents:
            content = bytearray(self.contents[self._log])
            content[len(content) // 2] ^= 1
            self.contents[self._log] = bytes(content)
        elif trouble is SourceTrouble.TOUCHED:
            self._touched = True
