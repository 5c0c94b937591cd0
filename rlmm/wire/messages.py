"""
Messages: requests `[id, method, args]`, answers `[id, nil, result]`, refusals `[id, error, nil]`.

Reading is strict: no extension types, no invalid UTF-8, no repeated or odd keys of maps, nothing
behind the message, no memory for lengths that the payload does not have, and a bounded number of
values and maps. Invariant: reading raises `ProtocolError`, or `InvalidArgument` for a request that
has too many values, and nothing else.
"""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from msgpack import Packer, Unpacker, unpackb
from msgpack.exceptions import OutOfData

from rlmm.errors import InvalidArgument, ProtocolError
from rlmm.metadata.ids import INT32_MAX
from rlmm.wire.errors import error_value, read_error
from rlmm.wire.framing import FRAME_BYTES_MAX, WalkedPayload, frame
from rlmm.wire.value_checks import OddMap, form

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.errors import RlmmError

    Pairs = list[tuple[object, object]]

ID_MAX: Final = 2**32 - 1
METHOD_CHARS_MAX: Final = 64
HELLO_BYTES_MAX: Final = 64 * 1024
HELLO_VALUES_MAX: Final = 1_024
"""A hello has 17 keys and versions at most; the rest is room for what later clients say."""
REQUEST_VALUES_MAX: Final = 80 * 1024
"""Values in one request: 10,000 look-ups, the most that can be allowed, have 70,000."""
REQUEST_MAPS_MAX: Final = 64
"""Maps in one request; a request has one, for its options."""
ANSWER_VALUES_MAX: Final = 1024 * 1024
"""Values in one answer of up to 4 MiB; a larger answer has one for each four of its bytes."""
ANSWER_MAPS_MAX: Final = 64 * 1024
"""Maps in one answer; `status` of 1,000 brokers has some thousand."""
_SMALL_BYTES: Final = 512
"""Payloads up to here are read at once: lengths in them cannot ask for much."""
_COUNTED_BYTES: Final = 2 * 1024
"""Values of payloads up to here are not counted: a thousand maps are the most."""
_MAP_LENGTH_MAX: Final = 64 * 1024
_MAP_TOO_LONG: Final = f"max_map_len({_MAP_LENGTH_MAX})"
_ANSWER_BYTES_PER_VALUE: Final = 4


_pack_length = struct.Struct(">I").pack
_pack_head = struct.Struct(">IBBIB").pack
"""The length of a frame, and an answer up to its result, where the id has four bytes."""
_HEAD_BYTES: Final = 7
_LONG_ID: Final = 1 << 16
"""Ids from here on have four bytes."""
_SHORT_ARRAY: Final = 16
"""Arrays of fewer elements have their length in their first byte."""


class PackedResult(bytes):
    """A result, or a part of one, that is packed already because it is sent often."""

    __slots__ = ()


class Response(NamedTuple):
    """The answer to the request *id*; `None` where the other side could not read the id."""

    id: int | None
    error: RlmmError | None
    result: object


class _ValueLimit:
    """
    Counts values and maps while they are made, and ends the reading at the limit.

    Arrays and maps are counted when they are whole, so that reading goes over the limit by one of
    them at most: the library's own limits bound that one.
    """

    __slots__ = ("_left", "_map_of", "_maps_left", "maps_max", "values_max")

    def __init__(self, values_max: int, maps_max: int, map_of: Callable[[Pairs], object]) -> None:
        self.values_max = self._left = values_max
        self.maps_max = self._maps_left = maps_max
        self._map_of = map_of

    def array(self, values: list[object]) -> list[object]:
        self._left -= len(values)
        if self._left < 0:
            msg = f"a message of this kind has at most {self.values_max} values"
            raise InvalidArgument(msg)
        return values

    def map(self, pairs: Pairs) -> object:
        self._left -= 2 * len(pairs)
        self._maps_left -= 1
        if self._left < 0 or self._maps_left < 0:
            msg = (
                f"a message of this kind has at most {self.values_max} values and "
                f"{self.maps_max} maps"
            )
            raise InvalidArgument(msg)
        return self._map_of(pairs)


