"""The frames of the language-neutral file: made, read and refused, byte for byte."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rlmm.errors import RlmmError
from rlmm.wire.errors import classes, error_value
from rlmm.wire.framing import FrameReader
from rlmm.wire.messages import (
    answer_frame,
    read_answer,
    read_request,
    refusal_frame,
    request_frame,
)
from rlmm.wire.methods import METHODS
from tests.support import wire_frames, wire_refused
from tests.support.msgpack_by_hand import pack
from tests.support.tree import ROOT
from tests.support.wire_frames import from_json
from tests.support.wire_reading import read_again, read_result_again

pytestmark = pytest.mark.slow

TODAY = wire_frames.FILE
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
        _, method, args = read_request(payload)
        read_again(method, args)


def test_file_holds_what_is_made_today() -> None:
    """The file says of every frame what our own types make, and no frame is missing in it."""
    stored = json.loads(TODAY.read_text())
    assert stored["frames"] == [golden.entry() for golden in wire_frames.goldens()]
    assert stored["refused"] == wire_refused.refused()
    names = [entry["name"] for entry in stored["frames"] + stored["refused"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("entry", both("request", "answer", "refusal"))
def test_frame_when_packed_by_hand_has_the_same_bytes(entry: Entry) -> None:
    """Each frame is the smallest form of what the file says it means."""
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
    """Every request is understood, into our own types, and those make its bytes again."""
    request_id, method, args = read_request(payload_of(entry))
    assert (request_id, method) == (entry["id"], entry["method"])
    assert args == from_json(entry["args"])
    assert request_frame(request_id, method, read_again(method, args)).hex() == entry["hex"]


@pytest.mark.parametrize("entry", both("answer"))
def test_answer_when_read_and_written_again_is_the_same(entry: Entry) -> None:
    """Every answer is understood, into our own types, and those make its bytes again."""
    answer = read_answer(payload_of(entry))
    assert (answer.id, answer.error) == (entry["id"], None)
    assert answer.result == from_json(entry["result"])
    assert answer.id is not None
    again = read_result_again(entry["method"], answer.result)
    assert answer_frame(answer.id, again).hex() == entry["hex"]


@pytest.mark.parametrize("entry", both("refusal"))
def test_refusal_when_read_is_the_error_that_was_sent(entry: Entry) -> None:
    """Every error comes back as its class with all it says, and makes its bytes again."""
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
    """What must be refused is refused, by the error that the file names."""
    with pytest.raises(RlmmError) as refusal:
        read_whole(bytes.fromhex(entry["hex"]))
    assert refusal.value.code == entry["code"]
    assert len(str(refusal.value)) < 400


def test_every_method_and_every_error_is_among_the_frames() -> None:
    """No method lacks a request in the file, and no error a refusal."""
    frames = json.loads(TODAY.read_text())["frames"]
    asked = {entry["method"] for entry in frames if entry["direction"] == "request"}
    assert asked == set(METHODS)
    assert {entry["error"][0] for entry in frames if entry["direction"] == "refusal"} == {
        cls.code for cls in classes()
    }


def test_everything_an_error_says_is_sent() -> None:
    """No attribute of any error stays behind when it travels."""
    for cls in classes():
        for error in wire_frames.made(cls):
            if error is not None:
                assert error_value(error)[3] == wire_frames.fields_of(error), cls
