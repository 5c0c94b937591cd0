"""The frames of the language-neutral file: made, read and refused, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import RlmmError
from rlmm.wire.errors import classes, error_value
from rlmm.wire.framing import FrameReader
from rlmm.wire.messages import (
    answer_frame,
    read_answer,
    read_first_request,
    read_request,
    refusal_frame,
    request_frame,
)
from rlmm.wire.methods import METHODS
from tests.support.repository.tree import ROOT
from tests.support.server import recorded_frames, refused_frames
from tests.support.server.frame_round_trips import read_again, read_result_again
from tests.support.server.recorded_frames import from_json

if TYPE_CHECKING:
    from pathlib import Path


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


pytestmark = pytest.mark.slow

TODAY = recorded_frames.FILE
VERSION_1 = ROOT / "tests/compat/wire-1.json"

Entry = Mapping[str, Any]


def entries(file: Path, *directions: str) -> list[Any]:
    frames = json.loads(file.read_text())["frames"]
    return [
        pytest.param(entry, id=f"{file.stem}-{entry['name']}")
        for entry in frames
        if entry["direction"] in directions
    ]


def refused(file: Path) -> list[Any]:
    return [
        pytest.param(entry, id=f"{file.stem}-{entry['name']}")
        for entry in json.loads(file.read_text())["refused"]
    ]


def both(*directions: str) -> list[Any]:
    return [*entries(TODAY, *directions), *entries(VERSION_1, *directions)]


def payload_of(entry: Entry) -> bytes:
    (payload,) = FrameReader().feed(bytes.fromhex(entry["hex"]))
    return payload


def read_whole(stream: bytes) -> None:
    for payload in FrameReader().feed(stream):
        read = read_first_request if b"hello" in payload[:12] else read_request
        _, method, args = read(payload)
        read_again(method, args)


def test_file_holds_what_is_made_today() -> None:
    """The file has every frame as our own types make it today."""
    stored = json.loads(TODAY.read_text())
    assert stored["frames"] == [golden.entry() for golden in recorded_frames.goldens()]
    assert stored["refused"] == refused_frames.refused()
    names = [entry["name"] for entry in stored["frames"] + stored["refused"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("entry", both("request", "answer", "refusal"))
def test_frame_when_packed_by_hand_has_the_same_bytes(entry: Entry) -> None:
    """Each frame is the smallest encoding of its value in the file."""
    if entry["direction"] == "request":
        message = [entry["id"], entry["method"], entry["args"]]
    elif entry["direction"] == "answer":
        message = [entry["id"], None, entry["result"]]
    else:
        message = [entry["id"], entry["error"], None]
    payload = pack(from_json(message))
    assert (len(payload).to_bytes(4) + payload).hex() == entry["hex"]


@pytest.mark.parametrize("entry", both("request"))
def test_request_when_read_and_written_again_is_the_same(entry: Entry) -> None:
    """Every request reads into our types, which write the same bytes."""
    request_id, method, args = read_request(payload_of(entry))
    assert (request_id, method) == (entry["id"], entry["method"])
    assert args == from_json(entry["args"])
    assert request_frame(request_id, method, read_again(method, args)).hex() == entry["hex"]


@pytest.mark.parametrize("entry", both("answer"))
def test_answer_when_read_and_written_again_is_the_same(entry: Entry) -> None:
    """Every answer reads into our types, which write the same bytes."""
    answer = read_answer(payload_of(entry))
    assert (answer.id, answer.error) == (entry["id"], None)
    assert answer.result == from_json(entry["result"])
    assert answer.id is not None
    again = read_result_again(entry["method"], answer.result)
    assert answer_frame(answer.id, again).hex() == entry["hex"]


@pytest.mark.parametrize("entry", both("refusal"))
def test_refusal_when_read_is_the_error_that_was_sent(entry: Entry) -> None:
    """Every error reads as its class with all fields, and writes the same bytes."""
    answer = read_answer(payload_of(entry))
    assert answer.error is not None
    assert (answer.id, answer.result) == (entry["id"], None)
    code, message, retriable, _ = entry["error"]
    known = {cls.code: cls for cls in classes()}
    assert type(answer.error) is known[code]
    assert (str(answer.error), answer.error.retriable) == (message, retriable)
    assert refusal_frame(answer.id, answer.error).hex() == entry["hex"]


@pytest.mark.parametrize("entry", [*refused(TODAY), *refused(VERSION_1)])
def test_bytes_that_mean_nothing_are_refused_by_the_named_error(entry: Entry) -> None:
    """Each wrong frame of the file raises the error that the file names."""
    with pytest.raises(RlmmError) as refusal:
        read_whole(bytes.fromhex(entry["hex"]))
    assert refusal.value.code == entry["code"]
    assert len(str(refusal.value)) < 400


def test_every_method_and_every_error_is_among_the_frames() -> None:
    """The file has a request of each method and a refusal of each error."""
    frames = json.loads(TODAY.read_text())["frames"]
    asked = {entry["method"] for entry in frames if entry["direction"] == "request"}
    assert asked == set(METHODS)
    assert {entry["error"][0] for entry in frames if entry["direction"] == "refusal"} == {
        cls.code for cls in classes()
    }


def test_everything_an_error_says_is_sent() -> None:
    """Every attribute of each error is sent."""
    for cls in classes():
        for error in recorded_frames.made(cls):
            if error is not None:
                assert error_value(error)[3] == recorded_frames.fields_of(error), cls
