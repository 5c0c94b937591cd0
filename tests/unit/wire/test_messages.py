"""Messages: reading is strict, bounded in memory, and names each fault."""

import threading
import tracemalloc

import msgpack
import pytest

from rlmm.errors import InvalidArgument, NotReady, ProtocolError
from rlmm.wire import messages, value_checks
from rlmm.wire.framing import FRAME_BYTES_MAX, HEAD_BYTES
from rlmm.wire.messages import (
    HELLO_BYTES_MAX,
    Response,
    answer_frame,
    id_of,
    packed,
    packed_array,
    read_answer,
    read_first_request,
    read_request,
    refusal_frame,
    request_frame,
)
from rlmm.wire.options import read_read_options
from rlmm.wire.value_checks import OddMap

pytestmark = pytest.mark.slow


def payload_of(data: bytes) -> bytes:
    return data[HEAD_BYTES:]


def test_request_comes_back_as_it_was_sent() -> None:
    """Id, method and arguments survive, tuples as arrays and bytes as bytes."""
    data = request_frame(7, "segment_for", [(b"\x00", "t", 1), {3: 4, "a": None}])
    assert read_request(payload_of(data)) == (
        7,
        "segment_for",
        [[b"\x00", "t", 1], {3: 4, "a": None}],
    )


@pytest.mark.parametrize("request_id", [0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 65_535, 65_536])
def test_answer_when_it_is_packed_already_then_is_the_same(request_id: int, count: int) -> None:
    """A packed answer has the same bytes, whatever its id and its number of parts."""
    parts = [[None, number] for number in range(count)]
    result = packed_array([packed(part) for part in parts])
    assert answer_frame(request_id, result) == answer_frame(request_id, parts)
    assert answer_frame(request_id, packed("one")) == answer_frame(request_id, "one")


@pytest.mark.parametrize("request_id", [1, 70_000])
def test_answer_when_it_is_packed_already_then_fits_a_frame_or_is_refused(request_id: int) -> None:
    """The limit is that of every answer, to the byte."""
    result = packed(bytes(100))
    size = len(payload_of(answer_frame(request_id, result)))
    assert answer_frame(request_id, result, size) == answer_frame(request_id, bytes(100))
    with pytest.raises(InvalidArgument, match="fits no frame"):
        answer_frame(request_id, result, size - 1)


def test_answer_and_refusal_come_back_as_they_were_sent() -> None:
    """A result has no error, a refusal no result and perhaps no id."""
    assert read_answer(payload_of(answer_frame(7, [True]))) == Response(7, None, [True])
    answer = read_answer(payload_of(refusal_frame(None, NotReady("no", position=5))))
    assert answer.id is None
    assert isinstance(answer.error, NotReady)
    assert answer.error.position == 5


@pytest.mark.parametrize(
    "answer",
    [
        [1, None],
        [1, None, None, None],
        {"id": 1},
        [None, None, 1],
        [True, None, 1],
        [-1, None, 1],
        [2**32, None, 1],
        [True, ["error", "", False, {}], None],
        [1, ["error", "", False, {}], 1],
        [1, "error", None],
        [1, ["error", "", False], None],
        [1, ["", "", False, {}], None],
        [1, [1, "", False, {}], None],
        [1, ["e" * 65, "", False, {}], None],
        [1, ["error", b"", False, {}], None],
        [1, ["error", "", 0, {}], None],
        [1, ["error", "", False, []], None],
        [1, ["not-ready", "", True, {"reason": None}], None],
        [1, ["not-ready", "", True, {"position": "5"}], None],
        [1, ["not-ready", "", True, {"position": 2**63}], None],
        [1, ["not-ready", "", True, {"position": True}], None],
        [1, ["stopped", "", False, {"stored_at": [1]}], None],
        [1, ["stopped", "", False, {"stored_at": [1, None]}], None],
        [1, ["stopped", "", False, {"stored_at": 1}], None],
    ],
    ids=repr,
)
def test_answer_when_it_is_none_is_refused(answer: object) -> None:
    """A client, too, takes nothing that is not an answer."""
    with pytest.raises(ProtocolError):
        read_answer(msgpack.packb(answer))


def test_message_when_it_fits_no_frame_is_refused_by_who_sends_it() -> None:
    """Too large a question or answer is an error of its maker, not of the connection."""
    with pytest.raises(InvalidArgument, match="fits no frame"):
        request_frame(1, "assign", [bytes(FRAME_BYTES_MAX)])
    with pytest.raises(InvalidArgument, match="fits no frame"):
        answer_frame(1, bytes(100), 100)
    assert answer_frame(1, bytes(90), 100)


@pytest.mark.parametrize(
    "arg",
    [2**64, object(), "\ud800", -(2**63) - 1],
    ids=["above-uint64", "no-value", "surrogate", "below-int64"],
)
def test_request_when_it_cannot_be_sent_is_refused_and_the_next_is_whole(arg: object) -> None:
    """A value without a msgpack form is an invalid argument, and the next request is whole."""
    with pytest.raises(InvalidArgument, match="cannot be sent"):
        request_frame(1, "ping", ["before", arg])
    assert read_request(payload_of(request_frame(2, "ping", []))) == (2, "ping", [])


@pytest.mark.parametrize("request_id", [0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1])
def test_id_of_what_is_no_request_is_found(request_id: int) -> None:
    """The id is read even if the rest of the frame is wrong."""
    payload = msgpack.packb([request_id, None, None])
    assert id_of(payload) == request_id
    assert id_of(memoryview(payload)[:-1]) == request_id


@pytest.mark.parametrize(
    "payload", [b"", b"\x93", b"\x92\x01", b"\x93\xcd\x01", b"\x93\xff", b"\x93\xcf" + bytes(8)]
)
def test_id_of_what_has_none_is_none(payload: bytes) -> None:
    """A frame without an id gives none."""
    assert id_of(payload) is None


