"""
Record batches of a `.log` as Arrow, all batches of a window at a time. Pure: no I/O.

Windows are any pieces of the file, in order; some 4 MiB each are fastest, and need not end where a
batch ends. For `read_committed` the aborted transactions come from transaction indexes, by an
`AbortedSearch`.

    faults            what can be wrong with a log, as values
    options           the columns that there are, and what is asked of a decoder
    aborted           transaction index entries, which of them a read needs, and whose batches go
    batch_walk        bytes to the headers of whole batches, each of them checked
    decompression     batches to one buffer of records, no more at a time than a limit
    varints           the varints of many records in a few steps
    record_positions  where each record begins
    fields            what stands in each record, with its headers
    arrow             columns out of positions in a buffer
    rows              portions of batches to rows, counted, up to the first senseless record
    decoder           all of it, in pieces

Invariants:

- Rows in front of a fault are right, whatever the bytes are; behind it nothing is read.
- No length or count in the bytes is believed before it fits. Memory is bounded by the window, the
  largest batch and `INFLATED_BYTES_MAX`.
- What is dropped is counted: markers, aborted records, offsets outside of the wanted ones.
- Columns that are not wanted cost nothing, and what only they need is not looked at.

May be imported by `spark_tiering.data_source`, `spark_tiering.maintenance`.
"""

from typing import TYPE_CHECKING

from rlmm.base.old_names import attributes_of
from spark_tiering.decoding.aborted import AbortedSearch, AbortedTransaction, read_txn_index
from spark_tiering.decoding.decoder import BatchDecoder
from spark_tiering.decoding.faults import DecodingFault, DecodingFaultKind
from spark_tiering.decoding.options import COLUMNS, DecodingOptions, schema_of
from spark_tiering.decoding.rows import DecodingCounts

__all__ = [
    "COLUMNS",
    "AbortedSearch",
    "AbortedTransaction",
    "BatchDecoder",
    "DecodingCounts",
    "DecodingFault",
    "DecodingFaultKind",
    "DecodingOptions",
    "read_txn_index",
    "schema_of",
]

if not TYPE_CHECKING:
    __getattr__ = attributes_of(__name__)
