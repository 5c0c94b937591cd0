"""Byte ranges: the bytes of a file that the `Range` header selects (RFC 9110, 14). Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_ONE: Final = re.compile(r"bytes=(?P<first>[0-9]{0,19})-(?P<last>[0-9]{0,19})", re.ASCII)
"""One range of bytes; several in one request are passed over, as they may be."""


class ByteRange(NamedTuple):
    start: int
    end: int
    is_part: bool
    """Whether a part was asked for, be it all of the file."""

    @property
    def size(self) -> int:
        return self.end - self.start

    def content_range(self, size: int) -> str:
        return f"bytes {self.start}-{self.end - 1}/{size}"


def requested_range(header: str | None, size: int) -> ByteRange | None:
    """Return the range in a file of *size* bytes: all without a valid one, None beyond the end."""
    whole = ByteRange(0, size, False)
    found = None if header is None else _ONE.fullmatch(header.strip().replace(" ", ""))
    if found is None:
        return whole
    first, last = found["first"], found["last"]
    if not first:
        if not last:
            return whole
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), size
        if last:
            if int(last) < start:
                return whole
            end = min(int(last) + 1, size)
    return ByteRange(start, end, True) if start < end else None
