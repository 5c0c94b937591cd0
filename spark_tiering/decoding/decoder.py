"""Pieces of a log in, rows out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rlmm.records.damage import DamagedBatch
from rlmm.records.header import (
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    TRANSACTIONAL_BIT,
    judge_start,
)
from spark_tiering.decoding.aborted import AbortedRanges
from spark_tiering.decoding.batch_walk import walk_window
from spark_tiering.decoding.decompression import BatchDecompressor
from spark_tiering.decoding.faults import DecodingFault, DecodingFaultKind
from spark_tiering.decoding.rows import DecodingCounts, RowReader
from spark_tiering.decoding.varints import PADDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from spark_tiering.decoding.batch_walk import BatchTable
    from spark_tiering.decoding.options import DecodingOptions

_LENGTH_FIELD: Final = slice(8, 12)


class BatchDecoder:
    """Decodes one partition's log, from byte *position* on, where a batch begins, in pieces."""

    def __init__(self, wanted: DecodingOptions, position: int = 0) -> None:
        self.counts = DecodingCounts()
        self.fault: DecodingFault | None = None
        self.is_done = False
        """Nothing more is wanted of what follows: the end was reached, or a fault."""
        self._wanted = wanted
        self._aborted = AbortedRanges(wanted.aborted)
        self._inflater = BatchDecompressor(wanted.inflated_bytes_max)
        self._rows = RowReader(wanted, self.counts)
        self._position = position
        self._previous_offset = -1
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._needed_bytes = HEADER_BYTES
        self._is_in_zeros = False
        self._is_feeding = False

    @property
    def next_offset(self) -> int:
        """Return the offset behind the last walked batch, 0 before the first."""
        return self._previous_offset + 1

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def feed(
        self, piece: bytes | bytearray | memoryview
    ) -> Iterator[pa.RecordBatch | DecodingFault]:
        """Yield the rows of the batches that end in *piece*; a fault comes last."""
        if self.is_done or not piece:
            return
        assert not self._is_feeding, "the rows of the last piece were not taken"
        self._is_feeding = True
        yield from self._feed(piece)
        self._is_feeding = False

    def _feed(
        self, piece: bytes | bytearray | memoryview
    ) -> Iterator[pa.RecordBatch | DecodingFault]:
        if self._is_in_zeros:
            if any(piece):
                detail = "zeros where a batch should begin, and something behind them"
                yield self._found(self._at_end(DecodingFaultKind.LENGTH_TOO_SMALL, detail))
            return
        self._held_bytes += len(piece)
        if self._held_bytes < self._needed_bytes:
            self._held.append(bytes(piece))
            return
        data = b"".join((*self._held, piece, PADDING))
        size, position = self._held_bytes, self._position
        walked = walk_window(data, size, self._wanted, position, self._previous_offset)
        self.counts.batches += len(walked.table)
        if len(walked.table):
            self._previous_offset = int(walked.table.last_offset[-1])
        self._is_in_zeros = walked.is_zeros
        has_rest = walked.fault is None and not walked.is_zeros
        self._hold(data[walked.stop : size] if has_rest else b"", position + walked.stop)
        yield from self._decode(data, walked.table, position)
        # Nobody needs what lies behind the end; but a batch that does not fit there says that the
        # one that seemed to be the end may be none: base offsets are in no CRC.
        fault, unordered = walked.fault, DecodingFaultKind.BATCH_OUT_OF_ORDER
        if fault and not self.fault and (fault.kind is unordered or not self.is_done):
            yield self._found(fault)

    def finish(self) -> DecodingFault | None:
        """Return the fault of a rest that is no batch; None where no more records were wanted."""
        if self.is_done:
            return self.fault
        rest = b"".join(self._held)
        if self._is_in_zeros or (rest and not any(rest)):
            return self._found(self._at_end(DecodingFaultKind.ZEROS, "the log ends in zeros"))
        if not rest:
            return None
        found = judge_start(rest, 0, self._wanted.batch_bytes_max)
        if isinstance(found, DamagedBatch):
            return self._found(self._at_end(DecodingFaultKind(found.reason.value), found.detail))
        detail = f"the last {len(rest)} bytes are no whole batch"
        return self._found(self._at_end(DecodingFaultKind.TORN, detail))

    def _hold(self, rest: bytes, position: int) -> None:
        """Keep the bytes that are no whole batch yet; *position* is that of the first one."""
        self._held = [rest] if rest else []
        self._held_bytes = len(rest)
        self._position = position
        self._needed_bytes = HEADER_BYTES
        if len(rest) >= HEADER_BYTES:
            length = int.from_bytes(rest[_LENGTH_FIELD], "big", signed=True)
            self._needed_bytes = LENGTH_FROM + length

    def _decode(
        self, data: bytes, table: BatchTable, position: int
    ) -> Iterator[pa.RecordBatch | DecodingFault]:
        wanted = self._select(table)
        for portion in self._inflater.portions(data, wanted, position):
            if isinstance(portion, DecodingFault):
                yield self._found(portion)
                return
            for found in self._rows.read(portion, position):
                if isinstance(found, DecodingFault):
                    yield self._found(found)
                    return
                yield found
        self.is_done = self._previous_offset + 1 >= self._wanted.next_offset

    def _select(self, table: BatchTable) -> BatchTable:
        """Return the batches that are to be opened; the others are counted."""
        asked, counts = self._wanted, self.counts
        inside = (table.last_offset >= asked.first_offset) & (table.base_offset < asked.next_offset)
        is_control = (table.attributes & CONTROL_BIT) != 0
        counts.outside += int(table.count[~inside].sum())
        counts.markers += int(table.count[inside & is_control].sum())
        keep = inside & ~is_control
        if self._aborted:
            in_transaction = keep & ((table.attributes & TRANSACTIONAL_BIT) != 0)
            for at in np.flatnonzero(in_transaction):
                if self._aborted.cover(int(table.producer_id[at]), int(table.base_offset[at])):
                    keep[at] = False
                    counts.aborted += int(table.count[at])
        late = keep & (table.max_time < asked.first_time_ms)
        counts.untimely += int(table.count[late].sum())
        keep &= ~late
        return table if keep.all() else table.where(keep)

    def _at_end(self, kind: DecodingFaultKind, detail: str) -> DecodingFault:
        rest = b"".join(self._held)
        offset = HEADER.unpack_from(rest)[0] if len(rest) >= HEADER_BYTES else -1
        return DecodingFault(kind, self._position, max(offset, -1), detail)

    def _found(self, fault: DecodingFault) -> DecodingFault:
        self.fault = fault
        self.is_done = True
        self._held = []
        return fault
