"""Clients that read and write: answers against the reference, acknowledgements against a log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlmm.errors import (
    AppendUncertain,
    EventRejected,
    NotAssigned,
    NotReady,
    RlmmError,
    UnknownPartition,
    Unresolved,
)
from rlmm.gate.admission import require_known
from rlmm.metadata.decoding import decode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Applied, Duplicate, Rejected
from rlmm.pump.writer import StoredNotAssigned, WrittenEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.pump.replay import Replay
    from tests.simulation import tiers
    from tests.simulation.machine import Machine
    from tests.simulation.world import World

    Question = Callable[[Any], object]
    """Asked of an engine's reads, and of a shard: both know the same questions."""


@dataclass(slots=True)
class Operation:
    what: str
    deadline_s: float
    task: asyncio.Task[None]
    machine: Machine


# ------------------------------------------------------------------------------------- questions


def _questions(world: World, tier: tiers.Tier) -> tuple[str, Question]:
    """Return one of the questions, with arguments that are likely to find a fault."""
    random = world.random
    partition = tier.partition
    epoch = random.randrange(max(0, tier.epoch - 2), tier.epoch + 1)
    offset = random.randrange(tier.next_start + 10)
    known = list(tier.segments.values())
    match random.randrange(10 if known else 9):
        case 0 | 1 | 2:
            return f"segment_for {epoch} {offset}", lambda of: of.segment_for(
                partition, epoch, offset
            )
        case 3 | 4:
            return "segments", lambda of: of.segments(partition)
        case 5:
            return f"segments_of_epoch {epoch}", lambda of: of.segments_of_epoch(partition, epoch)
        case 6:
            return f"highest_offset {epoch}", lambda of: of.highest_offset(partition, epoch)
        case 7:
            return f"sizes {epoch}", lambda of: (
                of.size(partition),
                of.size_of_epoch(partition, epoch),
            )
        case 8:
            return (
                f"next_segment_with_txn_index {epoch} {offset}",
                lambda of: of.next_segment_with_txn_index(partition, epoch, offset),
            )
    segment = random.choice(known)
    return f"segment {segment.id.uuid}", lambda of: of.segment(segment.id)


def ask(world: World, machine: Machine, tier: tiers.Tier) -> None:
    engine = machine.engine
    assert engine is not None
    partition = tier.partition
    name, question = _questions(world, tier)
    answer: object
    try:
        answer = question(engine.reads)
    except UnknownPartition:
        answer = UnknownPartition
    except (NotReady, NotAssigned, Unresolved) as error:
        world.story.count(f"read: {type(error).__name__}")
        return
    world.story.count("read: unknown" if answer is UnknownPartition else "read: answered")
    world.judge.see_answer(machine, partition, world.now_s)
    _check_answer(world, machine, partition, (name, question, answer))


def _check_answer(
    world: World, machine: Machine, partition: TopicIdPartition, asked: tuple[str, Question, object]
) -> None:
    name, question, answer = asked
    found = _replay_of(machine, partition)
    if found is None:
        return  # the judge has said that there is no state
    topic_id, replay = found
    shard = replay.shard
    expected: object = UnknownPartition
    yardstick = world.judge.expected(topic_id, replay, partition)
    if yardstick is not None:
        try:
            require_known(yardstick, partition)
            expected = question(yardstick)
        except UnknownPartition:
            pass
    if answer != expected:
        world.judge.violated(
            "I2",
            f"{machine.name} at position {shard.position} of metadata partition "
            f"{shard.partition}: {name} of {partition} is answered by {answer}, the log says "
            f"{expected}",
        )
    if isinstance(answer, list) and name == "segments":
        reference = world.judge.reference_of(topic_id, replay)
        listed = {segment.id.uuid: segment.state for segment in answer}
        wanted = reference.listed(partition, shard.position)
        if listed != wanted:
            world.judge.violated(
                "I6", f"{machine.name} lists {listed} of {partition}, in the log are {wanted}"
            )


def _replay_of(machine: Machine, partition: TopicIdPartition) -> tuple[Uuid, Replay] | None:
    engine, topic_id = machine.engine, machine.topic_id()
    if engine is None or topic_id is None:
        return None
    replay = dict(machine.replays()).get(engine.place_of(partition))
    return None if replay is None else (topic_id, replay)


