"""
Limited I/O of a unit: files and a store under a deadline, at a pace, with requests counted.
`UnitEnd` ends a unit at any point and never leaves `spark_tiering`. Faults of a source are
`UnitEnd`, so a `StoreError` or `ConfigError` is the store's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.closing import ClosedByWith
from rlmm.errors import InvalidArgument, RlmmError
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.partition_files import FileStream, piece_bytes_of
from spark_tiering.stores.results import ObjectWritten
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import NoReturn

    from spark_tiering.executor.throttle import Throttle
    from spark_tiering.segments.partition_files import PartitionFiles, SourceFileFacts
    from spark_tiering.stores.content import ContentStream, ObjectContent
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import (
        GetOutcome,
        ListedFolder,
        ListedObject,
        ObjectAbsent,
        ObjectFacts,
        OpenUpload,
        PutOutcome,
        StoreTraits,
    )

T = TypeVar("T")

READINGS = 2
"""A log is read twice and counts half each time, so that no burst meets source or store."""


class UnitEnd(Exception):
    def __init__(self, outcome: UnitOutcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail


class UnitLimits:
    def __init__(
        self, deadline_s: float, throttle: Throttle, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.requests = 0
        self._deadline_s = deadline_s
        self._throttle = throttle
        self._clock = clock
        self._began = clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    def read(self, size_bytes: int) -> None:
        self._wait(size_bytes / READINGS, 0)

    def ask(self, requests: int = 1) -> None:
        self.requests += requests
        self._wait(0, requests)

    def ask_apart(self) -> None:
        self._wait(0, 1)

    def asked(self, requests: int) -> None:
        """Count requests after the fact; later callers wait for them."""
        self.requests += requests
        self._throttle.charge(requests)

    def _wait(self, size_bytes: float, requests: int) -> None:
        left_s = self._deadline_s - self.seconds
        if left_s <= 0:
            detail = f"not done after {self._deadline_s:g} s"
            raise UnitEnd(UnitOutcome.TIMED_OUT, detail)
        if not self._throttle.wait(size_bytes, requests, limit_s=left_s):
            detail = f"the pace does not allow it to be done in {self._deadline_s:g} s"
            raise UnitEnd(UnitOutcome.TIMED_OUT, detail)


class LimitedFiles:
    """The files of a partition; `facts` are of the last look. The segment needs its *log*."""

    def __init__(self, files: PartitionFiles, watch: UnitLimits, log: str = "") -> None:
        self._files = files
        self._watch = watch
        self._log = log
        self._facts: Mapping[str, SourceFileFacts] | None = None

    @property
    def piece_bytes(self) -> int:
        return piece_bytes_of(self._files)

    def facts(self) -> Mapping[str, SourceFileFacts]:
        if self._facts is None:
            self._facts = self.look_again()
        return self._facts

    def look_again(self) -> Mapping[str, SourceFileFacts]:
        self._watch.read(0)
        return _sourced(self._files.facts)

    def read(self, name: str, start: int, size: int) -> bytes:
        self._watch.read(size)
        return _sourced(lambda: self._files.read(name, start, size))

    def pieces(self, name: str, size_bytes: int, part: SegmentPart) -> Iterator[bytes]:
        """Return a file from its start to its end; ends the unit where it is another one by now."""
        stream = FileStream(self, name, size_bytes, part)
        while piece := stream.next_piece():
            yield piece
        if stream.finding is not None:
            self.end_changed(part, stream.finding.detail)

    def end_changed(self, part: SegmentPart, detail: str) -> NoReturn:
        """End the unit for a changed part; a file beside the log may be read anew."""
        if self._log and self._log not in self.look_again():
            raise UnitEnd(UnitOutcome.SOURCE_GONE, detail)
        is_log = part is SegmentPart.LOG
        raise UnitEnd(UnitOutcome.SOURCE_CHANGED if is_log else UnitOutcome.SOURCE_FAILED, detail)


def _sourced(call: Callable[[], T]) -> T:
    """Call the source: its errors end the unit, errors of the caller do not."""
    try:
        return call()
    except InvalidArgument:
        raise
    except (RlmmError, OSError) as error:
        raise UnitEnd(UnitOutcome.SOURCE_FAILED, str(error)) from error


class LimitedStore(ClosedByWith):
    """Wraps a store: each call is counted and paced; the opener of the store closes it."""

    def __init__(self, store: ObjectStore, settings: StoreSettings, watch: UnitLimits) -> None:
        self._store = store
        self._watch = watch
        self._s3 = settings if isinstance(settings, S3Settings) else None

    def put(self, key: str, content: ObjectContent) -> PutOutcome:
        """Put as `ObjectStore.put`; where a bucket looks first, the rest is counted at the end."""
        size_bytes = content.sum.size_bytes
        self._watch.ask()
        outcome = self._store.put(key, content)
        if self._s3 is not None and isinstance(outcome, ObjectWritten):
            if size_bytes > self._s3.single_put_bytes:
                self._watch.asked(self._parts(size_bytes))
            elif not self._s3.has_conditional_puts:
                self._watch.asked(1)
        return outcome

    def put_stream(self, key: str, stream: ContentStream) -> PutOutcome:
        self._watch.ask(2)
        outcome = self._store.put_stream(key, stream)
        if isinstance(outcome, ObjectWritten):
            self._watch.asked(self._parts(outcome.size_bytes) - 1)
        return outcome

    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent:
        self._watch.ask()
        return self._store.head(key, is_sum_wanted=is_sum_wanted)

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome:
        self._watch.ask()
        return self._store.get(key, first_byte, last_byte)

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        self._watch.ask()
        return self._store.list(prefix)

    def level(self, prefix: str = "") -> Iterator[ListedObject | ListedFolder]:
        self._watch.ask()
        return self._store.level(prefix)

    def delete(self, key: str) -> None:
        self._watch.ask()
        self._store.delete(key)

    def open_uploads(self, prefix: str = "") -> Iterator[OpenUpload]:
        self._watch.ask()
        return self._store.open_uploads(prefix)

    def abort_upload(self, upload: OpenUpload) -> None:
        self._watch.ask()
        self._store.abort_upload(upload)

    def probe(self, prefix: str) -> StoreTraits:
        self._watch.ask()
        return self._store.probe(prefix)

    def close(self) -> None: ...

    def _parts(self, size_bytes: int) -> int:
        if self._s3 is None or size_bytes < self._s3.part_bytes:
            return 1
        return 2 + -(-size_bytes // self._s3.part_bytes)
