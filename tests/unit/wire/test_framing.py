"""Frames: put together from any pieces, refused before anything is kept for them."""

import tracemalloc

import pytest
from msgpack import packb

from rlmm.errors import InvalidArgument, ProtocolError
from rlmm.wire.framing import FRAME_BYTES_MAX, FrameReader, WalkedPayload, frame
from rlmm.wire.messages import read_request

PAYLOADS = [b"a", b"bc" * 100, b"d" * 70_000, b"e"]
STREAM = b"".join(map(frame, PAYLOADS))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 1_000, 70_010, len(STREAM)])
def test_frames_when_they_come_in_pieces_are_the_same(size: int) -> None:
    """Pieces of any size give the payloads once each, in order."""
    reader = FrameReader()
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [payload for piece in pieces for payload in reader.feed(piece)] == PAYLOADS
    assert reader.held_bytes == 0


def test_frame_when_it_is_not_complete_is_kept() -> None:
    """An incomplete frame gives nothing before its last byte."""
    reader = FrameReader()
    assert reader.feed(STREAM[:-1]) == PAYLOADS[:-1]
    assert reader.held_bytes == 4
    assert reader.feed(b"e") == [b"e"]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_stream_may_come_as_any_bytes(kind: type) -> None:
    """The decoder takes bytes in any buffer, and payloads do not change with that buffer."""
    data = bytearray(STREAM)
    payloads = FrameReader().feed(kind(data))
    data[:] = bytes(len(data))
    assert payloads == PAYLOADS


@pytest.mark.parametrize("size", [0, 11, FRAME_BYTES_MAX, 2**32 - 1])
def test_length_when_it_is_not_allowed_is_refused_at_once(size: int) -> None:
    """The four bytes of a wrong length are enough for the refusal."""
    reader = FrameReader(10)
    with pytest.raises(ProtocolError, match=f"{size} bytes is announced, allowed are 1 to 10"):
        reader.feed(size.to_bytes(4))
    assert reader.refused is not None
    with pytest.raises(ProtocolError):
        reader.feed(frame(b"x"))


def test_frames_before_a_length_that_is_not_allowed_are_given_first() -> None:
    """The frames before a wrong length are returned, and the next call raises."""
    reader = FrameReader(10)
    assert reader.feed(frame(b"x") + bytes(4) + frame(b"y")) == [b"x"]
    assert reader.refused is not None
    with pytest.raises(ProtocolError):
        reader.feed(b"")


def test_length_at_the_limit_is_taken() -> None:
    """A payload of the largest length passes, and one byte more is refused."""
    payload = bytes(FRAME_BYTES_MAX)
    assert FrameReader().feed(frame(payload)) == [payload]
    with pytest.raises(InvalidArgument, match="fits no frame"):
        frame(payload + b"x")
    with pytest.raises(InvalidArgument, match="fits no frame"):
        frame(b"")


def test_memory_when_a_large_frame_comes_in_tiny_pieces_is_that_of_the_frame() -> None:
    """Pieces are put together, not kept: two bytes at a time cost no more than the frame."""
    size = 512 * 1024
    reader = FrameReader()
    reader.feed(size.to_bytes(4))
    tracemalloc.start()
    try:
        for _ in range(size // 2 - 1):
            reader.feed(b"ab")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size * 3 // 2


def test_memory_when_a_large_frame_is_only_announced_is_none() -> None:
    """An announced length alone takes nothing."""
    reader = FrameReader()
    tracemalloc.start()
    try:
        reader.feed(FRAME_BYTES_MAX.to_bytes(4) + b"x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_096


def fed(payload: bytes) -> bytes:
    """Return *payload* as a reader gives it to which it came in pieces."""
    reader, stream = FrameReader(), frame(payload)
    found = [one for at in range(0, len(stream), 7_000) for one in reader.feed(stream[at:][:7_000])]
    assert found == [payload]
    assert reader.held_bytes == 0
    return found[0]


LARGE = packb([7, "ping", [{"x": [1, 2]}, *range(100_000)]])


def test_large_message_when_it_comes_in_pieces_then_is_gone_over_by_its_end() -> None:
    """Nothing is left to be gone over at once when the last piece has come."""
    assert type(fed(LARGE)) is WalkedPayload
    with pytest.raises(InvalidArgument, match="at most 81920 values"):
        read_request(fed(LARGE))


@pytest.mark.parametrize(
    "payload",
    [
        LARGE[:-9],
        LARGE + b"\xc0",
        b"\xc1" + LARGE,
        b"\xdd\xff\xff\xff\xff" + LARGE,
        b"\0" * 200_000,
    ],
    ids=["cut off", "one value more", "no message", "announces more", "values without an array"],
)
def test_large_frame_when_it_is_not_one_message_then_the_reader_of_requests_refuses_it(
    payload: bytes,
) -> None:
    """`FrameReader` hands on the plain bytes, and `read_request` names the fault."""
    found = fed(payload)
    assert type(found) is bytes
    with pytest.raises((ProtocolError, InvalidArgument)):
        read_request(found)


def test_memory_when_a_frame_is_one_large_text_then_all_of_it_is_counted() -> None:
    """Going over a text needs all of it, beside the frame."""
    reader = FrameReader()
    text = frame(packb("x" * 1_000_000))
    for at in range(0, 900_000, 10_000):
        reader.feed(text[at : at + 10_000])
    assert reader.held_bytes > 1_700_000


def test_answer_of_an_http_server_when_read_as_a_frame_then_is_named() -> None:
    """A client that was given the port of HTTP is told so, not the length that `HTTP` spells."""
    with pytest.raises(ProtocolError, match=r"the port answers by HTTP: .* sidecar\.listen"):
        FrameReader().feed(b"HTTP/1.1 400 Bad Request\r\n")
