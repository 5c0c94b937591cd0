"""
Random histories of one user partition that several brokers copy at once. Elections are unclean,
segments overlap and finish out of order, events repeat, come early or never. Nothing of it stops
Kafka's own manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.ids import SegmentId, Uuid
from tests.support.builders import delete_finished, delete_started, finished, started

if TYPE_CHECKING:
    import random

    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

    Event = SegmentMetadata | SegmentUpdate

EPOCHS = 5
BROKERS = (1, 2, 3)
STEP = 100


class RivalHistory:
    """Makes events of one user partition; equal seeds make equal ones."""

    def __init__(self, partition: TopicIdPartition, chance: random.Random, segments: int) -> None:
        self.last = segments * STEP // len(BROKERS)
        self._partition = partition
        self._chance = chance
        self._clock_ms = 1_700_000_000_000
        lives = [self._life(broker) for broker in BROKERS for _ in range(segments // len(BROKERS))]
        self.events = self._mixed(lives)

    def _life(self, broker: int) -> list[Event]:
        chance = self._chance
        one = SegmentId(self._partition, Uuid(chance.randbytes(16)))
        first = chance.randrange(self.last)
        if chance.random() < 0.6:
            first -= first % STEP  # the same place as another one's
        last = first + chance.choice([STEP - 1, STEP - 1, chance.randint(1, 2 * STEP)])
        start = self._start(one, broker, first, last)
        custom = chance.choice([None, b"", b"\x01", chance.randbytes(130)])
        moves = [finished, delete_started, delete_finished]
        if chance.random() < 0.1:
            moves = [delete_started, delete_finished]  # given up
        reached = chance.choices(range(len(moves) + 1), [1, *[4] * (len(moves) - 1), 2])[0]
        updates = [
            move(one, broker_id=broker, custom_metadata=custom, event_timestamp_ms=self._now())
            for move in moves[:reached]
        ]
        again = [self._start(one, broker, first, last)] if chance.random() < 0.1 else []
        return [start, *again, *updates]

    def _start(self, one: SegmentId, broker: int, first: int, last: int) -> Event:
        return started(
            one,
            first,
            last,
            self._epochs(first, last),
            broker_id=broker,
            event_timestamp_ms=self._now(),
            size_bytes=self._chance.choice([1, 1_000, 2**31 - 1]),
            txn_index_empty=self._chance.random() < 0.6,
        )

    def _epochs(self, first: int, last: int) -> dict[int, int]:
        length = self.last // EPOCHS + 1
        shift = self._chance.choice([0, 0, 0, STEP // 3])
        begins = [0, *(number * length + shift for number in range(1, EPOCHS))]
        found = {
            epoch: max(first, begin)
            for epoch, begin in enumerate(begins)
            if begin <= last and (epoch + 1 == EPOCHS or begins[epoch + 1] > first)
        }
        return found or {0: first}

    def _now(self) -> int:
        self._clock_ms += 7
        return self._clock_ms

    def _mixed(self, lives: list[list[Event]]) -> list[Event]:
        chance = self._chance
        chance.shuffle(lives)
        running: list[list[Event]] = []
        events: list[Event] = []
        while lives or running:
            if lives and (len(running) < 4 or chance.random() < 0.3):
                running.append(lives.pop())
            life = chance.choice(running)
            at = 1 if len(life) > 1 and chance.random() < 0.05 else 0  # before its time
            events.append(life.pop(at))
            if chance.random() < 0.08:
                events.append(chance.choice(events[-6:]))  # once more, or late
            if not life:
                running.remove(life)
        return events
