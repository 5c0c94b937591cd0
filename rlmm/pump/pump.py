"""
The pump: reaches the log, begins and ends followers by the assignment, asks for log end offsets. An
assignment takes effect in one step. Each `reconcile` has a generation, which callers can wait for.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context, copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.log_context import bound
from rlmm.errors import (
    AssignmentLost,
    InvalidArgument,
    LogError,
    LogRecreated,
    LogUnavailable,
    OutcomeUnknown,
    first_of,
)
from rlmm.metadata.core_panic import CorePanic
from rlmm.metadata.report import Tally
from rlmm.pump.follower import Follower
from rlmm.pump.log_connection import LogConnection
from rlmm.pump.statistics import PumpStatistics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.errors import RlmmError, Unresolved
    from rlmm.log.protocol import LogIdentity
    from rlmm.log.shard_images import ShardImages
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.pump.follower import FollowerContext

_log = logging.getLogger(__name__)


class Pump:
    def __init__(self, context: FollowerContext, assignment: Assignment) -> None:
        self._context = context
        self._assignment = assignment
        self._identity: LogIdentity | None = None
        self._followers: dict[int, Follower] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._within = Context()
        """The context of followers, whatever call begins them."""
        self._generation = 1
        self._unchecked: list[tuple[int, Assignment]] = []
        """Generations that could not be checked when they came, and the assignment before each."""
        self._refused: dict[int, str] = {}
        """Generations that the topic contradicted, and how."""
        self._changed = context.changed
        self._connection = LogConnection(context, self._check)
        self._recreations = 0
        self._judged_s: float | None = None
        self._ended = Tally()
        """Offsets that ended followers passed."""
        self._closed: tuple[type[Unresolved], str] | None = None
        context.placement.on_change = self._judge_now
        context.listener.assign(assignment)

    # ---------------------------------------------------------------------------- the task

    async def run(self) -> None:
        """
        Reach the log, however long it takes, and follow it until cancelled. Waits for a topic that
        does not exist, too. Raises `ConfigError` where the topic contradicts the configuration, and
        `InvalidArgument` where the assignment does.
        """
        while True:
            identity = await self._connection.reach(is_first=not self._recreations)
            self._identity = identity
            self._context.placement.connect(identity.partition_count)
            self._context.listener.connect(identity.partition_count)
            if self._context.restore is not None:
                self._context.restore.connect(identity)
            try:
                with bound(cluster_id=identity.cluster_id):
                    await self._follow()
            except* LogRecreated as errors:
                self._recreations += 1
                self._connection.trouble = str(first_of(errors))
                cluster = {"cluster_id": identity.cluster_id}
                _log.error("%s: everything is read anew", self._connection.trouble, extra=cluster)
                detail = "the metadata topic was recreated, its offsets are those of another topic"
                self._end_all(OutcomeUnknown, detail, LogRecreated)
            finally:
                self._identity = None
            _stay_cancelled()
            self._context.listener.disconnect(self._connection.trouble)

    def close(self, error: type[Unresolved], message: str) -> None:
        """Fail the writers that wait for a verdict; the states stay for a last snapshot."""
        self._closed = error, message
        for follower in self._followers.values():
            follower.close(error, message)
        self._changed.ring()

    def wake(self) -> None:
        self._connection.wake()

    def release(self) -> None:
        self._followers.clear()
        self._running.clear()

    def _check(self, partition_count: int) -> None:
        """
        Take back generations with partitions that the topic lacks; the first one raises
        `InvalidArgument`.
        """
        while self._unchecked:
            generation, before = self._unchecked.pop()
            try:
                self._assignment.require_within(partition_count)
            except InvalidArgument as error:
                self._refused[generation] = str(error)
                self._assignment = before
                self._context.listener.assign(before)
            else:
                self._unchecked.clear()
        self._assignment.require_within(partition_count)

    async def _follow(self) -> None:
        self._within = copy_context()
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                tasks.create_task(self._guarded(self._judge_all), name="pump: judge")
                tasks.create_task(self._guarded(self._watch_memory), name="pump: memory")
                self._apply()
                await self._guarded(self._ask_ends)
            finally:
                self._tasks = None

    async def _guarded(self, part: Callable[[], Awaitable[None]]) -> None:
        """
        Run *part*. Where it fails the group ends: begin nothing, answer nothing of a recreated
        topic.
        """
        try:
            await part()
        except LogRecreated as error:
            self._identity = None
            self._context.listener.disconnect(str(error))
            raise
        except (Exception, CorePanic):
            self._tasks = None
            raise

    async def _ask_ends(self) -> None:
        """Ask for the bounds of every partition again and again, to notice a stall."""
        settings = self._context.settings
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(settings.bounds_interval_ms / 1_000)
            asked_s, partitions = loop.time(), list(self._followers)
            if not partitions:
                continue
            try:
                answers = await self._context.log.bounds(
                    partitions, timeout_s=settings.bounds_timeout_ms / 1_000
                )
            except LogUnavailable as error:
                self._connection.trouble = str(error)
                continue
            for partition, answer in answers.items():
                follower = self._followers.get(partition)
                if isinstance(answer, LogRecreated):
                    raise answer
                if follower is not None and not isinstance(answer, LogError):
                    follower.take_bounds(answer, asked_s)

    async def _judge_all(self) -> None:
        """Judge on a timer, also while no broker answers."""
        while True:
            self._judge_now()
            self._judged_s = asyncio.get_running_loop().time()
            self._changed.ring()
            await asyncio.sleep(self._context.settings.bounds_interval_ms / 1_000)

    def _judge_now(self) -> None:
        for follower in list(self._followers.values()):
            follower.judge()

    async def _watch_memory(self) -> None:
        while True:
            self._context.budget.look()
            await asyncio.sleep(self._context.settings.bounds_interval_ms / 1_000)

    # -------------------------------------------------------------------------- assignment

    @property
    def assignment(self) -> Assignment:
        return self._assignment

    def reconcile(self, assignment: Assignment) -> int:
        """
        Follow exactly *assignment* from now on; return its generation.

        Followers of other partitions have ended when this returns, new ones have begun behind
        closed gates. Raises `InvalidArgument`, with nothing changed, for a partition that the topic
        does not have; while the topic is not reached `wait_settled` raises it.
        """
        if self._identity is not None:
            assignment.require_within(self._identity.partition_count)
            count = self._identity.partition_count
            wanted = assignment.metadata_partitions(count, self._assignment)
            if wanted - self._followers.keys():
                self._context.budget.require_room(f"an assignment of {assignment}")
        if assignment != self._assignment:
            self._generation += 1
            if self._identity is None and assignment.metadata:
                self._unchecked.append((self._generation, self._assignment))
            self._assignment = assignment
            self._context.listener.assign(assignment)
            self._apply()
        return self._generation

    async def wait_settled(self, generation: int) -> dict[int, str]:
        """
        Wait until *generation* has taken effect; `InvalidArgument` where the topic contradicted it.
        Returns the obstacle of each metadata partition whose first attempt failed; those go on
        trying. The caller sets the deadline.
        """
        while not (
            self._generation >= generation
            and self._identity is not None
            and all(follower.is_settled for follower in self._followers.values())
        ):
            if self._closed is not None:
                error, message = self._closed
                raise error(message)
            await self._changed.wait()
        if generation in self._refused:
            raise InvalidArgument(self._refused[generation])
        return {
            partition: obstacle
            for partition, follower in self._followers.items()
            if (obstacle := follower.obstacle) is not None
        }

    def _apply(self) -> None:
        if self._identity is None or self._tasks is None:
            return
        wanted = self._assignment.metadata_partitions(self._identity.partition_count)
        for partition in sorted(self._followers.keys() - wanted):
            self._end(
                partition,
                AssignmentLost,
                f"metadata partition {partition} is not assigned to this service any more",
                AssignmentLost,
            )
        for partition in sorted(wanted - self._followers.keys()):
            follower = Follower(partition, self._context, self._identity.partition_count)
            self._followers[partition] = follower
            self._context.listener.begin_partition(
                partition, follower.progress(), follower.is_current
            )
            self._running[partition] = self._tasks.create_task(
                self._guarded(follower.run),
                name=f"pump: metadata partition {partition}",
                context=self._within.copy(),
            )
        self._changed.ring()

    def _end(
        self, partition: int, error: type[Unresolved], message: str, of_readers: type[RlmmError]
    ) -> None:
        """End the follower of *partition*; writers that wait get *error*, readers *of_readers*."""
        follower = self._followers.pop(partition)
        follower.close(error, message)
        self._context.placement.drop(partition)
        self._ended.add(follower.tally)
        self._running.pop(partition).cancel()
        self._context.listener.end_partition(partition)
        self._context.waits.fail(partition, of_readers, message)

    def _end_all(self, error: type[Unresolved], message: str, of_readers: type[RlmmError]) -> None:
        for partition in list(self._followers):
            self._end(partition, error, message, of_readers)

    # ------------------------------------------------------------------------ from outside

    @property
    def identity(self) -> LogIdentity | None:
        return self._identity

    @property
    def last_trouble(self) -> str:
        return self._connection.trouble

    @property
    def judged_s(self) -> float | None:
        """Return when the pump judged every partition last, by the event loop's clock."""
        return self._judged_s

    def follower(self, partition: int) -> Follower | None:
        return self._followers.get(partition)

    def positions(self) -> dict[int, int]:
        """Metadata partition -> position, of every state that may be saved now."""
        return {
            partition: position
            for partition, follower in self._followers.items()
            if (position := follower.savable_position) is not None
        }

    async def freeze(
        self, partition: int, of: TopicIdPartition | None = None
    ) -> ShardImages | None:
        """Freeze as `Follower.freeze` does; `None` where there is no state to save."""
        follower = self._followers.get(partition)
        image = None if follower is None else await follower.freeze(of)
        if follower is None or image is None:
            return None
        return replace(image, is_valid=partial(self._vouches, follower, image.is_valid))

    def _vouches(self, follower: Follower, is_valid: Callable[[], bool]) -> bool:
        """
        Return whether a state of *follower* may be kept: not once another one reads its partition,
        since the log may have been cut between the two.
        """
        return self._followers.get(follower.partition, follower) is follower and is_valid()

    def statistics(self) -> PumpStatistics:
        tally = replace(self._ended)
        for follower in self._followers.values():
            tally.add(follower.tally)
        return PumpStatistics(
            self._identity is not None,
            self._connection.attempts,
            self.last_trouble,
            self._generation,
            self._recreations,
            self._judged_s,
            tally,
            {
                partition: follower.statistics()
                for partition, follower in sorted(self._followers.items())
            },
        )


def _stay_cancelled() -> None:
    """End here if this task was cancelled: a group that is ending for an error forgets it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
