"""
The layout of records: constants that reading and writing share.

A value is: frame version, api key, record version, each an unsigned varint, then the record's
fields, then nothing. Every structure ends with a tagged-field section. Strings, bytes and arrays
carry their length + 1 as an unsigned varint, 0 meaning null. Numbers are big-endian.
"""

from __future__ import annotations

from typing import Final

FRAME_VERSION: Final = 1
RECORD_VERSION: Final = 0

API_SEGMENT: Final = 0
API_UPDATE: Final = 1
API_PARTITION_DELETE: Final = 2
API_SNAPSHOT: Final = 3

TAG_TXN_INDEX_EMPTY: Final = 0
NO_TAGS: Final = b"\x00"
TXN_INDEX_EMPTY_TAGS: Final = b"\x01\x00\x01\x01"
"""One tag: number 0, one byte, true. Written only when true."""

VALUE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longest value read or written; a broker's default limit for one record is 1 MiB."""
TAGS_MAX: Final = 1_000
"""Most tagged fields of one value that are read; no release of Kafka writes more than one."""
EPOCHS_MAX: Final = 10_000
"""Most leader epochs of one segment; each costs memory for as long as its partition lives."""
