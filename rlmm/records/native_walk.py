"""
The walk over record batches by the native core, which checks CRCs without the interpreter's lock.

The core reads what is sound. It stops at anything else, and `batch.walk` judges that: so words and
verdicts are the same. Import this module only where the core is used; it may not be installed.
"""

from __future__ import annotations

import struct
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from rlmm_native import sound_headers, sound_runs

from rlmm.records.batch import Batch
from rlmm.records.batch import walk as walk_in_python
from rlmm.records.damage import DamagedBatch, PartialTail
from rlmm.records.header import HEADER, LENGTH_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUN = struct.Struct(">7q")


class BatchRun(NamedTuple):
    """Sound batches in a row, without a hole between their offsets and of one leader epoch."""

    stop: int
    base_offset: int
    next_offset: int
    last_start: int
    """Byte at which the last batch begins."""
    max_timestamp_ms: int
    max_timestamp_offset: int
    """Last offset of the first batch that has this time."""
    leader_epoch: int


def walk(data: bytes, start: int = 0) -> Iterator[Batch | DamagedBatch | PartialTail]:
    """
    Yield what `batch.walk` yields. The core checks all sound batches in a row before the first one
    is yielded, so a caller that may stop early is better served by `batch.walk`.
    """
    record_set = memoryview(data)
    while True:
        for header in HEADER.iter_unpack(sound_headers(data, start)):
            stop = start + LENGTH_FROM + header[1]
            yield Batch(record_set, start, stop, header, header[0] + header[6])
            start = stop
        found = next(walk_in_python(data, start), None)
        if found is None:
            return
        yield found
        if isinstance(found, PartialTail) or found.stop is None:
            return
        start = found.stop


def batch_runs(data: bytes, start: int, mark: int, interval_bytes: int) -> Iterator[BatchRun]:
    """
    Return the sound batches from byte *start* on, in runs, up to the first that is not sound.

    A run also ends behind the first batch that begins more than *interval_bytes* behind byte *mark*
    of *data*, which may be negative; the beginning of that batch is the mark of those that follow.
    """
    packed = sound_runs(data, start, mark, interval_bytes)
    return starmap(BatchRun, _RUN.iter_unpack(packed))
