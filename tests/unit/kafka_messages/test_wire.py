"""Kafka's primitives: written and read back, and bytes that make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, request_header
from rlmm.metadata.ids import Uuid

if TYPE_CHECKING:
    from collections.abc import Callable

UVARINTS = {0: "00", 1: "01", 127: "7f", 128: "8001", 300: "ac02", 2**32 - 1: "ffffffff0f"}


@pytest.mark.parametrize(("value", "coded"), UVARINTS.items())
def test_uvarint_when_written_then_has_seven_bits_a_byte(value: int, coded: str) -> None:
    """Lengths are coded as Kafka codes them, and read back."""
    out = MessageWriter()
    out.uvarint(value)
    assert out.done().hex() == coded
    assert MessageReader(out.done()).uvarint() == value


def test_fields_when_written_then_are_read_back() -> None:
    """Every primitive is read as it was written."""
    uuid = Uuid(bytes(range(16)))
    out = MessageWriter()
    out.int8(-1)
    out.int16(-2)
    out.int32(-3)
    out.int64(-4)
    out.boolean(True)
    out.uuid(uuid)
    out.text("überall")
    out.text(None)
    out.nullable_bytes(b"")
    out.nullable_bytes(None)
    out.array([7, 8], out.int32)
    out.array(None, out.int8)
    out.no_tags()
    reader = MessageReader(out.done())
    assert [reader.int8(), reader.int16(), reader.int32(), reader.int64()] == [-1, -2, -3, -4]
    assert reader.boolean()
    assert reader.uuid() == uuid
    assert (reader.nullable_text(), reader.nullable_text()) == ("überall", None)
    assert (reader.nullable_bytes(), reader.nullable_bytes()) == (b"", None)
    assert (reader.array(reader.int32), reader.array(reader.int8)) == ([7, 8], [])
    assert reader.tags() == {}


NONSENSE: dict[str, tuple[bytes, Callable[[MessageReader], object]]] = {
    "number cut off": (b"\x00\x00\x00", MessageReader.int32),
    "bytes longer than the answer": (b"\x05abc", MessageReader.nullable_bytes),
    "view longer than the answer": (b"\x05abc", MessageReader.view),
    "length of six bytes": (b"\xff" * 6, MessageReader.uvarint),
    "more items than bytes": (b"\xff\xff\xff\xff\x0f", lambda reader: reader.array(reader.int8)),
    "no text": (b"\x02\xff", MessageReader.nullable_text),
    "tag longer than the answer": (b"\x01\x00\x09a", MessageReader.tags),
    "nothing at all": (b"", MessageReader.tags),
}


@pytest.mark.parametrize(("data", "read"), NONSENSE.values(), ids=NONSENSE)
def test_reader_when_the_bytes_make_no_sense_then_says_so(
    data: bytes, read: Callable[[MessageReader], object]
) -> None:
    """The reader believes no length beyond the bytes it has, and raises one kind of error."""
    with pytest.raises(ValueError, match=r".+"):
        read(MessageReader(data))


def test_f64_tags_when_unknown_then_are_stepped_over() -> None:
    """F64: tagged fields of later releases are kept apart, unread; large fields are not copied."""
    reader = MessageReader(b"\x02\x00\x01a\x09\x02bc\x07")
    assert reader.tags() == {0: b"a", 9: b"bc"}
    assert reader.int8() == 7
    data = b"\x04abc\x00"
    reader = MessageReader(data)
    view = reader.view()
    assert (bytes(view), view.obj, bytes(reader.view())) == (b"abc", data, b"")


VERSIONS: dict[str, tuple[tuple[int, int] | None, int | None]] = {
    "both": ((3, 13), 13),
    "older broker": ((0, 11), 9),
    "much older broker": ((0, 8), None),
    "much newer broker": ((14, 20), None),
    "not spoken": (None, None),
}


@pytest.mark.parametrize(("spoken", "chosen"), VERSIONS.values(), ids=VERSIONS)
def test_version_when_chosen_is_best(spoken: tuple[int, int] | None, chosen: int | None) -> None:
    """The version is the first of ours that the broker also knows, or none."""
    api = MessageType("Produce", 0, (13, 9))
    assert api.choose({} if spoken is None else {0: spoken}) == chosen


def test_header_when_written_then_is_kafkas_version_2() -> None:
    """Key, version, number, client id with a length of two bytes, no tags."""
    header = request_header(MessageType("Fetch", 1, (13,)), 13, 7, "me")
    assert header.hex() == "0001000d0000000700026d6500"
