"""
Framing: a length of four bytes, most significant first, and as many bytes of payload.

Invariants: the frames that come out do not depend on how the stream was cut into pieces; a length
that is not allowed is refused before anything is kept for it; never more is held than one frame,
once more while it is one large text, and the piece that came last.
"""

from __future__ import annotations

import struct
from typing import Final

from msgpack import Unpacker
from msgpack.exceptions import OutOfData

from rlmm.errors import InvalidArgument, ProtocolError

FRAME_BYTES_MAX: Final = 4 * 1024 * 1024
HEAD_BYTES: Final = 4
WALKED_BYTES: Final = 64 * 1024
"""Larger frames are walked while they come: going over one of 4 MiB at once takes milliseconds."""

_LENGTH = struct.Struct(">I")
_pack_length = _LENGTH.pack
length_at = _LENGTH.unpack_from
"""The length that the first four bytes give, as a tuple of one."""


def frame(payload: bytes, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes:
    """*payload* as a frame; `InvalidArgument` where no frame can hold it."""
    size = len(payload)
    if not 1 <= size <= frame_bytes_max:
        msg = f"a message of {size} bytes fits no frame, allowed are 1 to {frame_bytes_max}"
        raise InvalidArgument(msg)
    return _pack_length(size) + payload


class WalkedPayload(bytes):
    """One message in msgpack, in which each length is backed by as many values or bytes."""


class _Walk:
    """Goes over the message of a large frame while it comes, without making anything of it."""

    __slots__ = ("_fed_bytes", "_size", "_unpacker", "is_whole")

    def __init__(self, size: int) -> None:
        self._size = size
        self._unpacker: Unpacker | None = Unpacker(max_buffer_size=size, max_ext_len=0)
        """`None` once the frame cannot be one message: `read_request` then names the fault."""
        self._fed_bytes = 0
        self.is_whole = False
        """Whether one message ends where the frame does."""

    @property
    def held_bytes(self) -> int:
        return 0 if self._unpacker is None else self._fed_bytes - self._unpacker.tell()

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        if self._unpacker is None:
            return
        self._fed_bytes += len(data)
        try:
            self._unpacker.feed(data)
            self._unpacker.skip()
        except OutOfData:
            return
        except Exception:  # noqa: BLE001 - see above
            self._unpacker = None
            return
        self.is_whole = self._unpacker.tell() == self._size
        if not self.is_whole:
            self._unpacker = None


class FrameReader:
    __slots__ = ("_frame_bytes_max", "_needed", "_partial", "_refused", "_walk")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._partial = bytearray()
        self._needed = HEAD_BYTES
        """Bytes of *partial* with which it is known more, or complete."""
        self._refused: ProtocolError | None = None
        self._walk: _Walk | None = None

    @property
    def refused(self) -> ProtocolError | None:
        """Return the refusal of a length that is not allowed: the next call of `feed` raises it."""
        return self._refused

    @property
    def held_bytes(self) -> int:
        return len(self._partial) + (0 if self._walk is None else self._walk.held_bytes)

    def drop(self) -> None:
        """
        Let go of an unfinished frame at once, whatever still refers to this reader, and of a
        refusal, whose traceback refers to the whole connection.
        """
        self._partial = bytearray()
        self._refused = self._walk = None

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """
        Return the payloads that *data* completes, in order.

        Raises `ProtocolError` for a length that is not allowed; complete payloads before it are
        returned first, and the next call raises it: see `refused`.
        """
        if self._refused is not None:
            raise self._refused
        partial = self._partial
        if not partial and type(data) is bytes:
            # One whole frame, as nearly always: nothing is cut off but its head.
            whole = len(data) - HEAD_BYTES
            if 0 < whole <= self._frame_bytes_max and length_at(data)[0] == whole:
                return [data[HEAD_BYTES:]]
        if partial:
            joined = self._joined(data)
            if joined is None:
                return []
            data = joined
        elif type(data) is not bytes:
            data = bytes(data)
        payloads: list[bytes] = []
        at, stop = 0, len(data)
        needed = HEAD_BYTES
        while stop - at >= HEAD_BYTES:
            size: int = length_at(data, at)[0]
            if not 0 < size <= self._frame_bytes_max:
                return self._refuse(size, payloads)
            needed = HEAD_BYTES + size
            if stop - at < needed:
                break
            payloads.append(self._payload(data, at + HEAD_BYTES, at + needed))
            at += needed
            needed = HEAD_BYTES
        if at < stop:
            partial += data[at:] if at else data
        self._needed = needed
        return payloads

    def _joined(self, data: bytes | bytearray | memoryview) -> bytes | None:
        """Return all that is held and *data*, if more is known with it."""
        partial = self._partial
        before = len(partial)
        partial += data
        if before >= WALKED_BYTES < self._needed - HEAD_BYTES:
            self._go_over(data[: self._needed - before])
        if len(partial) < self._needed:
            return None
        joined = bytes(partial)
        partial.clear()
        return joined

    def _go_over(self, data: bytes | bytearray | memoryview) -> None:
        """Go over the next piece of a large frame, or over all that came of it."""
        if self._walk is None:
            self._walk = _Walk(self._needed - HEAD_BYTES)
            data = self._partial[HEAD_BYTES : self._needed]
        self._walk.feed(data)

    def _payload(self, data: bytes, start: int, stop: int) -> bytes:
        walk, self._walk = self._walk, None
        if walk is None or not walk.is_whole:
            return data[start:stop]
        return WalkedPayload(memoryview(data)[start:stop])

    def _refuse(self, size: int, payloads: list[bytes]) -> list[bytes]:
        if size == int.from_bytes(b"HTTP"):
            msg = "the port answers by HTTP: frames have a port of their own, see sidecar.listen"
        else:
            msg = f"a frame of {size} bytes is announced, allowed are 1 to {self._frame_bytes_max}"
        self._refused = ProtocolError(msg)
        if not payloads:
            raise self._refused
        return payloads
