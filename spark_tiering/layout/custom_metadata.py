"""
Custom metadata that the plugin has a broker keep for a segment: size, prefix, key. Pure. A section
of tagged fields in Kafka's form: count, then by rising tag: tag, length, value, as unsigned
varints. Brokers refuse more than `remote.log.metadata.custom.metadata.max.bytes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, INT64_MIN
from rlmm.metadata.varint import encode_varint
from spark_tiering.layout.findings import LayoutFault, LayoutFinding

if TYPE_CHECKING:
    from collections.abc import Mapping

CUSTOM_METADATA_BYTES_MAX = 128

_SIZE_TAG, _PREFIX_TAG, _KEY_TAG = range(3)
_VARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10


@dataclass(frozen=True, slots=True)
class CustomMetadata:
    """The size of all three objects, the place of log and indexes, and unknown tags."""

    remote_size_bytes: int | None = None
    prefix: str | None = None
    main_key: str | None = None
    others: Mapping[int, bytes] = field(default_factory=dict)


def format_custom_metadata(
    custom: CustomMetadata, bytes_max: int = CUSTOM_METADATA_BYTES_MAX
) -> bytes | None:
    """Return the bytes for a record; None without fields. Raise `InvalidArgument` when too long."""
    fields = dict(custom.others)
    if any(not _KEY_TAG < tag <= INT32_MAX for tag in fields):
        msg = f"other fields have tags above {_KEY_TAG}, got {sorted(fields)}"
        raise InvalidArgument(msg)
    if custom.remote_size_bytes is not None:
        if not 0 <= custom.remote_size_bytes <= INT64_MAX:
            msg = f"a size of {custom.remote_size_bytes} bytes"
            raise InvalidArgument(msg)
        fields[_SIZE_TAG] = encode_varint(custom.remote_size_bytes << 1)
    for tag, text in ((_PREFIX_TAG, custom.prefix), (_KEY_TAG, custom.main_key)):
        if text is not None:
            content = text.encode()
            fields[tag] = encode_varint(len(content) + 1) + content
    if not fields:
        return None
    parts = [encode_varint(len(fields))]
    for tag, value in sorted(fields.items()):
        parts += (encode_varint(tag), encode_varint(len(value)), value)
    section = b"".join(parts)
    if len(section) > bytes_max:
        msg = f"custom metadata of {len(section)} bytes, the broker takes {bytes_max}"
        raise InvalidArgument(msg)
    return section


def parse_custom_metadata(section: bytes | None) -> CustomMetadata | LayoutFinding:
    """Return the fields of a record's custom metadata; another plugin's is a finding."""
    if not section:
        return CustomMetadata()
    try:
        return _Section(section).read()
    except _Unreadable as unreadable:
        detail = f"custom metadata of {len(section)} bytes: {unreadable}"
        return LayoutFinding(LayoutFault.DAMAGED, detail)


class _Unreadable(Exception):
    pass


class _Section:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def read(self) -> CustomMetadata:
        raw: dict[int, bytes] = {}
        previous = -1
        for _ in range(self._number(_VARINT_BYTES_MAX)):
            tag = self._number(_VARINT_BYTES_MAX)
            if not previous < tag <= INT32_MAX:
                msg = f"tag {tag} follows {previous}"
                raise _Unreadable(msg)
            raw[tag] = self._take(self._number(_VARINT_BYTES_MAX))
            previous = tag
        self.require_end()
        size = raw.pop(_SIZE_TAG, None)
        prefix, main_key = raw.pop(_PREFIX_TAG, None), raw.pop(_KEY_TAG, None)
        return CustomMetadata(
            None if size is None else _Section(size).long(),
            None if prefix is None else _Section(prefix).text(),
            None if main_key is None else _Section(main_key).text(),
            raw,
        )

    def long(self) -> int:
        number = self._number(_VARLONG_BYTES_MAX)
        self.require_end()
        found = number >> 1 ^ -(number & 1)
        if not INT64_MIN <= found <= INT64_MAX:
            msg = f"{found} does not fit 64 bits"
            raise _Unreadable(msg)
        return found

    def text(self) -> str:
        size = self._number(_VARINT_BYTES_MAX) - 1
        if size < 0:
            msg = "a text that is null"
            raise _Unreadable(msg)
        content = self._take(size)
        self.require_end()
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise _Unreadable(str(error)) from error

    def require_end(self) -> None:
        if self._at != len(self._content):
            msg = f"{len(self._content) - self._at} bytes too many"
            raise _Unreadable(msg)

    def _take(self, size: int) -> bytes:
        if size > len(self._content) - self._at:
            msg = f"{size} bytes at {self._at} of {len(self._content)}"
            raise _Unreadable(msg)
        self._at += size
        return self._content[self._at - size : self._at]

    def _number(self, bytes_max: int) -> int:
        found = 0
        for place in range(bytes_max):
            (byte,) = self._take(1)
            found |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return found
        msg = f"a number of more than {bytes_max} bytes before {self._at}"
        raise _Unreadable(msg)
