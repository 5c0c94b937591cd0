"""
Writers that copy and delete segments as brokers do, with several events in flight. A copier keeps
no state: its next step follows from the answers, also after a kill.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING

from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    EventRejected,
    LogUnavailable,
    NotReady,
    OutcomeUnknown,
    UnknownPartition,
)
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from tests.support.engine.claims import (
    KINDS,
    Answered,
    Question,
    Wrote,
    answer_from,
    stamp_of,
    user_partition,
    verdict_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.pump.writer import WrittenEvent

    Move = SegmentMetadata | SegmentUpdate | PartitionDelete

KEPT = 6
WAIT_S = 60.0

_CS, _CF, _DS, _DF = SegmentState
_MARKED, _STARTED, _FINISHED = PartitionDeleteState
_MAY_BE_STORED = (AppendUncertain, OutcomeUnknown)
_IS_NOT_STORED = (AppendRefused, LogUnavailable, NotReady)


class Copier:
    def __init__(
        self,
        metadata: RemoteLogMetadata,
        tell: Callable[[Wrote | Answered], None],
        life: int,
        number: int,
        copiers: int,
        places: int,
        timeout_s: float = WAIT_S,
    ) -> None:
        """*timeout_s* limits one attempt to write; an event that may be stored is written again."""
        self._metadata = metadata
        self._tell = tell
        self._life = life
        self._number = number
        self._copiers = copiers
        self._places = places
        self._timeout_s = timeout_s
        self._rng = random.Random(f"{life} {number}")
        self._stamps = itertools.count((life * 1_000 + number) * 1_000_000)
        self._generation = 0
        self.is_over = False
        self.attempts: Counter[int] = Counter()
        """How often each event was handed to the engine, by its stamp."""
        self.uncertain = self.refused = 0

    @property
    def partition(self) -> TopicIdPartition:
        return user_partition(self._number, self._generation)

    async def run(self) -> None:
        await self._metadata.wait_ready(self.partition, timeout_s=WAIT_S)
        while not self.is_over:
            try:
                moves = self._moves()
            except NotReady:
                await asyncio.sleep(0.05)
                continue
            async with asyncio.TaskGroup() as tasks:
                for move in moves:
                    tasks.create_task(self._do(move))

    # ------------------------------------------------------------------------ what follows

    def _moves(self) -> list[Move]:
        reads = self._metadata.reads
        try:
            delete = reads.partition_delete(self.partition)
            if delete is not None and delete.state is _FINISHED:
                self._generation += 1
                return self._moves()
            segments = reads.segments(self.partition)
        except UnknownPartition:
            return [self._copy([])]
        moves = [self._next(segment) for segment in segments if segment.state is not _CF]
        if delete is not None:
            return self._deletion(delete, segments, moves)
        finished = [segment for segment in segments if segment.state is _CF]
        if len(finished) > KEPT:
            moves.append(self._update(finished[0], _DS))
        if self._rng.random() < 0.01:
            return [*moves, self._partition_delete(_MARKED)]
        return [*moves, self._copy(segments)]

    def _deletion(
        self, delete: PartitionDelete, segments: list[SegmentMetadata], moves: list[Move]
    ) -> list[Move]:
        if delete.state is _MARKED:
            return [*moves, self._partition_delete(_STARTED)]
        if not segments:
            return [self._partition_delete(_FINISHED)]
        return moves + [self._update(each, _DS) for each in segments if each.state is _CF]

    def _next(self, segment: SegmentMetadata) -> Move:
        if segment.state is _DS:
            return self._update(segment, _DF)
        return self._update(segment, _DS if self._rng.random() < 0.05 else _CF)

    def _copy(self, segments: list[SegmentMetadata]) -> Move:
        start = max((segment.last_offset for segment in segments), default=-1) + 1
        last = start + self._rng.randrange(1, 1_000)
        epochs = [(self._life, start)]
        if start and self._life and self._rng.random() < 0.1:
            epochs = [(self._life - 1, start), (self._life, last)]
        stamp = next(self._stamps)
        return SegmentMetadata(
            SegmentId(self.partition, Uuid.of(self._number + 1, stamp)),
            start,
            last,
            self._number,
            stamp,
            stamp,
            tuple(epochs),
            self._rng.randrange(1, 1 << 30),
            None,
            _CS,
        )

    def _update(self, segment: SegmentMetadata, state: SegmentState) -> Move:
        kept = segment.custom_metadata
        if state is _CF:
            kept = self._rng.randbytes(self._rng.choice((0, 20, 20, 200)))
        return SegmentUpdate(segment.id, self._number, next(self._stamps), kept, state)

    def _partition_delete(self, state: PartitionDeleteState) -> Move:
        return PartitionDelete(self.partition, self._number, next(self._stamps), state)

    # -------------------------------------------------------------------- writing and asking

    async def _do(self, move: Move) -> None:
        if await self._write(move) and self._rng.random() < 0.03:
            await self._write(move)
        if self._rng.random() < 0.3:
            asked = self._rng.randrange(self._copiers), self._rng.randint(0, self._generation)
            epoch, offset = self._rng.randint(0, self._life), self._rng.randrange(20_000)
            question = Question(self._rng.choice(KINDS), *asked, epoch, offset)
            ask(self._metadata, question, self._places, self._tell)

    async def _write(self, move: Move) -> bool:
        """Write until the outcome is known, repeating unchanged; return whether to repeat later."""
        is_uncertain = False
        while not self.is_over:
            self.attempts[stamp_of(move)] += 1
            try:
                written = await self._written(move)
            except _MAY_BE_STORED:
                self.uncertain += 1
                is_uncertain = True
            except _IS_NOT_STORED:
                self.refused += 1
                await asyncio.sleep(0.05)
            except EventRejected:
                # What was stored after all: the end of a life cycle comes only once.
                assert is_uncertain, move
                return False
            else:
                place, offset = written.metadata_partition, written.offset
                self._tell(Wrote(place, offset, stamp_of(move), verdict_name(written.verdict)))
                return move.state not in {_DF, _FINISHED} or isinstance(move, SegmentMetadata)
        return False

    async def _written(self, move: Move) -> WrittenEvent:
        if isinstance(move, SegmentMetadata):
            return await self._metadata.add_segment(move, timeout_s=self._timeout_s)
        if isinstance(move, SegmentUpdate):
            return await self._metadata.update_segment(move, timeout_s=self._timeout_s)
        return await self._metadata.put_partition_delete(move, timeout_s=self._timeout_s)


def ask(
    metadata: RemoteLogMetadata,
    question: Question,
    places: int,
    tell: Callable[[Wrote | Answered], None],
    floor: int = 0,
) -> bool:
    """Ask, and claim the answer at its position. Returns False where the engine refused."""
    partition = user_partition(question.writer, question.generation)
    place = metadata_partition_for(partition.topic_id, partition.partition, places)
    try:
        answer = answer_from(metadata.reads, question)
    except NotReady:
        return False
    # No await since the answer: it was given at this position.
    position = metadata.read_token()[place] + 1
    tell(Answered(place, position, floor, answer, question))
    return True
