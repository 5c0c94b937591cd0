"""Turns, held bytes and places: what one client may take of what all share."""

from __future__ import annotations

import asyncio
from typing import Any

from rlmm.sidecar.connection_slots import ConnectionSlots
from rlmm.sidecar.held_bytes import HeldBytes
from rlmm.sidecar.request_scheduler import ROUND_S, RequestScheduler


class Connection:
    """A connection by its client's name, its address and what happened to it."""

    def __init__(self, client_name: str = "", address: str = "", took: list[str] | None = None):
        self.client_name = client_name
        self.address = address
        self.reason: str | None = None
        self._took = took if took is not None else []

    def go_on(self) -> None:
        self._took.append(f"{self.client_name} {self.address}".rstrip())

    def abort(self, reason: str | None = None) -> None:
        self.reason = reason


async def test_turns_when_one_client_has_many_connections_then_others_wait_for_one() -> None:
    """A client with one connection waits for one connection of each other client at most."""
    took: list[str] = []
    turns = RequestScheduler(lambda: 0.0)
    for name in ("greedy", "greedy", "greedy", "modest", "greedy"):
        turns.wait(Connection(name, took=took))
    await asyncio.sleep(0)
    assert took == ["greedy", "modest", "greedy", "greedy", "greedy"]


async def served_by_round(turns: RequestScheduler, count: int) -> list[int]:
    """Return how many of *count* connections each turn of the event loop serves."""
    took: list[str] = []
    for number in range(count):
        turns.wait(Connection(str(number), took=took))
    rounds = []
    while len(took) < count:
        before = len(took)
        await asyncio.sleep(0)
        rounds.append(len(took) - before)
    return rounds


async def test_turns_when_their_time_is_over_then_the_event_loop_does_other_work_between() -> None:
    """A round ends by time, and the rest of it comes in later turns of the event loop."""
    now_s = 0.0

    def tick() -> float:
        nonlocal now_s
        now_s += ROUND_S / 2
        return now_s

    assert await served_by_round(RequestScheduler(tick), 4) == [2, 2]


async def test_turns_when_many_take_no_time_then_some_in_each_turn_of_the_event_loop() -> None:
    """Connections that only read on take their time afterwards: a round lets few of them do so."""
    assert await served_by_round(RequestScheduler(lambda: 0.0), 20) == [8, 8, 4]


async def test_turns_when_a_request_has_begun_then_it_ends_before_others_of_its_client() -> None:
    """A request that has begun keeps memory: its client has no second one until it is answered."""
    took: list[str] = []
    turns = RequestScheduler(lambda: 0.0)
    turns.wait(Connection("greedy", "first", took))
    turns.wait(Connection("modest", took=took))
    turns.wait(Connection("greedy", "begun", took), has_begun=True)
    await asyncio.sleep(0)
    assert took == ["greedy begun", "modest", "greedy first"]


async def test_turns_when_this_turn_of_the_loop_is_spent_then_the_next_one_has_time() -> None:
    """Requests are answered at once while the turn of the event loop has time for it."""
    now_s = 0.0
    turns = RequestScheduler(lambda: now_s)
    assert turns.may_begin()
    now_s = ROUND_S / 2
    assert turns.may_begin()
    now_s = ROUND_S
    assert not turns.may_begin()
    await asyncio.sleep(0)
    assert turns.may_begin()


def test_held_bytes_when_too_many_then_the_client_with_most_loses_its_largest() -> None:
    """The connection that goes is not the one that came last, but of the client with most."""
    held = HeldBytes()
    modest, small, large = Connection("modest"), Connection("greedy"), Connection("greedy")
    for connection, size in ((modest, 50), (small, 20), (large, 40)):
        held.hold(connection, size)
        held.keep_below(100, connection, "memory")
    assert (modest.reason, small.reason, large.reason) == (None, None, "memory")
    held.hold(large, 0)
    assert held.total == 70


def entered(places: ConnectionSlots, *connections: Connection) -> list[bool]:
    found: list[Any] = list(connections)
    return [places.enter(one) for one in found]


def test_places_when_all_are_taken_then_the_first_that_has_not_said_hello_goes() -> None:
    """Strangers never refuse a place to a client of TCP or of the Unix socket."""
    places = ConnectionSlots(8, 100)
    known: list[Any] = [Connection(address=f"10.0.0.{number}") for number in range(4)]
    for one in known:
        assert places.enter(one)
        places.greeted(one)
    strangers = [Connection(address=f"10.0.1.{number}") for number in range(4)]
    assert entered(places, *strangers) == [True] * 4
    assert [one.reason for one in strangers] == ["displaced", "displaced", None, None]
    assert entered(places, *(Connection() for _ in range(4))) == [True] * 4
    assert len(places) == 8
    assert [one.reason for one in strangers[2:]] == ["displaced", "displaced"]
    assert [one.reason for one in known] == [None] * 4
    assert entered(places, Connection(), Connection(address="10.0.0.9")) == [False, False]


def test_places_when_tcp_clients_have_all_they_may_then_the_unix_socket_has_some_left() -> None:
    """A quarter of few places, and 64 of many, are for the Unix socket alone."""
    places = ConnectionSlots(8, 100)
    clients: list[Any] = [Connection(address=f"10.0.0.{number}") for number in range(7)]
    for one in clients[:6]:
        assert places.enter(one)
        places.greeted(one)
    assert entered(places, clients[6]) == [False]
    assert entered(places, Connection(), Connection(), Connection()) == [True, True, False]


def test_places_when_one_address_sends_many_strangers_then_its_first_one_goes() -> None:
    """The limit of an address spares strangers of other addresses."""
    places = ConnectionSlots(1_000, 2)
    other = Connection(address="10.0.0.2")
    crowd = [Connection(address="10.0.0.1") for _ in range(5)]
    assert entered(places, other, *crowd) == [True] * 6
    assert [one.reason for one in crowd] == ["displaced"] * 3 + [None] * 2
    assert other.reason is None
    assert len(places) == 3
