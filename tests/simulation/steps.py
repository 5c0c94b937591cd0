"""The possible steps of writers, readers, operators and failures; `STEPS` has their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import OverBudget
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode_any
from rlmm.records.compression import Compression
from tests.simulation import cleaner, clients, elections, failures
from tests.simulation.machine import READY_S, STOP_S
from tests.support.records.strategies import damaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.world import World

    Step = Callable[[World], None]

_GRACE_S = 0.1
_KAFKAS_WAY_S = READY_S
"""How much longer a write may take that first waits to learn where its event belongs."""


# ------------------------------------------------------------------------------ writers, readers


def write(world: World) -> None:
    machine = world.pick_up()
    if machine is None:
        return
    tier = world.pick_tier()
    now_ms = machine.clock.now_ms()
    sound = world.random.random() > 0.06
    event = (tier.propose if sound else tier.propose_nonsense)(world.random, now_ms)
    timeout_s = world.random.choice((0.5, 3.0, 8.0))
    anywhere = world.random.random() < 0.15
    world.begin(
        f"write of {clients.name_of(event)}",
        machine,
        timeout_s + (_KAFKAS_WAY_S if anywhere else 0.0) + _GRACE_S,
        clients.write(world, machine, tier, event, timeout_s, anywhere=anywhere),
    )


def write_many(world: World) -> None:
    for _ in range(world.random.randrange(2, 5)):
        write(world)


def write_unread(world: World) -> None:
    """Store events that a leader is lost with before any follower has read them."""
    place, topic_id = failures.any_place(world), world.topic.topic_id
    if place is None:
        return
    world.script.stall(place)
    world.tell("broker", f"{place}: stalls")
    write_many(world)

    def resume() -> None:
        if world.topic.topic_id == topic_id:
            world.script.resume(place)

    elections.lose_later(world, place, resume)


def write_foreign(world: World) -> None:
    """Store events of a broker in the log without an engine, some of them in one batch."""
    random = world.random
    place = failures.any_place(world)
    if place is None:
        return
    tiers = [tier for tier in world.tiers if world.place_of(tier) == place]
    if not tiers:
        return
    events = []
    for _ in range(random.choice((1, 1, 2, 4))):
        tier = random.choice(tiers)
        sound = random.random() > 0.1
        event = (tier.propose if sound else tier.propose_nonsense)(random, world.clock.now_ms())
        events.append(event)
        if sound:
            tier.applied(event)
    values = [encode_any(event) for event in events]
    world.tell("broker", f"{place}: " + "; ".join(map(clients.name_of, events)))
    world.store(place, *values, compression=random.choice((Compression.NONE, Compression.ZSTD)))


def write_transaction(world: World) -> None:
    """Store records between control records; those of an aborted transaction count as well."""
    place = failures.any_place(world)
    if place is None:
        return
    tiers = [tier for tier in world.tiers if world.place_of(tier) == place]
    values = []
    if tiers and world.random.random() < 0.7:
        tier = world.random.choice(tiers)
        event = tier.propose(world.random, world.clock.now_ms())
        tier.applied(event)
        values.append(encode_any(event))
    first = world.script.write_transaction(place, *values, is_committed=world.random.random() < 0.5)
    world.tell("broker", f"{place}: a transaction of {len(values)} records from {first} on")


def write_poison(world: World) -> None:
    place = failures.any_place(world)
    if place is None:
        return
    tier = world.random.choice(world.tiers)
    value = damaged(
        world.random, encode_any(tier.propose_nonsense(world.random, world.clock.now_ms()))
    )
    world.tell("stranger", f"{place}: {len(value)} bytes of something")
    world.store(place, value)


def read(world: World) -> None:
    for machine in world.machines:
        if machine.engine is not None:
            for _ in range(3):
                clients.ask(world, machine, world.pick_tier())


def read_current(world: World) -> None:
    machine = world.pick_up()
    if machine is not None:
        world.begin(
            "linearizable read",
            machine,
            2.0 + _GRACE_S,
            clients.read_current(world, machine, world.pick_tier()),
        )


def wait_ready(world: World) -> None:
    machine = world.pick_up()
    if machine is not None:
        timeout_s = world.random.choice((2.0, 25.0))
        call = clients.wait_ready(world, machine, world.pick_tier(), timeout_s)
        world.begin("wait for readiness", machine, timeout_s + _GRACE_S, call)


def give_up_waiting(world: World) -> None:
    calls = [operation for operation in world.operations if operation.machine.is_up]
    if calls:
        operation = world.random.choice(calls)
        world.tell("client", f"gives up: {operation.what}")
        operation.task.cancel()


# ------------------------------------------------------------------------------------- operators


def reassign(world: World) -> None:
    machine = world.pick_up()
    if machine is None or machine.engine is None:
        return
    assignment = draw_assignment(world)
    try:
        generation = machine.assign(assignment)
    except OverBudget:
        return
    world.tell(machine.name, f"answers for {assignment}")
    call = clients.wait_settled(world, machine, generation)
    world.begin("assignment", machine, 3.0 + _GRACE_S, call)


def draw_assignment(world: World) -> Assignment:
    random = world.random
    match random.randrange(8):
        case 0:
            return Assignment.nothing()
        case 1 | 2:
            places = range(world.partition_count)
            return Assignment.of_metadata(place for place in places if random.random() < 0.6)
        case 3 | 4:
            tiers = [tier.partition for tier in world.tiers if random.random() < 0.6]
            return Assignment.of_user(tiers)
    return Assignment.everything()


def start(world: World) -> None:
    down = [machine for machine in world.machines if machine.engine is None]
    if down and world.topic.identity is not None:
        machine = world.random.choice(down)
        assignment = draw_assignment(world)
        world.tell(machine.name, f"starts, answers for {assignment}")
        machine.start(assignment)


def stop(world: World) -> None:
    machine = world.pick_up()
    if machine is not None:
        world.tell(machine.name, "stops")
        world.begin("stop", machine, STOP_S, machine.stop())


def flush(world: World) -> None:
    machine = world.pick_up()
    if machine is not None:
        world.tell(machine.name, "writes snapshots of everything")
        world.begin("flush", machine, STOP_S, machine.flush())


def crash(world: World) -> None:
    """Cut the power of a machine, now or in the middle of a coming disk call."""
    running = [machine for machine in world.machines if machine.engine is not None]
    if not running:
        return
    machine = world.random.choice(running)
    if world.random.random() < 0.5:
        machine.platter.fuse = world.random.randrange(12)
        world.tell(machine.name, f"its power fails in {machine.platter.fuse} calls of the disk")
        return
    world.tell(machine.name, "crashes")
    machine.crash()


def set_clock(world: World) -> None:
    machine = world.random.choice(world.machines)
    machine.clock.skew_ms = world.random.randrange(-600_000, 600_000)


def fill_memory(world: World) -> None:
    machine = world.random.choice(world.machines)
    machine.resident = 1_000_000
    world.tell(machine.name, "its memory is used up")

    def free() -> None:
        machine.resident = 0

    world.later(failures.duration_s(world), free)


def suspend(world: World) -> None:
    """Let the hosts stand still: the questions that waited come before any timer."""
    if world.random.random() < 0.7:
        write_foreign(world)
    pause_s = world.random.choice((1.0, 4.0, 8.0, 60.0))
    world.tell("hosts", f"stand still for {pause_s} s")
    world.loop.jump(pause_s)
    for operation in world.operations:
        operation.deadline_s = max(operation.deadline_s, world.now_s + _GRACE_S)
    read(world)


def pass_time(world: World) -> None:
    world.pause_s = world.random.choice((1.0, 3.0, 6.0))


STEPS: dict[Step, int] = {
    write: 30,
    write_many: 6,
    write_unread: 2,
    write_foreign: 14,
    cleaner.write_holes: 3,
    cleaner.rewrite: 2,
    write_transaction: 3,
    write_poison: 2,
    read: 24,
    read_current: 5,
    wait_ready: 5,
    give_up_waiting: 3,
    reassign: 6,
    start: 9,
    stop: 2,
    flush: 2,
    crash: 4,
    set_clock: 1,
    fill_memory: 1,
    failures.trouble_wire: 6,
    failures.trouble_disk: 3,
    failures.trouble_partition: 6,
    failures.trouble_cluster: 1,
    failures.deliver_again: 3,
    failures.damage_snapshot: 2,
    failures.trim: 2,
    elections.lose_records: 2,
    elections.lose_records_unassigned: 1,
    elections.lose_records_down: 1,
    elections.clean: 2,
    suspend: 2,
    failures.recreate: 1,
    pass_time: 4,
}
