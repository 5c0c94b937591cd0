"""
Msgpack in its smallest form, written from its specification alone: what the library that the
product uses is compared with.
"""

from __future__ import annotations


def pack(value: object) -> bytes:
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return _number(value)
        case str():
            data = value.encode()
            if len(data) < 32:
                return bytes([0xA0 | len(data)]) + data
            return _sized(len(data), 0xD9, 0xDA, 0xDB) + data
        case bytes():
            return _sized(len(value), 0xC4, 0xC5, 0xC6) + value
        case list() | tuple():
            head = bytes([0x90 | len(value)]) if len(value) < 16 else b""
            head = head or _sized(len(value), None, 0xDC, 0xDD)
            return head + b"".join(map(pack, value))
        case dict():
            head = bytes([0x80 | len(value)]) if len(value) < 16 else b""
            head = head or _sized(len(value), None, 0xDE, 0xDF)
            return head + b"".join(pack(key) + pack(one) for key, one in value.items())
    raise TypeError(type(value))


def _number(value: int) -> bytes:
    if -32 <= value < 128:
        return value.to_bytes(1, signed=value < 0)
    for width, unsigned, signed in ((1, 0xCC, 0xD0), (2, 0xCD, 0xD1), (4, 0xCE, 0xD2)):
        if 0 <= value < 1 << 8 * width:
            return bytes([unsigned]) + value.to_bytes(width)
        if -(1 << 8 * width - 1) <= value < 0:
            return bytes([signed]) + value.to_bytes(width, signed=True)
    return bytes([0xCF if value >= 0 else 0xD3]) + value.to_bytes(8, signed=value < 0)


def _sized(size: int, one: int | None, two: int, four: int) -> bytes:
    if one is not None and size < 1 << 8:
        return bytes([one, size])
    if size < 1 << 16:
        return bytes([two]) + size.to_bytes(2)
    return bytes([four]) + size.to_bytes(4)
