"""Requests that a server refuses, made by hand: our own writer would not."""

from __future__ import annotations

from typing import Final

import msgpack

from rlmm.errors import InvalidArgument, ProtocolError
from rlmm.metadata.ids import INT32_MAX, INT64_MAX
from rlmm.wire.framing import FRAME_BYTES_MAX

PART: Final = [bytes(16), "orders", 3]
SEGMENT: Final = [bytes(15) + b"\x01", 0, 99, 1, -1, 0, [[0, 0]], 1_024, None, 0, False]


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload


def _streams() -> dict[str, bytes]:
    """Yield streams with a forbidden length; the server must not wait for the rest."""
    return {
        "length-zero": bytes(4),
        "length-above-limit": (FRAME_BYTES_MAX + 1).to_bytes(4),
        "length-largest": b"\xff" * 4,
        "http": b"GET / HTTP/1.1\r\n\r\n",
    }


def _payloads() -> dict[str, bytes]:
    pack = msgpack.packb
    ping = pack([1, "ping", []])
    return {
        "truncated": ping[:-1],
        "byte-behind": ping + b"\xc0",
        "never-used-byte": b"\x93\x01\xc1\x90",
        "array-longer-than-payload": b"\x93\x01\xa4ping\xdd\xff\xff\xff\xff",
        "map-longer-than-payload": b"\x93\x01\xa4ping\xdf\xff\xff\xff\xff",
        "text-longer-than-payload": b"\x93\x01\xdb\xff\xff\xff\xffping",
        "bin-longer-than-payload": b"\x93\x01\xa4ping\x91\xc6\xff\xff\xff\xff",
        "nested-too-deep": b"\x93\x01\xa4ping" + b"\x91" * 5_000 + b"\xc0",
        "bad-utf-8": b"\x93\x01\xa4pi\xff\xfe\x90",
        "surrogate": b"\x93\x01\xa3\xed\xa0\x80\x90",
        "extension": b"\x93\x01\xa4ping\x91\xd4\x05\x00",
        "extension-empty": b"\x93\x01\xa4ping\x91\xc7\x00\x05",
        "timestamp": b"\x93\x01\xa4ping\x91\xd6\xff\x00\x00\x00\x00",
        "key-twice": b"\x93\x01\xa5hello\x91\x82\xa1a\x01\xa1a\x02",
        "key-bin": b"\x93\x01\xa5hello\x91\x81\xc4\x01a\x01",
        "key-true": b"\x93\x01\xa5hello\x91\x81\xc3\x01",
        "key-array": b"\x93\x01\xa5hello\x91\x81\x90\x01",
        "key-too-large": b"\x93\x01\xa5hello\x91\x81\xce\x80\x00\x00\x00\x01",
        "key-negative": b"\x93\x01\xa5hello\x91\x81\xff\x01",
        "no-array": pack({"id": 1}),
        "two-elements": pack([1, "ping"]),
        "four-elements": pack([1, "ping", [], None]),
        "id-nil": pack([None, "ping", []]),
        "id-true": pack([True, "ping", []]),
        "id-negative": pack([-1, "ping", []]),
        "id-too-large": pack([2**32, "ping", []]),
        "id-float": pack([1.0, "ping", []]),
        "method-bin": b"\x93\x01\xc4\x04ping\x90",
        "method-nil": pack([1, None, []]),
        "method-too-long": pack([1, "p" * 65, []]),
        "args-nil": pack([1, "ping", None]),
        "args-map": pack([1, "ping", {}]),
    }


_Requests = dict[str, tuple[str, list[object]]]


def _questions() -> _Requests:
    def part(*value: object) -> tuple[str, list[object]]:
        return "is_ready", [list(value)]

    return {
        "too-few-args": ("segment_for", [PART, 0]),
        "too-many-args": ("segment_for", [PART, 0, 0, None, None]),
        "args-for-none": ("ping", [None]),
        "partition-nil": ("is_ready", [None]),
        "partition-text": ("is_ready", ["orders-3"]),
        "partition-of-two": part(bytes(16), "orders"),
        "partition-of-four": part(bytes(16), "orders", 3, None),
        "topic-id-short": part(bytes(15), "orders", 3),
        "topic-id-text": part("0" * 16, "orders", 3),
        "topic-bin": part(bytes(16), b"orders", 3),
        "topic-too-long": part(bytes(16), "n" * 32_768, 3),
        "partition-true": part(bytes(16), "orders", True),
        "partition-float": part(bytes(16), "orders", 3.0),
        "partition-negative": part(bytes(16), "orders", -1),
        "partition-too-large": part(bytes(16), "orders", INT32_MAX + 1),
        "epoch-text": ("segment_for", [PART, "0", 0]),
        "epoch-negative": ("segment_for", [PART, -1, 0]),
        "epoch-too-large": ("segment_for", [PART, INT32_MAX + 1, 0]),
        "offset-negative": ("segment_for", [PART, 0, -1]),
        "offset-too-large": ("segment_for", [PART, 0, INT64_MAX + 1]),
        "offset-true": ("segment_for", [PART, 0, True]),
        "segment-id-short": ("segment", [PART, bytes(15)]),
    }