# ---------------------------------------------------------------------------------------- writes


async def write(
    world: World,
    machine: Machine,
    tier: tiers.Tier,
    event: tiers.Written,
    timeout_s: float,
    *,
    anywhere: bool = False,
) -> None:
    engine = machine.engine
    if engine is None:
        return  # the machine has crashed before it heard anything
    outcome = "cancelled"
    try:
        call = engine.store if anywhere else engine.write
        written = await call(event, timeout_s=timeout_s)
    except EventRejected as error:
        outcome = f"rejected, {error.reason}"
        tier.refused(event)
        if error.stored_at is not None:
            _check_verdict(world, machine, engine, event, *error.stored_at, Rejected)
    except (Unresolved, AppendUncertain) as error:
        outcome = f"not known: {type(error).__name__}"
        tier.unknown(event)
        _check_stored(world, machine, event, error)
    except RlmmError as error:
        outcome = f"not stored: {type(error).__name__}"
    except asyncio.CancelledError:
        tier.unknown(event)
        raise
    else:
        outcome = _acknowledged(world, machine, engine, tier, event, written)
    finally:
        world.story.tell(machine.name, f"{name_of(event)}: {outcome}")
        world.story.count(f"write: {outcome.split(' at ')[0].split(',')[0]}")


def _acknowledged(
    world: World,
    machine: Machine,
    engine: Engine,
    tier: tiers.Tier,
    event: tiers.Written,
    written: WrittenEvent | StoredNotAssigned,
) -> str:
    place, offset = written.metadata_partition, written.offset
    if isinstance(written, StoredNotAssigned):
        tier.unknown(event)
        return f"stored at {place}/{offset}"
    _check_acknowledged(world, machine, engine, event, written)
    tier.applied(event)
    world.elsewhere(machine, tier, place, offset, _life_of(world, event, place, offset))
    return f"{type(written.verdict).__name__.lower()} at {place}/{offset}"


def _check_stored(
    world: World, machine: Machine, event: tiers.Written, error: Unresolved | AppendUncertain
) -> None:
    stored_at = error.stored_at if isinstance(error, Unresolved) else None
    if stored_at is not None and _life_of(world, event, *stored_at) is None:
        world.judge.violated("I3", f"{machine.name}: {error}, but the log has it not there")


def _life_of(world: World, event: tiers.Written, place: int, offset: int) -> Uuid | None:
    """Return the latest topic that has *event* at *offset*."""
    for topic_id, life in reversed(world.topic.lives.items()):
        if place < len(life.histories) and any(
            _is_same(decode(value), event) for value in life.histories[place].published(offset)
        ):
            return topic_id
    return None


def _is_same(stored: object, event: tiers.Written) -> bool:
    """Whether the log has *event* there, with custom metadata repeated if the writer omitted it."""
    if (
        isinstance(event, SegmentUpdate)
        and isinstance(stored, SegmentUpdate)
        and event.custom_metadata is None
        and event.state is not SegmentState.COPY_SEGMENT_FINISHED
    ):
        stored = replace(stored, custom_metadata=None)
    return stored == event


def _check_acknowledged(
    world: World, machine: Machine, engine: Engine, event: tiers.Written, written: WrittenEvent
) -> None:
    """I3: an acknowledged event is in the log, applied, and seen by every later read here."""
    place, offset = written.metadata_partition, written.offset
    topic_id = _life_of(world, event, place, offset)
    if topic_id is None:
        world.judge.violated(
            "I3", f"{machine.name} acknowledged {name_of(event)} at {place}/{offset}: not there"
        )
        return
    history = world.topic.lives[topic_id].histories[place]
    if any(
        _is_same(decode(value), event) and history.holds(offset, value)
        for value in history.published(offset)
    ):
        known = machine.acknowledged.get((topic_id, place), -1)
        machine.acknowledged[topic_id, place] = max(known, offset)
    if machine.engine is engine and machine.topic_id() == topic_id and engine._gate.is_open(place):
        shard = engine._gate.shards()[place].shard
        if shard is not None and shard.position <= offset:
            world.judge.violated(
                "I3",
                f"{machine.name} acknowledged {name_of(event)} at {place}/{offset}, "
                f"and stands at {shard.position}",
            )
    _check_verdict(world, machine, engine, event, place, offset, (Applied, Duplicate))


