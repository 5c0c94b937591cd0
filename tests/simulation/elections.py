"""
Elections of leaders: clean ones, and unclean ones after which a log lacks its newest records and
grows back with others: under a follower, beside it, and while no service runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import OverBudget
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode_any
from tests.simulation import clients
from tests.simulation.failures import any_place
from tests.simulation.machine import STOP_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.machine import Machine
    from tests.simulation.world import World

_APART_S = (0.0, 0.05, 0.5, 2.0)
"""How long a step waits for the one before it."""


def clean(world: World) -> None:
    """Let another replica lead that has everything: only the leader epoch changes."""
    place = any_place(world)
    if place is not None and world.topic.partitions[place].fault is None:
        world.script.elect_leader(place)
        world.tell("broker", f"{place}: another leader")


def lose_records(world: World) -> None:
    place = any_place(world)
    if place is not None:
        _lose(world, place)


def lose_records_unassigned(world: World) -> None:
    """Lose records while a machine does not read, and let it read again."""
    machine, place = world.pick_up(), any_place(world)
    if machine is None or place is None:
        return
    before = machine.engine
    assert before is not None
    world.tell(machine.name, "answers for nothing")
    machine.assign(Assignment.nothing())

    def come_back() -> None:
        if machine.is_up and machine.engine is before:
            world.tell(machine.name, "answers for all again")
            try:
                machine.assign(Assignment.everything())
            except OverBudget:
                return

    lose_later(world, place, come_back)


def lose_records_down(world: World) -> None:
    """Lose records while a machine is down, and start it again."""
    running = [machine for machine in world.machines if machine.is_up]
    place = any_place(world)
    if not running or place is None:
        return
    machine = world.random.choice(running)
    world.tell(machine.name, "goes down")
    if world.random.random() < 0.5:
        machine.crash()
    else:
        world.begin("stop", machine, STOP_S, machine.stop())
    lose_later(world, place, lambda: _start(world, machine))


def _start(world: World, machine: Machine) -> None:
    if machine.engine is None and world.topic.identity is not None:
        world.tell(machine.name, "starts, answers for all")
        machine.start(Assignment.everything())


def lose_later(world: World, place: int, then: Callable[[], None]) -> None:
    topic_id = world.topic.topic_id

    def lose() -> None:
        if not world.is_healed and world.topic.topic_id == topic_id:
            _lose(world, place)
        world.later(world.random.choice(_APART_S), go_on)

    def go_on() -> None:
        if not world.is_healed:
            then()

    world.later(world.random.choice(_APART_S), lose)


def _lose(world: World, place: int) -> None:
    """Elect a leader without the newest records; mostly others come at once in their place."""
    random, held = world.random, world.topic.partitions[place]
    count = random.choice((1, 1, 2, 3, 5, 8, 50))
    before = held.next_offset
    after = world.topic.cut(place, max(held.log_start, before - count))
    for machine in world.machines:
        machine.meet_cut(place, after)
    world.tell("broker", f"{place}: a leader that ends at {after} instead of {before}")
    world.story.count("records lost by elections")
    tiers = [tier for tier in world.tiers if world.place_of(tier) == place]
    if not tiers or random.random() < 0.3:
        return
    grown = max(0, before - after + random.choice((-1, 0, 0, 1, 4)))
    events = []
    for _ in range(grown):
        tier = random.choice(tiers)
        event = tier.propose(random, world.clock.now_ms())
        tier.applied(event)
        events.append(event)
        world.store(place, encode_any(event))
    world.tell("broker", f"{place}: " + "; ".join(map(clients.name_of, events)))