def _events() -> _Requests:
    epochs, size, state, flag = 6, 7, 9, 10

    def segment(at: int, value: object) -> tuple[str, list[object]]:
        return "add_segment", [PART, [*SEGMENT[:at], value, *SEGMENT[at + 1 :]]]

    return {
        "segment-of-ten": ("add_segment", [PART, SEGMENT[:-1]]),
        "segment-of-twelve": ("add_segment", [PART, [*SEGMENT, None]]),
        "segment-start-negative": segment(1, -1),
        "segment-last-before-start": segment(1, 100),
        "segment-without-epochs": segment(epochs, []),
        "segment-epochs-falling": segment(epochs, [[1, 0], [0, 5]]),
        "segment-epoch-twice": segment(epochs, [[1, 0], [1, 5]]),
        "segment-epochs-map": segment(epochs, {0: 0}),
        "segment-epoch-of-three": segment(epochs, [[0, 0, 0]]),
        "segment-size-too-large": segment(size, INT32_MAX + 1),
        "segment-custom-text": segment(8, "custom"),
        "segment-state-unknown": segment(state, 4),
        "segment-state-true": segment(state, True),
        "segment-state-name": segment(state, "COPY_SEGMENT_STARTED"),
        "segment-flag-number": segment(flag, 0),
        "delete-state-unknown": ("put_partition_delete", [PART, 1, 0, 3]),
    }


def _options() -> _Requests:
    def read(value: object) -> tuple[str, list[object]]:
        return "segment_for", [PART, 0, 0, value]

    def write(value: object) -> tuple[str, list[object]]:
        return "add_segment", [PART, SEGMENT, value]

    return {
        "option-unknown": read({"at_last": {0: 1}}),
        "option-of-a-write": read({"unassigned": "store"}),
        "options-array": read([]),
        "at-least-array": read({"at_least": [0]}),
        "at-least-text-key": read({"at_least": {"0": 1}}),
        "at-least-negative-key": read({"at_least": {-1: 1}}),
        "at-least-key-too-large": read({"at_least": {INT32_MAX + 1: 1}}),
        "at-least-text": read({"at_least": {0: "1"}}),
        "linearizable-number": read({"linearizable": 1}),
        "timeout-negative": read({"timeout_ms": -1}),
        "timeout-too-large": read({"timeout_ms": 2**31}),
        "unassigned-unknown": write({"unassigned": "drop"}),
        "option-of-a-read": write({"linearizable": True}),
        "option-of-a-wait": ("wait_ready", [PART, {"at_least": {0: 1}}]),
    }


def _others() -> _Requests:
    return {
        "lookup-of-two": ("segments_for", [[[PART, 0]]]),
        "after-short": ("list_segments", [PART, bytes(23), 10]),
        "after-text": ("list_segments", [PART, "", 10]),
        "after-negative": ("list_segments", [PART, b"\x80" + bytes(23), 10]),
        "limit-nil": ("list_segments", [PART, None, None]),
        "assign-nil": ("assign", [None, [], True]),
        "assign-complete-nil": ("assign", [[], [], None]),
        "hello-array": ("hello", [[]]),
        "hello-without-versions": ("hello", [{"client": "c"}]),
        "hello-versions-empty": ("hello", [{"versions": [], "client": "c"}]),
        "hello-version-text": ("hello", [{"versions": ["1"], "client": "c"}]),
        "hello-without-client": ("hello", [{"versions": [1]}]),
        "hello-token-bin": ("hello", [{"versions": [1], "client": "c", "token": b"t"}]),
        "hello-broker-negative": ("hello", [{"versions": [1], "client": "c", "broker_id": -1}]),
        "hello-instance-short": ("hello", [{"versions": [1], "client": "c", "instance": b"i"}]),
    }


def refused() -> list[dict[str, object]]:
    entries = [
        _entry(f"frame-{name}", data, ProtocolError.code) for name, data in _streams().items()
    ]
    entries += [
        _entry(f"message-{name}", _framed(payload), ProtocolError.code)
        for name, payload in _payloads().items()
    ]
    entries += [
        _entry(f"value-{name}", _framed(msgpack.packb([1, *request])), InvalidArgument.code)
        for name, request in {**_questions(), **_events(), **_options(), **_others()}.items()
    ]
    return entries


def _entry(name: str, data: bytes, code: str) -> dict[str, object]:
    return {"name": name, "hex": data.hex(), "code": code}
