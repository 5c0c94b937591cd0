"""
The connection to the log: asks for its identity with pauses until it answers, without end. A sign
of life ends a pause early where the log did not answer; a refusal or an absent topic needs an
operator, so there it does not.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tenacity import AsyncRetrying, retry_if_exception

from rlmm.base.backoff import Pauses
from rlmm.errors import ConfigError, InvalidArgument, LogNotPermitted, LogUnavailable, TopicAbsent
from rlmm.log.protocol import CompactionSource
from rlmm.log.reconnect_backoff import ReconnectBackoff, wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState

    from rlmm.log.protocol import LogIdentity
    from rlmm.pump.follower import FollowerContext

_log = logging.getLogger(__name__)


class LogConnection:
    def __init__(self, context: FollowerContext, check: Callable[[int], None]) -> None:
        """*check* takes the topic's partition count; raises where it contradicts the settings."""
        self.attempts = 0
        self.trouble = ""
        """What stood in the way of reaching the log last."""
        self._context = context
        self._check = check
        settings = context.settings
        pauses = Pauses(settings.retry_first_ms / 1_000, settings.retry_last_ms / 1_000)
        self._backoff = ReconnectBackoff(pauses)
        self._is_silent = False
        """Whether the last attempt failed because no broker answered."""

    def wake(self) -> None:
        if self._is_silent:
            self._backoff.wake()
        wake(self._context.log)

    async def reach(self, *, is_first: bool) -> LogIdentity:
        """
        Ask the log for its identity until it answers. Raises `ConfigError` and `InvalidArgument`
        where the identity contradicts the configuration and *is_first*: later the topic may be in
        the middle of being created anew.
        """
        self._backoff.succeeded()

        def is_waited_for(error: BaseException) -> bool:
            is_away = isinstance(error, (LogUnavailable, LogNotPermitted, TopicAbsent))
            is_wrong = isinstance(error, (ConfigError, InvalidArgument))
            return is_away or (is_wrong and not is_first)

        identity: LogIdentity = await AsyncRetrying(
            retry=retry_if_exception(is_waited_for),
            wait=lambda _: self._backoff.failed(),
            before_sleep=self._note,
            sleep=lambda _: self._backoff.wait(),  # `wake` cuts the pause short
        )(self._attempt)
        _log.info(
            "cluster %s, metadata topic %s with %d partitions",
            identity.cluster_id,
            identity.topic_id,
            identity.partition_count,
            extra={"cluster_id": identity.cluster_id},
        )
        return identity

    async def _attempt(self) -> LogIdentity:
        self.attempts += 1
        timeout_s = self._context.settings.bounds_timeout_ms / 1_000
        identity = await self._context.log.identity(timeout_s=timeout_s)
        self._check(identity.partition_count)
        if isinstance(self._context.log, CompactionSource):
            await self._context.log.learn_compaction()
        if self._context.restore is not None:
            await self._context.restore.confirm(identity)
        # Last, with no await behind it: two engines of one log must see each other.
        self._context.confirm(identity)
        return identity

    def _note(self, state: RetryCallState) -> None:
        assert state.outcome is not None
        error = state.outcome.exception()
        self.trouble = str(error)
        self._is_silent = isinstance(error, LogUnavailable)
        self._context.listener.disconnect(self.trouble)
        _log.warning(
            "the log is not reached (attempt %d): %s; next attempt in %.2f s",
            self.attempts,
            self.trouble,
            state.upcoming_sleep,
        )