def _check_verdict(
    world: World,
    machine: Machine,
    engine: Engine,
    event: tiers.Written,
    place: int,
    offset: int,
    kinds: type | tuple[type, ...],
) -> None:
    topic_id = _life_of(world, event, place, offset)
    replay = dict(machine.replays()).get(place)
    if machine.engine is not engine or topic_id is None or topic_id != machine.topic_id():
        return
    if replay is None or not replay.is_caught_up or replay.history.first_offset > offset:
        return
    reference = world.judge.reference_of(topic_id, replay)
    read = reference.values.get(offset)
    if replay.shard.position > offset and (read is None or not _is_same(decode(read), event)):
        world.judge.violated(
            "I3",
            f"{machine.name} told the writer of {name_of(event)} at {place}/{offset} a verdict, "
            "and has read another event there",
        )
        return
    verdict = reference.verdicts.get(offset)
    if not isinstance(verdict, kinds):
        world.judge.violated(
            "I3",
            f"{machine.name} told the writer of {name_of(event)} at {place}/{offset} another "
            f"verdict than {verdict}",
        )


# ----------------------------------------------------------------------------------------- waits


async def read_at_least(
    world: World, machine: Machine, tier: tiers.Tier, place: int, offset: int, topic_id: Uuid
) -> None:
    """I3, elsewhere: a reader that waits for an offset sees its event."""
    engine = machine.engine
    if engine is None:
        return  # the machine has crashed before it heard anything
    try:
        await engine.wait_reached({place: offset}, timeout_s=2.0)
    except RlmmError as error:
        world.story.count(f"at_least: {type(error).__name__}")
        return
    world.story.count("at_least: reached")
    if machine.engine is not engine or machine.topic_id() != topic_id:
        return
    if _position(engine, place) <= offset:
        world.judge.violated(
            "I3", f"{machine.name} says that {place}/{offset} is reached, and it is not"
        )
    if machine.is_up:
        ask(world, machine, tier)


def _position(engine: Engine, place: int) -> int:
    gated = engine._gate.shards().get(place)
    return 0 if gated is None or gated.shard is None else gated.shard.position


async def read_current(world: World, machine: Machine, tier: tiers.Tier) -> None:
    """Check that a linearizable read sees every event stored before it."""
    engine = machine.engine
    if engine is None:
        return  # the machine has crashed before it heard anything
    life = world.topic.life
    try:
        place = engine.place_of(tier.partition)
        history = None if life is None else world.topic.history(place)
        end, branch = 0, 0
        if history is not None:
            end, branch = world.topic.partitions[place].next_offset, history.current
        await engine.wait_current(tier.partition, timeout_s=2.0)
    except RlmmError as error:
        world.story.count(f"linearizable: {type(error).__name__}")
        return
    world.story.count("linearizable: current")
    if machine.engine is not engine or life is None or machine.topic_id() != life.topic_id:
        return
    assert history is not None
    if _position(engine, place) < end and history.current == branch:
        world.judge.violated(
            "I3", f"{machine.name} says that metadata partition {place} is current before {end}"
        )
    if machine.is_up:
        ask(world, machine, tier)


async def wait_settled(world: World, machine: Machine, generation: int) -> None:
    engine = machine.engine
    if engine is None:
        return  # the machine has crashed before it heard anything
    try:
        await engine.wait_settled(generation, timeout_s=3.0)
    except RlmmError as error:
        world.story.count(f"settled: {type(error).__name__}")
    else:
        world.story.count("settled")


async def wait_ready(world: World, machine: Machine, tier: tiers.Tier, timeout_s: float) -> None:
    engine = machine.engine
    if engine is None:
        return  # the machine has crashed before it heard anything
    try:
        await engine.wait_ready(tier.partition, timeout_s=timeout_s)
    except RlmmError as error:
        world.story.count(f"ready: {type(error).__name__}")
    else:
        world.story.count("ready")
        if machine.is_up and machine.engine is engine:
            ask(world, machine, tier)


def name_of(event: tiers.Written) -> str:
    if hasattr(event, "partition"):
        return f"{event.state.name} of {event.partition.topic}-{event.partition.partition}"
    partition = event.id.partition
    return f"{event.state.name} of {partition.topic}-{partition.partition} {str(event.id.uuid)[:6]}"
