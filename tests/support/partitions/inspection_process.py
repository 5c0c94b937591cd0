"""A process that inspects a segment LOG_BYTES BATCH_BYTES INTERVAL_BYTES and prints its memory."""

from __future__ import annotations

import json
import re
import struct
import sys
import time
from pathlib import Path

from spark_tiering.segments.partition_files import SourceFileFacts
from spark_tiering.segments.segment_inspection import InspectionRules, inspect_segment
from spark_tiering.segments.segment_listing import ListedSegment
from tests.support.partitions.segments import T_MS, data_batch

LOG = "00000000000000000000.log"
RECORDS = 10


class MadeLog:
    """A log of equal batches: only their base offsets differ, which no CRC covers."""

    def __init__(self, size: int, batch_bytes: int) -> None:
        self.size = size // batch_bytes * batch_bytes
        self.next_offset = self.size // batch_bytes * RECORDS
        self._batch = data_batch(0, T_MS, count=RECORDS, size=batch_bytes)

    def facts(self) -> dict[str, SourceFileFacts]:
        return {LOG: SourceFileFacts(self.size, 0)}

    def read(self, name: str, start: int, size: int) -> bytes:
        if name != LOG or start >= self.size:
            return b""
        stop = min(start + size, self.size)
        length = len(self._batch)
        parts: list[bytes | memoryview] = []
        for number in range(start // length, -(-stop // length)):
            parts += (struct.pack(">q", number * RECORDS), memoryview(self._batch)[8:])
        whole = b"".join(parts)
        skipped = start // length * length
        return whole if len(whole) == stop - start else whole[start - skipped : stop - skipped]


def peak_bytes() -> int:
    """Return the peak resident bytes of this process; rusage may tell its parent's."""
    told = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert told is not None
    return int(told[1]) * 1024


def main(log_bytes: int, batch_bytes: int, interval_bytes: int) -> None:
    log = MadeLog(log_bytes, batch_bytes)
    baseline, began = peak_bytes(), time.perf_counter()
    rules = InspectionRules(index_interval_bytes=interval_bytes)
    report = inspect_segment(log, ListedSegment(0, log.next_offset), rules=rules)
    told = {
        "blockers": [str(found) for found in report.blockers],
        "size": report.size_bytes,
        "index": report.parts["offset"].size_bytes if "offset" in report.parts else 0,  # type: ignore[index]  # a StrEnum
        "bytes": peak_bytes() - baseline,
        "seconds": time.perf_counter() - began,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
