"""The known state that a follower reads on from: the newest whose records the log still holds."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlmm.errors import LogDamaged, LogTruncated, LogUnavailable
from rlmm.log.batch_proof import holds_batch
from rlmm.log.protocol import replacements_of
from rlmm.pump.replay import ReplayStart, beginning

if TYPE_CHECKING:
    from rlmm.log.protocol import LogBounds, MetadataLog
    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.metadata.shard import Shard
    from rlmm.pump.replay import Replay
    from rlmm.pump.state_restore import StateRestore

_log = logging.getLogger(__name__)

_CUT = "the log was cut. It is read anew, from an older snapshot or from its start"
_TRIMMED = (
    "retention removed the records behind it. The state is kept and read on from the log start "
    "offset; segments may be missing, or deleted meanwhile"
)


class KnownState:
    def __init__(
        self, partition: int, log: MetadataLog, restore: StateRestore | None, timeout_s: float
    ) -> None:
        self._partition = partition
        self._log = log
        self._restore = restore
        self._timeout_s = timeout_s
        self._replacements = 0
        """The count of the log when the reading began."""

    def begin(self) -> None:
        """Call it before the bounds are asked for that a reading begins with."""
        self._replacements = replacements_of(self._log, self._partition)

    def require_same_log(self) -> None:
        """Raise `LogDamaged` where other records may stand behind those that were read."""
        if replacements_of(self._log, self._partition) != self._replacements:
            raise LogDamaged(f"partition {self._partition}: its owner has cut it, or made it anew")

    async def newest(
        self, replay: Replay | None, bounds: LogBounds, *, is_void: bool
    ) -> tuple[Shard | None, ReplayHistory | None]:
        """Return the state of *replay*, or the newest restored one that the log holds."""
        shard, history = await self._held(replay, bounds, is_void)
        if shard is not None and shard.position < bounds.log_start_offset:
            self._warn_of_gap(shard.position, bounds, _TRIMMED)
        return shard, history

    async def _held(
        self, replay: Replay | None, bounds: LogBounds, is_void: bool
    ) -> tuple[Shard | None, ReplayHistory | None]:
        if replay is not None:
            position, history = replay.shard.position, replay.history
            if await self._is_held(position, history, bounds, is_void, is_live=True):
                return replay.shard, history
            self._warn_of_gap(position, bounds, _CUT)
        limit = bounds.high_watermark
        while self._restore is not None and limit >= 0:
            found = await self._restore.restore(self._partition, limit)
            if found is None:
                break
            position = found.shard.position
            if await self._is_held(position, found.history, bounds, is_void):
                return found.shard, found.history
            self._warn_of_gap(position, bounds, _CUT)
            limit = position - 1  # a snapshot beyond it is set aside, and never used again
        return None, None

    async def _is_held(
        self,
        position: int,
        history: ReplayHistory,
        bounds: LogBounds,
        is_void: bool,
        *,
        is_live: bool = False,
    ) -> bool:
        """
        Return whether the log still holds what a state at *position* was made of. For one that was
        being read when the log was cut, it is not enough that nothing contradicts.
        """
        if beginning(position, bounds) is ReplayStart.BEYOND:
            return False
        mark = history.last_batch
        if is_void and mark is None:
            return False  # nothing proves that the state is older than the cut
        try:
            return await holds_batch(
                self._log,
                self._partition,
                mark,
                bounds,
                position=position,
                needs_proof=is_void and is_live,
                timeout_s=self._timeout_s,
            )
        except LogTruncated as error:  # it was trimmed or cut since the bounds were asked for
            raise LogUnavailable(str(error)) from error

    def _warn_of_gap(self, position: int, bounds: LogBounds, gone: str) -> None:
        _log.warning(
            "metadata partition %d: the state at offset %d does not fit the log, which has "
            "[%d, %d): %s",
            self._partition,
            position,
            bounds.log_start_offset,
            bounds.high_watermark,
            gone,
            extra={"offset": position},
        )
