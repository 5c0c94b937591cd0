"""
One zstd frame at a time, in both directions; no output passes what was expected. Pure.

Frames that are written say how much they hold, because the plugin refuses others, and chunks of a
log also carry a checksum, which every reader of zstd checks. What a frame says of itself is
compared with what is expected before a byte is allocated.
"""

from __future__ import annotations

import zstandard

from spark_tiering.layout.findings import LayoutFault, LayoutFinding

LEVEL = 3
"""The level of the plugin."""

_SIZE_UNKNOWN = 2**64 - 1


class FrameWriter:
    """
    Makes one frame of each content; equal contents become equal bytes.

    It is used by one thread at a time, and it is not sent to other processes.
    """

    def __init__(self, *, level: int = LEVEL, has_checksum: bool = True) -> None:
        self._compressor = zstandard.ZstdCompressor(
            level=level, write_content_size=True, write_checksum=has_checksum
        )

    def frame(self, content: bytes | bytearray | memoryview) -> bytes:
        """One whole frame that says how many bytes it holds."""
        return self._compressor.compress(content)


def inflate_frame(frame: bytes | memoryview, size_bytes: int, where: str) -> bytes | LayoutFinding:
    """What one frame holds, which must be *size_bytes*; *where* names it in a finding."""
    stated = _stated_size(frame, where)
    if isinstance(stated, LayoutFinding):
        return stated
    if stated != size_bytes:
        detail = f"{where}: a frame of {stated} bytes, expected {size_bytes}"
        return LayoutFinding(LayoutFault.LENGTH, detail)
    return _inflate(frame, where)


def inflate_frame_up_to(
    frame: bytes | memoryview, size_bytes_max: int, where: str
) -> bytes | LayoutFinding:
    """What one frame holds; nothing where it says that this is more than *size_bytes_max*."""
    stated = _stated_size(frame, where)
    if isinstance(stated, LayoutFinding):
        return stated
    if stated > size_bytes_max:
        detail = f"{where}: a frame of {stated} bytes, at most {size_bytes_max} are read"
        return LayoutFinding(LayoutFault.TOO_LARGE, detail)
    return _inflate(frame, where)


def _stated_size(frame: bytes | memoryview, where: str) -> int | LayoutFinding:
    try:
        parameters = zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError as error:
        return LayoutFinding(LayoutFault.DAMAGED, f"{where}: no zstd frame: {error}")
    if parameters.content_size == _SIZE_UNKNOWN:
        return LayoutFinding(LayoutFault.DAMAGED, f"{where}: a frame that does not say its size")
    return parameters.content_size


def _inflate(frame: bytes | memoryview, where: str) -> bytes | LayoutFinding:
    try:
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        return LayoutFinding(LayoutFault.DAMAGED, f"{where}: {error}")