@pytest.mark.parametrize("header", [b"\xdd\x00\x3f\x00\x00", b"\xdf\x00\x3f\x00\x00"])
def test_memory_when_lengths_are_made_up_is_bounded_by_the_payload(header: bytes) -> None:
    """Nested arrays that claim millions of elements, all within the limit, take nothing."""
    payload = b"\x93\x01\xa4ping" + header * 20
    payload += b"\xc0" * (FRAME_BYTES_MAX - len(payload) - 200)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            read_request(payload)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * FRAME_BYTES_MAX


def _nested_maps(size: int) -> bytes:
    return b"\x93\x01\xa4ping\xdd" + _many(b"\x81\x01" * 400 + b"\xc0", size)


def _many(element: bytes, size: int) -> bytes:
    count = size // len(element)
    return count.to_bytes(4) + element * count


COSTLY = {
    "maps in maps": _nested_maps(FRAME_BYTES_MAX - 100),
    "empty arrays": b"\x93\x01\xa6assign\xdd" + _many(b"\x90", FRAME_BYTES_MAX - 100),
    "empty maps": b"\x93\x01\xa6assign\xdd" + _many(b"\x80", FRAME_BYTES_MAX - 100),
    "nil": b"\x93\x01\xa6assign\xdd" + _many(b"\xc0", FRAME_BYTES_MAX - 100),
    "arrays of nil": b"\x93\x01\xa6assign\xdd"
    + _many(b"\xdc\x9c\x40" + b"\xc0" * 40_000, FRAME_BYTES_MAX - 100),
    "one map": b"\x93\x01\xa6status\x91\xdf"
    + (400_000).to_bytes(4)
    + b"".join(b"\xce" + number.to_bytes(4) for number in range(800_000)),
}


@pytest.mark.parametrize("kind", COSTLY)
def test_memory_when_a_request_has_millions_of_values_is_a_part_of_the_payload(kind: str) -> None:
    """A request with too many values is an invalid argument before most of them are made."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgument, match="at most 81920 values"):
            read_request(COSTLY[kind])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * FRAME_BYTES_MAX


@pytest.mark.parametrize("kind", ["maps in maps", "one map"])
def test_answer_when_it_has_too_many_maps_or_values_is_refused(kind: str) -> None:
    """A client does not build an answer of millions of values either."""
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            read_answer(COSTLY[kind])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20


def test_first_request_when_larger_than_a_hello_is_refused_unread() -> None:
    """A client without hello may send 64 KiB, and no more than 1,024 values in them."""
    hello: dict[str, object] = {"versions": [1], "client": "x" * (HELLO_BYTES_MAX - 40)}
    assert read_first_request(msgpack.packb([1, "hello", [hello]]))[1] == "hello"
    hello["client"] = "x" * HELLO_BYTES_MAX
    with pytest.raises(ProtocolError, match="no hello is larger than 65536 bytes"):
        read_first_request(msgpack.packb([1, "hello", [hello]]))
    with pytest.raises(InvalidArgument, match="at most 1024 values"):
        read_first_request(_nested_maps(60_000))


def test_requests_when_as_large_as_any_setting_allows_are_read() -> None:
    """10,000 partitions of an assignment and 10,000 look-ups are within the limit of values."""
    partitions = [[bytes(16), "t" * 249, number] for number in range(10_000)]
    assign = request_frame(1, "assign", [partitions, [], True])
    assert read_request(payload_of(assign))[2][0] == partitions
    looked_up = [[partition, 0, 0] for partition in partitions]
    lookups = request_frame(1, "segments_for", [looked_up, {"linearizable": True}])
    assert read_request(payload_of(lookups))[2][0] == looked_up


def test_keys_of_a_map_that_are_chosen_to_collide_are_refused() -> None:
    """Numbers that all fall into one place of a table are no keys: storing them takes for ever."""
    keys = {number * (2**61 - 1): 0 for number in range(1, 8)}
    _, _, (odd,) = read_request(msgpack.packb([1, "status", [keys]]))
    assert type(odd) is OddMap
    with pytest.raises(ProtocolError, match="31 bits"):
        read_first_request(msgpack.packb([1, "hello", [keys]]))
    with pytest.raises(ProtocolError, match="31 bits"):
        read_answer(msgpack.packb([1, None, keys]))


@pytest.mark.parametrize("key", [-1, -(2**63), 2**31, 2**64 - 1])
def test_argument_when_a_map_with_a_key_out_of_range_then_its_reader_refuses_it(key: int) -> None:
    """Failure scenario F61: a wrong number is a wrong argument, and no end of a connection."""
    request = msgpack.packb([1, "segment_for", [[b"0" * 16, "t", 0], 0, 0, {"at_least": {key: 1}}]])
    _, _, args = read_request(request)
    with pytest.raises(InvalidArgument, match=f"^at_least must be .* the key {key}$"):
        read_read_options(args[3])
    for read in (
        value_checks.flag,
        value_checks.mapping,
        value_checks.array,
        value_checks.uint63,
        value_checks.uuid,
    ):
        with pytest.raises(InvalidArgument, match=f"the key {key}"):
            read(OddMap(key), "it")


def test_packers_are_not_shared_between_threads() -> None:
    """Each thread has its own packer, because packers reuse their buffer."""
    packers = [messages._local.pack]
    thread = threading.Thread(target=lambda: packers.append(messages._local.pack))
    thread.start()
    thread.join()
    assert len(packers) == 2
    assert packers[0].__self__ is not packers[1].__self__  # type: ignore[attr-defined]
    assert packers[0].__self__ is messages._local.pack.__self__  # type: ignore[attr-defined]