class _Local(threading.local):
    """A packer for each thread, since its reused buffer is not to be shared."""

    def __init__(self) -> None:
        self.pack = Packer(autoreset=True).pack


_local = _Local()


def request_frame(
    request_id: int, method: str, args: object, frame_bytes_max: int = FRAME_BYTES_MAX
) -> bytes:
    """`InvalidArgument` where *args* cannot be sent, or fit no frame."""
    try:
        payload = _local.pack((request_id, method, args))
    except (OverflowError, TypeError, ValueError) as error:
        msg = f"the arguments of {method} cannot be sent: {_why(error)}"
        raise InvalidArgument(msg) from None
    return frame(payload, frame_bytes_max)


def answer_frame(request_id: int, result: object, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes:
    """`InvalidArgument` where the frame would be too large."""
    if type(result) is PackedResult:
        if request_id >= _LONG_ID and len(result) <= frame_bytes_max - _HEAD_BYTES:
            return _pack_head(len(result) + _HEAD_BYTES, 0x93, 0xCE, request_id, 0xC0) + result
        payload: bytes = b"\x93" + _local.pack(request_id) + b"\xc0" + result
    else:
        payload = _local.pack((request_id, None, result))
    size = len(payload)
    if size > frame_bytes_max:
        return frame(payload, frame_bytes_max)
    return _pack_length(size) + payload


def packed(value: object) -> PackedResult:
    return PackedResult(_local.pack(value))


def packed_array(elements: list[bytes]) -> PackedResult:
    count = len(elements)
    if count < _SHORT_ARRAY:
        head = bytes((0x90 | count,))
    else:
        head = b"\xdd" + _pack_length(count) if count >> 16 else b"\xdc" + count.to_bytes(2)
    return PackedResult(head + b"".join(elements))


def refusal_frame(request_id: int | None, error: RlmmError) -> bytes:
    """Never too large, since messages are cut."""
    return frame(_local.pack((request_id, error_value(error), None)))


def read_request(payload: bytes | memoryview) -> tuple[int, str, list[object]]:
    """
    Return id, method and arguments of a request.

    A map with a number as key that is too small or too large comes as `OddMap`, which the reader of
    that argument refuses. `InvalidArgument`: the request has too many values.
    """
    return _request_of(_unpack(payload, _map_of_request, REQUEST_VALUES_MAX, REQUEST_MAPS_MAX))


def read_first_request(payload: bytes | memoryview) -> tuple[int, str, list[object]]:
    """Return a request of a client that has not said hello yet: small, and without odd maps."""
    if len(payload) > HELLO_BYTES_MAX:
        msg = f"no hello is larger than {HELLO_BYTES_MAX} bytes, got {len(payload)}"
        raise ProtocolError(msg)
    return _request_of(_unpack(payload, _map_of, HELLO_VALUES_MAX, REQUEST_MAPS_MAX))


def _request_of(message: object) -> tuple[int, str, list[object]]:
    if type(message) is not list or len(message) != 3:
        msg = f"a request is an array of id, method and arguments, got {form(message)}"
        raise ProtocolError(msg)
    request_id, method, args = message
    if type(request_id) is not int or not 0 <= request_id <= ID_MAX:
        msg = f"the id of a request is a number from 0 to {ID_MAX}, got {form(request_id)}"
        raise ProtocolError(msg)
    if type(method) is not str or len(method) > METHOD_CHARS_MAX:
        msg = f"the method of a request is a short text, got {form(method)}"
        raise ProtocolError(msg)
    if type(args) is not list:
        msg = f"the arguments of a request are an array, got {form(args)}"
        raise ProtocolError(msg)
    return request_id, method, args


def read_answer(payload: bytes | memoryview) -> Response:
    values_max = max(ANSWER_VALUES_MAX, len(payload) // _ANSWER_BYTES_PER_VALUE)
    try:
        message = _unpack(payload, _map_of, values_max, ANSWER_MAPS_MAX)
    except InvalidArgument as refusal:
        raise ProtocolError(str(refusal)) from None
    if type(message) is not list or len(message) != 3:
        msg = f"an answer is an array of id, error and result, got {form(message)}"
        raise ProtocolError(msg)
    request_id, error, result = message
    if error is None:
        if type(request_id) is not int or not 0 <= request_id <= ID_MAX:
            msg = f"the id of an answer is a number from 0 to {ID_MAX}, got {form(request_id)}"
            raise ProtocolError(msg)
        return Response(request_id, None, result)
    if request_id is not None and (type(request_id) is not int or not 0 <= request_id <= ID_MAX):
        msg = f"the id of a refusal is nil or 0 to {ID_MAX}, got {form(request_id)}"
        raise ProtocolError(msg)
    if result is not None:
        msg = f"a refusal has no result, got {form(result)}"
        raise ProtocolError(msg)
    return Response(request_id, read_error(error), None)


def id_of(payload: bytes | memoryview) -> int | None:
    """Return the id of a malformed request, for the refusal, if at least that can be read."""
    head = bytes(payload[:6])
    if len(head) < 2 or head[0] != 0x93:
        return None
    if head[1] <= 0x7F:
        return head[1]
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4}.get(head[1])
    if width is None or len(head) < 2 + width:
        return None
    return int.from_bytes(head[2 : 2 + width])


def _unpack(
    payload: bytes | memoryview,
    map_of: Callable[[Pairs], object],
    values_max: int,
    maps_max: int,
) -> object:
    try:
        if len(payload) > _SMALL_BYTES and type(payload) is not WalkedPayload:
            # Memory for an array is taken when its length is read. Going over the whole without
            # making anything of it shows that every length is backed by as many values.
            unpacker = Unpacker(max_buffer_size=len(payload), max_ext_len=0)
            unpacker.feed(payload)
            unpacker.skip()
        if len(payload) <= _COUNTED_BYTES:
            return unpackb(
                payload,
                raw=False,
                strict_map_key=False,
                object_pairs_hook=map_of,
                ext_hook=_refuse_extension,
                max_ext_len=0,
            )
        limit = _ValueLimit(values_max, maps_max, map_of)
        return unpackb(
            payload,
            raw=False,
            strict_map_key=False,
            object_pairs_hook=limit.map,
            list_hook=limit.array,
            ext_hook=_refuse_extension,
            max_ext_len=0,
            max_array_len=values_max,
            max_map_len=min(values_max, _MAP_LENGTH_MAX),
        )
    except (ProtocolError, InvalidArgument):
        raise
    except (ValueError, TypeError, OutOfData) as error:
        if f"max_array_len({values_max})" in str(error) or _MAP_TOO_LONG in str(error):
            msg = f"a message of this kind has at most {values_max} values, {_MAP_LENGTH_MAX} keys"
            raise InvalidArgument(msg) from None
        msg = f"{len(payload)} bytes are no message in msgpack: {_why(error)}"
        raise ProtocolError(msg) from None


def _refuse_extension(kind: int, _: bytes) -> object:
    """Return an extension without any bytes; those with some are too long."""
    msg = f"a message has no extension types, got {kind}"
    raise ProtocolError(msg)


def _map_of_request(pairs: Pairs) -> object:
    """Return a map; an `OddMap` for a key of `at_least` that is out of range."""
    for key, _ in pairs:
        if type(key) is int and not 0 <= key <= INT32_MAX:
            return OddMap(key)
    return _map_of(pairs)


def _map_of(pairs: Pairs) -> dict[object, object]:
    """Return a map with texts or numbers of 31 bits as keys; larger ones could all collide."""
    for key, _ in pairs:
        if type(key) is not str and (type(key) is not int or not 0 <= key <= INT32_MAX):
            msg = f"a key of a map is a text or a number of 31 bits, got {form(key)}"
            raise ProtocolError(msg)
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "a key of a map stands in it twice"
        raise ProtocolError(msg)
    return found


def _why(error: Exception) -> str:
    return f"{type(error).__name__} {error}"[:200]
