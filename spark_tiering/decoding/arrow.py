"""
Arrow columns out of positions in a buffer. The buffer itself is an array whose every second element
lies between two fields; one call takes the odd ones, and Arrow copies the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_tiering.decoding.options import HEADER_TYPE

if TYPE_CHECKING:
    from spark_tiering.decoding.batch_walk import Int64s
    from spark_tiering.decoding.fields import FieldSpans

TIME_MAX_MS: Final = (2**63 - 1) // 1000
TIME_MIN_MS: Final = -TIME_MAX_MS
"""Times outside have no microseconds in int64."""
_TIME_TYPE: Final = pa.timestamp("us", tz="UTC")


def bytes_column(data: bytes | memoryview, spans: FieldSpans) -> pa.Array:
    count = len(spans.start)
    is_null = spans.size < 0
    has_null = bool(is_null.any())
    if has_null and is_null.all():
        return pa.nulls(count, pa.binary())
    ends = np.empty(2 * count + 1, dtype=np.int32)
    ends[0] = 0
    ends[1::2] = spans.start
    ends[2::2] = spans.start + (np.maximum(spans.size, 0) if has_null else spans.size)
    pieces = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(ends), pa.py_buffer(data)], null_count=0
    )
    odd = np.arange(1, 2 * count, 2, dtype=np.int32)
    taken = pa.array(odd, mask=is_null if has_null else None)
    return pc.take(pieces, taken, boundscheck=False)


def text_column(data: bytes | memoryview, spans: FieldSpans) -> pa.Array:
    """Return the column as text; invalid UTF-8 stands as Kafka's clients show it."""
    content = bytes_column(data, spans)
    offsets, letters = content.buffers()[1:]
    if letters is None or np.frombuffer(letters, dtype=np.uint8).max(initial=0) < 0x80:
        # Looking at every text by itself costs more than taking it.
        return pa.StringArray.from_buffers(len(content), offsets, letters)
    try:
        return content.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([each.decode("utf-8", "replace") for each in content.to_pylist()])


def headers_column(
    data: bytes | memoryview, count: Int64s, key: FieldSpans, value: FieldSpans
) -> pa.Array:
    """Make lists of headers; null where there are none, as in Spark's Kafka source."""
    pairs = pa.StructArray.from_arrays(
        [text_column(data, key), bytes_column(data, value)], fields=list(HEADER_TYPE)
    )
    offsets = np.zeros(len(count) + 1, dtype=np.int32)
    np.cumsum(count, out=offsets[1:])
    has_any = count > 0
    validity = None
    if not has_any.all():
        validity = pa.py_buffer(np.packbits(has_any, bitorder="little"))
    return pa.Array.from_buffers(
        pa.list_(HEADER_TYPE), len(count), [validity, pa.py_buffer(offsets)], children=[pairs]
    )


def times_column(times_ms: Int64s) -> pa.Array:
    """Make times in microseconds; none may lie outside `TIME_MIN_MS` to `TIME_MAX_MS`."""
    return pa.array(times_ms * 1000).view(_TIME_TYPE)


def numbers_column(numbers: Int64s) -> pa.Array:
    return pa.array(numbers)


class Constant:
    """A column in which the same stands in every row; it is made once, as long as was needed."""

    def __init__(self, value: str | int, kind: pa.DataType) -> None:
        self._value = pa.scalar(value, kind)
        self._made = pa.repeat(self._value, 0)

    def column(self, count: int) -> pa.Array:
        if len(self._made) < count:
            self._made = pa.repeat(self._value, count)
        return self._made.slice(0, count)
