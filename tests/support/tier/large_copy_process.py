"""
A process that copies a generated segment into STORE, a sink's address or a folder: its memory.

    python -m tests.support.tier.large_copy_process STORE LOG_BYTES plain|zstd SINGLE_PUT_BYTES
"""

from __future__ import annotations

import json
import random
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentMetadata
from rlmm.partition_log.checkpoints import format_epochs
from rlmm.partition_log.names import EPOCH_CHECKPOINT
from rlmm.records.header import HEADER_BYTES
from spark_tiering.executor.segment_copy import copy_segment
from spark_tiering.executor.tasks import CopyOptions, CopyTask
from spark_tiering.executor.throttle import UNBOUND
from spark_tiering.segments.partition_files import SourceFileFacts
from spark_tiering.segments.producer_state import format_snapshot
from spark_tiering.segments.segment_listing import SNAPSHOT
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.partitions.inspection_process import LOG, RECORDS, MadeLog, peak_bytes
from tests.support.partitions.segments import T_MS
from tests.support.records.batches import forge
from tests.support.stores.s3_sink import BUCKET
from tests.support.tier.copy_tasks import ORDERS

if TYPE_CHECKING:
    from spark_tiering.stores.opening import StoreSettings

BATCH_BYTES = 16_384
KINDS = 512
"""So many batches of random bytes in turn: no chunk has the same bytes twice."""
MIB = 2**20


class VariedLog(MadeLog):
    """A made log with the segment behind it and fixed files beside it."""

    def __init__(self, size: int) -> None:
        super().__init__(size, BATCH_BYTES)
        rng = random.Random(5)
        self._batches = [
            forge(
                rng.randbytes(BATCH_BYTES - HEADER_BYTES), RECORDS, max_timestamp_ms=T_MS + number
            )[8:]
            for number in range(KINDS)
        ]
        behind = f"{self.next_offset:020d}"
        self._small = {
            EPOCH_CHECKPOINT: format_epochs(((0, 0),)),
            f"{behind}{SNAPSHOT}": format_snapshot({}),
            f"{behind}.log": b"",
        }

    def facts(self) -> dict[str, SourceFileFacts]:
        small = {name: SourceFileFacts(len(content), 0) for name, content in self._small.items()}
        return {LOG: SourceFileFacts(self.size, 0), **small}

    def read(self, name: str, start: int, size: int) -> bytes:
        if name in self._small:
            return self._small[name][start : start + size]
        if name != LOG or start >= self.size:
            return b""
        numbers = range(start // BATCH_BYTES, -(-min(start + size, self.size) // BATCH_BYTES))
        parts: list[bytes] = []
        for number in numbers:
            parts += (struct.pack(">q", number * RECORDS), self._batches[number % KINDS])
        return b"".join(parts)[start % BATCH_BYTES :][: min(size, self.size - start)]


def task_of(log: VariedLog, store: StoreSettings, options: CopyOptions, number: int) -> CopyTask:
    segment = SegmentMetadata(
        SegmentId(ORDERS, Uuid(number.to_bytes(16))), 0, log.next_offset - 1, 1,
        T_MS + min(KINDS, log.size // BATCH_BYTES) - 1, T_MS, ((0, 0),), log.size,
        txn_index_empty=True,
    )  # fmt: skip
    return CopyTask(
        segment, files=log, log_start=0, store=store, prefix="", job_id="large", options=options,
        pace=UNBOUND, deadline_s=3600.0,
    )  # fmt: skip


def store_of(address: str, single_put_bytes: int) -> StoreSettings:
    if not address.startswith("http"):
        return LocalSettings(Path(address), is_synced=False)
    return S3Settings(
        BUCKET,
        endpoint=address,
        region="us-east-1",
        is_path_style=True,
        single_put_bytes=single_put_bytes,
    )


def main(address: str, log_bytes: int, form: str, single_put_bytes: int) -> None:
    store = store_of(address, single_put_bytes)
    options = CopyOptions(is_compressed=form == "zstd")
    small = copy_segment(task_of(VariedLog(MIB), store, options, 1))
    baseline = peak_bytes()
    result = copy_segment(task_of(VariedLog(log_bytes), store, options, 2))
    told = {
        "outcomes": [small.outcome, result.outcome],
        "detail": small.detail + result.detail,
        "log_bytes": result.log_bytes,
        "stored_bytes": result.stored_bytes,
        "requests": result.requests,
        "bytes": peak_bytes() - baseline,
        "seconds": result.seconds,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
