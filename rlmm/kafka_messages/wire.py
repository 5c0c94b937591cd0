"""
Kafka's wire format: the primitives of flexible versions, and a request as a connection sends it.

Pure. All requests have compact lengths and tagged fields. A reader raises `ValueError` for bytes
that make no sense and never reads beyond them.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from rlmm.metadata.ids import UUID_BYTES, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

NO_UUID = Uuid(bytes(UUID_BYTES))
"""What stands where no topic id is known."""

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_VARINT_BYTES_MAX = 5


class MessageReader:
    """Reads the fields of *data* one after the other, from byte *start* on."""

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data = data
        self._at = start

    def int8(self) -> int:
        return self._number(_INT8)

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def boolean(self) -> bool:
        """Read one byte; anything but zero is true."""
        return self._number(_INT8) != 0

    def uvarint(self) -> int:
        """Return an unsigned number of seven bits a byte, lowest first."""
        value = 0
        for place in range(_VARINT_BYTES_MAX):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * place)
            if not byte & 0x80:
                return value
        raise ValueError(f"a length at byte {self._at} has more than {_VARINT_BYTES_MAX} bytes")

    def uuid(self) -> Uuid:
        return Uuid(self.take(UUID_BYTES))

    def nullable_bytes(self) -> bytes | None:
        """Return bytes behind their length plus one; zero is null."""
        size = self.uvarint()
        return None if size == 0 else self.take(size - 1)

    def view(self) -> memoryview:
        """Return bytes behind their length plus one, uncopied; null is read as empty."""
        size = max(self.uvarint() - 1, 0)
        at = self._skip(size)
        return memoryview(self._data)[at : at + size]

    def nullable_text(self) -> str | None:
        """Return a string behind its length plus one; zero is null."""
        data = self.nullable_bytes()
        return None if data is None else data.decode()

    def text(self) -> str:
        """Return a string; null, where the format has none, is read as empty."""
        return self.nullable_text() or ""

    def array(self, item: Callable[[], T]) -> list[T]:
        """Read all items; a null array is read as empty."""
        count = self.uvarint() - 1
        if count > len(self._data) - self._at:
            raise ValueError(f"{count} items cannot stand in {len(self._data) - self._at} bytes")
        return [item() for _ in range(count)]

    def structs(self, read: Callable[[MessageReader], T]) -> list[T]:
        """Read an array of structures: the fields of each by *read*, then its tagged fields."""

        def struct() -> T:
            value = read(self)
            self.tags()
            return value

        return self.array(struct)

    def by_topic(self, read: Callable[[MessageReader], tuple[int, T]]) -> dict[str, dict[int, T]]:
        """Read an array of topics, each a name and an array of partitions that *read* reads."""
        return dict(self.structs(lambda topic: (topic.text(), dict(topic.structs(read)))))

    def tags(self) -> dict[int, bytes]:
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(self.uvarint())}

    def take(self, size: int) -> bytes:
        at = self._skip(size)
        return self._data[at : at + size]

    def _skip(self, size: int) -> int:
        """Step over the next *size* bytes, and return where they begin."""
        at = self._at
        self._at = at + size
        if self._at > len(self._data):
            raise ValueError(f"{size} bytes wanted at byte {at} of {len(self._data)}")
        return at

    def _number(self, form: struct.Struct) -> int:
        value: int = form.unpack(self.take(form.size))[0]
        return value


class MessageWriter:
    """Writes fields one after the other."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def int8(self, value: int) -> None:
        self._parts.append(_INT8.pack(value))

    def int16(self, value: int) -> None:
        self._parts.append(_INT16.pack(value))

    def int32(self, value: int) -> None:
        self._parts.append(_INT32.pack(value))

    def int64(self, value: int) -> None:
        self._parts.append(_INT64.pack(value))

    def boolean(self, value: bool) -> None:
        self._parts.append(b"\x01" if value else b"\x00")

    def uvarint(self, value: int) -> None:
        """An unsigned number of seven bits a byte, lowest first."""
        coded = bytearray()
        while value > 0x7F:
            coded.append(value & 0x7F | 0x80)
            value >>= 7
        coded.append(value)
        self._parts.append(bytes(coded))

    def uuid(self, value: Uuid) -> None:
        self._parts.append(bytes(value))

    def nullable_bytes(self, value: bytes | None) -> None:
        """Bytes behind their length plus one, or null."""
        self.uvarint(0 if value is None else len(value) + 1)
        if value is not None:
            self._parts.append(value)

    def text(self, value: str | None) -> None:
        """A string behind its length plus one, or null."""
        self.nullable_bytes(None if value is None else value.encode())

    def array(self, items: Iterable[T] | None, write: Callable[[T], None]) -> None:
        """Write all of *items* by *write*; None is null, which is not the same as empty."""
        if items is None:
            self.uvarint(0)
            return
        listed = list(items)
        self.uvarint(len(listed) + 1)
        for item in listed:
            write(item)

    def structs(self, items: Iterable[T], write: Callable[[MessageWriter, T], None]) -> None:
        """Write an array of structures without tagged fields."""

        def struct(item: T) -> None:
            write(self, item)
            self.no_tags()

        self.array(items, struct)

    def by_topic(
        self, topics: Mapping[str, Iterable[T]], write: Callable[[MessageWriter, T], None]
    ) -> None:
        """Write an array of topics, each a name and an array of partitions."""

        def topic(out: MessageWriter, item: tuple[str, Iterable[T]]) -> None:
            out.text(item[0])
            out.structs(item[1], write)

        self.structs(topics.items(), topic)

    def no_tags(self) -> None:
        """The end of a structure: no tagged fields."""
        self._parts.append(b"\x00")

    def done(self) -> bytes:
        return b"".join(self._parts)


class MessageType(NamedTuple):
    """Names one of Kafka's requests, with the versions that are written here, the best first."""

    name: str
    key: int
    versions: tuple[int, ...]
    since: str = ""
    """The first Kafka that has it, where some supported Kafka does not; an error names it."""

    def choose(self, versions: Mapping[int, tuple[int, int]]) -> int | None:
        """Return the first of our versions that the broker supports; None where there is none."""
        low, high = versions.get(self.key, (0, -1))
        return next((version for version in self.versions if low <= version <= high), None)


class Request(Generic[T]):
    """A request, and the reader of its response. `write` and `read` leave out the headers."""

    @property
    @abstractmethod
    def api(self) -> MessageType: ...

    @abstractmethod
    def write(self, out: MessageWriter, version: int) -> None: ...

    @abstractmethod
    def read(self, answer: MessageReader, version: int) -> T: ...


def request_header(api: MessageType, version: int, correlation_id: int, client_id: str) -> bytes:
    """Header, version 2: its client id is the one length that is not compact."""
    out = MessageWriter()
    out.int16(api.key)
    out.int16(version)
    out.int32(correlation_id)
    name = client_id.encode()
    out.int16(len(name))
    return out.done() + name + b"\x00"
