"""
The frames of zstd, one at a time, within a limit. Pure. A written frame states its content size,
because the plugin refuses others; a log's chunks also carry a checksum. `zstandard`, of the extra
`tiering`, is imported when the first frame is met, so that help works without it.
"""

from __future__ import annotations

from spark_tiering.layout.findings import LayoutFault, LayoutFinding

LEVEL = 3

_SIZE_UNKNOWN = 2**64 - 1
_BLOCK_HEADER_BYTES = 3
_BLOCK_BYTES_MAX = 128 * 1024
_REPEATED_BLOCK, _COMPRESSED_BLOCK = 1, 2
_CHECKSUM_BYTES = 4


class FrameWriter:
    """Makes one frame of each content; equal contents become equal bytes. Not thread-safe."""

    def __init__(self, *, level: int = LEVEL, has_checksum: bool = True) -> None:
        import zstandard  # noqa: PLC0415  # of an extra

        self._compressor = zstandard.ZstdCompressor(
            level=level, write_content_size=True, write_checksum=has_checksum
        )

    def frame(self, content: bytes | bytearray | memoryview) -> bytes:
        return self._compressor.compress(content)


def inflate_frame(frame: bytes | memoryview, size_bytes: int, where: str) -> bytes | LayoutFinding:
    """Inflate one frame, which must hold *size_bytes*; *where* names it in a finding."""
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
    """Inflate one frame, unless it says that it holds more than *size_bytes_max*."""
    stated = _stated_size(frame, where)
    if isinstance(stated, LayoutFinding):
        return stated
    if stated > size_bytes_max:
        detail = f"{where}: a frame of {stated} bytes, at most {size_bytes_max} are read"
        return LayoutFinding(LayoutFault.TOO_LARGE, detail)
    return _inflate(frame, where)


def _stated_size(frame: bytes | memoryview, where: str) -> int | LayoutFinding:
    import zstandard  # noqa: PLC0415  # of an extra

    try:
        parameters = zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError as error:
        return LayoutFinding(LayoutFault.DAMAGED, f"{where}: no zstd frame: {error}")
    if parameters.content_size == _SIZE_UNKNOWN:
        return LayoutFinding(LayoutFault.DAMAGED, f"{where}: a frame that does not say its size")
    return parameters.content_size


def _inflate(frame: bytes | memoryview, where: str) -> bytes | LayoutFinding:
    import zstandard  # noqa: PLC0415  # of an extra

    try:
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        return LayoutFinding(LayoutFault.DAMAGED, f"{where}: {error}")


class ZstdFrameReader:
    """Reads frames of others, which need not state their content's size. Not thread-safe."""

    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415  # of an extra

        self._decompressor = zstandard.ZstdDecompressor()

    def content(self, frame: memoryview, size_bytes_max: int) -> bytes | None:
        """Return the content, at most *size_bytes_max*; None for no whole frame."""
        import zstandard  # noqa: PLC0415  # of an extra

        try:
            bound = _bound(frame)
            if bound is None or bound > size_bytes_max:
                return None
            return self._decompressor.decompress(frame, max_output_size=bound)
        except zstandard.ZstdError:
            return None


def _bound(frame: memoryview) -> int | None:
    """Return the most that a frame can hold, by its blocks; None where the bytes are no frame."""
    import zstandard  # noqa: PLC0415  # of an extra

    parameters = zstandard.get_frame_parameters(frame)
    # The library looks no further where a frame says that it is empty.
    if not parameters.content_size:
        return None
    position, size = zstandard.frame_header_size(frame), len(frame)
    bound, is_last = 0, False
    while not is_last:
        behind = position + _BLOCK_HEADER_BYTES
        if behind > size:
            return None
        header = int.from_bytes(frame[position:behind], "little")
        is_last, kind, block_bytes = header & 1 == 1, header >> 1 & 3, header >> 3
        position = behind + (1 if kind == _REPEATED_BLOCK else block_bytes)
        if kind > _COMPRESSED_BLOCK:
            return None
        bound += _BLOCK_BYTES_MAX if kind == _COMPRESSED_BLOCK else block_bytes
    if position + (_CHECKSUM_BYTES if parameters.has_checksum else 0) != size:
        return None
    if parameters.content_size != _SIZE_UNKNOWN:
        return max(bound, parameters.content_size)
    return bound
