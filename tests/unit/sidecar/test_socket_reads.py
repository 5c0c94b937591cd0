"""Reads of plain sockets for all connections in one turn of the event loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.sidecar import socket_reads
from rlmm.sidecar.socket_reads import RECEIVED_BYTES, SocketReaders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a turn from ending by time on a busy machine."""
    monkeypatch.setattr(socket_reads, "perf_counter", lambda: 0.0)


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.ends: list[str] = []
        self.waiting = b""

    def is_closing(self) -> bool:
        return bool(self.ends)

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.waiting += data

    def close(self) -> None:
        self.ends.append("closed")

    def abort(self) -> None:
        self.ends.append("aborted")


class Guest:
    def __init__(self, readers: SocketReaders) -> None:
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.taken: list[bytes] = []
        self.transport = Transport()
        self.fd = self.near.fileno()
        self._readers = readers
        self.resume()

    def resume(self, take: Callable[[bytes], None] | None = None) -> None:
        self._readers.resume(self.fd, take or self.taken.append, self.transport)

    def answer(self, data: bytes) -> None:
        self._readers.send(self.fd, data, self.transport)

    def received(self) -> bytes | None:
        try:
            return self.far.recv(RECEIVED_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def pause(self) -> None:
        self._readers.pause(self.fd, self.transport)


@contextmanager
def guests(count: int) -> Iterator[list[Guest]]:
    readers = SocketReaders()
    found = [Guest(readers) for _ in range(count)]
    try:
        yield found
    finally:
        readers.close()
        for guest in found:
            guest.near.close()
            guest.far.close()


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_bytes_when_many_have_some_then_each_gets_its_own_in_order() -> None:
    """Each connection gets its own bytes in order, and a silent one gets none."""
    with guests(300) as many:
        for number, guest in enumerate(many[:-1]):
            guest.far.send(b"%d" % number)
        await turn()
        assert [guest.taken for guest in many[:-1]] == [[b"%d" % n] for n in range(299)]
        assert many[-1].taken == []


async def test_bytes_when_more_than_are_taken_at_a_time_then_come_in_pieces() -> None:
    """The bytes of a large sender come in pieces, with others between them."""
    with guests(1) as (one,):
        one.far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * RECEIVED_BYTES)
        one.far.send(b"x" * (RECEIVED_BYTES + 7))
        await turn()
        assert [len(data) for data in one.taken] == [RECEIVED_BYTES, 7]


async def test_guest_when_paused_then_is_not_read_until_it_goes_on() -> None:
    """A paused connection is not read, even if paused in the same turn, and loses nothing."""
    with guests(2) as (first, second):
        for guest, other in ((first, second), (second, first)):
            guest.pause()

            def take(data: bytes, guest: Guest = guest, other: Guest = other) -> None:
                guest.taken.append(data)
                other.pause()

            guest.resume(take)
        first.far.send(b"one")
        second.far.send(b"two")
        await turn()
        assert sorted((first.taken, second.taken)) in ([[], [b"one"]], [[], [b"two"]])
        late = second if first.taken else first
        late.resume()
        await turn()
        assert (first.taken, second.taken) == ([b"one"], [b"two"])


async def test_guest_when_its_other_side_hangs_up_then_is_closed_once_and_left_alone() -> None:
    """A closed connection yields its last bytes, is closed once, and causes no further turns."""
    with guests(2) as (one, other):
        one.far.send(b"last")
        one.far.close()
        await turn()
        assert (one.taken, one.transport.ends) == ([b"last"], ["closed"])
        other.far.send(b"more")
        await turn()
        assert (other.taken, other.transport.ends) == ([b"more"], [])
        assert one.transport.ends == ["closed"]


async def test_guest_when_reading_fails_then_is_aborted_and_others_go_on() -> None:
    """A failed read closes its own connection only."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    with guests(3) as (reset, faulty, fine):
        reset.near.close()
        faulty.pause()

        def fail(data: bytes) -> None:
            raise ZeroDivisionError(data)

        faulty.resume(fail)
        faulty.far.send(b"x")
        fine.far.send(b"y")
        await turn()
        assert faulty.transport.ends == ["aborted"]
        assert [type(one["exception"]) for one in told] == [ZeroDivisionError]
        assert fine.taken == [b"y"]
        assert reset.transport.ends == []


@pytest.mark.parametrize("is_closed_first", [False, True], ids=["before", "after"])
async def test_guest_when_paused_twice_or_late_then_no_change(*, is_closed_first: bool) -> None:
    """A second or late pause of a connection changes nothing."""
    readers = SocketReaders()
    guest = Guest(readers)
    if is_closed_first:
        readers.close()
    guest.pause()
    guest.pause()
    if is_closed_first:
        guest.resume()
    else:
        readers.close()
    guest.far.send(b"x")
    await turn()
    assert guest.taken == []
    guest.near.close()
    guest.far.close()


async def test_answers_when_many_ask_in_one_turn_then_go_out_a_few_at_a_time() -> None:
    """Answers of one turn go out in groups, and all of them by the end of the turn."""
    with guests(20) as many:
        seen: list[list[bytes | None]] = []

        def answer(data: bytes, guest: Guest) -> None:
            seen.append([each.received() for each in many])
            guest.answer(data.upper())

        for number, guest in enumerate(many):
            guest.pause()
            guest.resume(partial(answer, guest=guest))
            guest.far.send(b"a%d" % number)
        await turn()
        answered = [sum(one is not None for one in row) for row in seen]
        assert answered == [0] * 16 + [16] + [0] * 3
        assert [guest.received() for guest in many].count(None) == 16
        many[0].answer(b"later")
        assert many[0].received() == b"later"


async def test_answer_when_the_other_side_takes_nothing_then_stands_in_its_transport() -> None:
    """Answers that the client does not take stay in the transport, in order."""
    with guests(1) as (one,):
        large = b"x" * (1 << 22)
        one.answer(large)
        one.answer(b"end")
        taken = b""
        while (more := one.received()) is not None:
            taken += more
        assert 0 < len(taken) < len(large)
        assert taken + one.transport.waiting == large + b"end"


async def test_turn_when_its_time_is_over_then_the_other_sockets_are_read_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A turn ends by time: one costly connection does not have all others wait behind all."""
    now_s = 0.0
    monkeypatch.setattr(socket_reads, "perf_counter", lambda: now_s)
    with guests(3) as found:
        order: list[Guest] = []

        def take(guest: Guest, _: bytes) -> None:
            nonlocal now_s
            now_s += socket_reads.TURN_S
            order.append(guest)

        for guest in found:
            guest.pause()
            guest.resume(partial(take, guest))
            guest.far.send(b"x")
        turns = []
        while len(order) < 3:
            await asyncio.sleep(0)
            turns.append(len(order))
        assert set(order) == set(found)
        assert max(after - before for before, after in pairwise([0, *turns])) == 1


async def test_sockets_when_a_turn_has_left_them_then_are_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is read behind a costly request of another socket is late, and what comes later not."""
    now_s = 0.0
    monkeypatch.setattr(socket_reads, "perf_counter", lambda: now_s)
    with guests(3) as found:
        late: list[bool] = []

        def take(guest: Guest, _: bytes) -> None:
            nonlocal now_s
            now_s += 0.0 if late else socket_reads.TURN_S
            late.append(guest._readers.is_late)

        for guest in found:
            guest.pause()
            guest.resume(partial(take, guest))
            guest.far.send(b"x")
        await turn()
        found[0].far.send(b"y")
        await turn()
        assert late == [False, True, True, False]
