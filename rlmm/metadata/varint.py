"""Kafka's unsigned varints: seven bits a byte, least significant first."""

from __future__ import annotations

_ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))


def encode_varint(number: int) -> bytes:
    if number < 0x80:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
