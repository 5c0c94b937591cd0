"""Failures of network, disks, brokers and topic, each of which heals after some time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.log.memory.partition import BoundsFault
from tests.simulation.machine import LATENESS_S

if TYPE_CHECKING:
    from tests.simulation.machine import Machine
    from tests.simulation.world import World

_LONG_S = LATENESS_S + 6.0
"""Longest failure: longer than an engine may go without closing its gates."""


def duration_s(world: World) -> float:
    if world.random.random() < 0.2:
        return LATENESS_S + (_LONG_S - LATENESS_S) * world.random.random()
    return world.random.choice((0.1, 0.5, 2.0, 5.0)) * world.random.random()


def any_place(world: World) -> int | None:
    partitions = world.topic.partitions
    return world.random.randrange(len(partitions)) if partitions else None


def trouble_wire(world: World) -> None:
    machine = world.pick_up()
    wire = None if machine is None else machine.wire
    if machine is None or wire is None:
        return
    match world.random.randrange(5):
        case 0:
            wire.delay_s = world.random.choice((0.02, 0.2, 1.5))
            what = f"is slow, up to {wire.delay_s} s"
        case 1:
            wire.loss = 0.4
            what = "loses messages"
        case 2:
            wire.damage = 0.5
            what = "damages record sets"
        case _:
            wire.is_cut = True
            wire.hangs = world.random.random() < 0.5
            what = "is cut, " + ("and calls hang" if wire.hangs else "and calls fail")
    world.tell(machine.name, f"its network {what}")
    world.later(duration_s(world), wire.mend)


def trouble_disk(world: World) -> None:
    machine = world.random.choice(world.machines)
    platter = machine.platter
    match world.random.randrange(4):
        case 0:
            platter.is_full = True
            world.tell(machine.name, "its disk is full")
        case 1:
            platter.error_share = 0.2
            world.tell(machine.name, "its disk fails now and then")
        case _:
            world.loop.slow_share = 0.5
            world.tell("disks", "are slow")

    def heal() -> None:
        world.mend_disk(machine)

    world.later(duration_s(world), heal)


def trouble_partition(world: World) -> None:
    place = any_place(world)
    if place is None:
        return
    script, topic_id = world.script, world.topic.topic_id
    match world.random.randrange(6):
        case 0 | 1:
            script.lose_leader(place)
            what, heal = "has no leader", script.elect_leader
        case 2:
            fault = world.random.choice(tuple(BoundsFault))
            script.fail_bounds(place, fault)
            what, heal = f"tells no bounds, {fault.value}", script.heal_bounds
        case 3:
            script.stall(place)
            what, heal = "stalls", script.resume
        case 4:
            script.hold_appends(place)
            what, heal = "holds appends", script.release_appends
        case _:
            script.take_offline(place)
            what, heal = "is offline, damaged", script.elect_leader
    world.tell("broker", f"{place}: {what}")

    def mend() -> None:
        if world.topic.topic_id == topic_id:
            heal(place)

    world.later(duration_s(world), mend)


def trouble_cluster(world: World) -> None:
    if world.random.random() < 0.6:
        world.script.lose_brokers()
        world.tell("broker", "none answers")
    else:
        world.script.withdraw_rights()
        world.tell("broker", "nothing is permitted")
    world.later(duration_s(world), world.script.restore)


def deliver_again(world: World) -> None:
    place = any_place(world)
    if place is not None:
        world.script.deliver_again(place, world.random.randrange(1, 6))


def trim(world: World) -> None:
    place = any_place(world)
    if place is None:
        return
    held = world.topic.partitions[place]
    # Where retention has passed a cut, no log tells any more what was lost (docs/operating.md).
    end = min([held.next_offset, *(cut.cut_at for cut in world.topic.history(place).branches[1:])])
    if end > held.log_start:
        # Mostly what nobody needs any more; now and then everything.
        share = world.random.choice((0.3, 0.6, 1.0))
        before = held.log_start + round((end - held.log_start) * share)
        world.script.delete_records(place, before)
        world.tell("broker", f"{place}: the log begins at {held.log_start} now")


def recreate(world: World) -> None:
    if world.topic.topic_id is None:
        return
    if world.random.random() < 0.5:
        world.script.recreate_topic()
        world.tell("broker", "the topic is another one")
        return
    world.script.delete_topic()
    world.tell("broker", "the topic is deleted")

    def create() -> None:
        if world.topic.topic_id is None:
            world.script.create_topic(world.partition_count)
            world.tell("broker", "the topic is created")

    world.later(duration_s(world), create)


def damage_snapshot(world: World) -> None:
    down = [machine for machine in world.machines if machine.engine is None]
    found = [machine for machine in down if machine.platter.turn_bit()]
    for machine in found:
        world.judge.forget_watermarks(machine)
        world.tell(machine.name, "a snapshot is damaged")


def restore_service(world: World, machine: Machine) -> None:
    machine.resident = 0
    machine.platter.fuse = None
    world.mend_disk(machine)
    if machine.wire is not None:
        machine.wire.mend()
