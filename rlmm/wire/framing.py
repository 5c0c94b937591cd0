"""
Framing: a length of four bytes, most significant first, and as many bytes of payload.

Invariants: the frames that come out do not depend on how the stream was cut into pieces; a length
that is not allowed is refused before anything is kept for it; never more is held than one frame and
the piece that came last.
"""

from __future__ import annotations

import struct
from typing import Final

from rlmm.errors import InvalidArgument, ProtocolError

FRAME_BYTES_MAX: Final = 4 * 1024 * 1024
HEAD_BYTES: Final = 4

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


class FrameReader:
    __slots__ = ("_frame_bytes_max", "_needed", "_partial", "_refused")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._partial = bytearray()
        self._needed = HEAD_BYTES
        """Bytes of *partial* with which it is known more, or complete."""
        self._refused: ProtocolError | None = None

    @property
    def refused(self) -> ProtocolError | None:
        """Return the refusal of a length that is not allowed: the next call of `feed` raises it."""
        return self._refused

    @property
    def held_bytes(self) -> int:
        return len(self._partial)

    def drop(self) -> None:
        """
        Let go of an unfinished frame at once, whatever still refers to this reader, and of a
        refusal, whose traceback refers to the whole connection.
        """
        self._partial = bytearray()
        self._refused = None

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
            partial += data
            if len(partial) < self._needed:
                return []
            data = bytes(partial)
            partial.clear()
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
            payloads.append(data[at + HEAD_BYTES : at + needed])
            at += needed
            needed = HEAD_BYTES
        if at < stop:
            partial += data[at:] if at else data
        self._needed = needed
        return payloads

    def _refuse(self, size: int, payloads: list[bytes]) -> list[bytes]:
        if size == int.from_bytes(b"HTTP"):
            msg = "the port answers by HTTP: frames have a port of their own, see sidecar.listen"
        else:
            msg = f"a frame of {size} bytes is announced, allowed are 1 to {self._frame_bytes_max}"
        self._refused = ProtocolError(msg)
        if not payloads:
            raise self._refused
        return payloads
