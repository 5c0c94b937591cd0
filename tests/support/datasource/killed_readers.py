"""A source whose readers are killed as by an out-of-memory killer."""

from __future__ import annotations

import os
import signal
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.spark.work_units import mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segment_sources.protocol import FoundPartition, SegmentSource, UnusablePlace
    from spark_tiering.segments.partition_files import PartitionFiles, SourceFileFacts

ALWAYS = 1_000


@dataclass(frozen=True)
class KillingFiles:
    """Files of which one kills each executor that reads it, so many times, never the driver."""

    files: PartitionFiles
    marks: str
    """A file with a line for each process that died."""
    log: str
    times: int
    driver: int

    def facts(self) -> Mapping[str, SourceFileFacts]:
        return self.files.facts()

    def read(self, name: str, start: int, size: int) -> bytes:
        is_sent = any(frame.name == "put_log" for frame in traceback.extract_stack())
        if name == self.log and is_sent and _lines(self.marks) < self.times:
            assert os.getpid() != self.driver
            mark(Path(self.marks))
            os.kill(os.getpid(), signal.SIGKILL)
        return self.files.read(name, start, size)


class KillingSource:
    def __init__(self, source: SegmentSource, marks: str, log: str, times: int) -> None:
        self._source = source
        self._said = marks, log, times, os.getpid()

    def partitions(self) -> tuple[list[FoundPartition], list[UnusablePlace]]:
        found, unusable = self._source.partitions()
        return [one._replace(files=KillingFiles(one.files, *self._said)) for one in found], unusable

    def close(self) -> None: ...


def _lines(path: str) -> int:
    file = Path(path)
    return len(file.read_text().splitlines()) if file.exists() else 0
