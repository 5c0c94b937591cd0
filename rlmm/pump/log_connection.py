"""
The connection of the pump to its log: asks for the identity until the log answers, with pauses.

A pause ends early where no broker answered and one shows signs of life; only people can repair a
refusal or an absent topic.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlmm.base.backoff import Pauses
from rlmm.errors import (
    ConfigError,
    InvalidArgument,
    LogNotPermitted,
    LogUnavailable,
    TopicAbsent,
)
from rlmm.log.reconnect_backoff import ReconnectBackoff, wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.log.protocol import LogIdentity
    from rlmm.pump.follower import FollowerContext

_log = logging.getLogger("rlmm.pump.reaching")


class LogConnection:
    def __init__(self, context: FollowerContext, check: Callable[[int], None]) -> None:
        """*check* takes the partition count of the topic, and raises what contradicts it."""
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
        """Retry now: a broker has shown signs of life."""
        if self._is_silent:
            self._backoff.wake()
        wake(self._context.log)

    async def reach(self, *, is_first: bool) -> LogIdentity:
        """
        Return the identity of the log once it answers.

        Raises `ConfigError` and `InvalidArgument` where the answer contradicts the configuration
        and *is_first*: later the topic may be in the middle of being created anew.
        """
        self._backoff.succeeded()
        while True:
            self.attempts += 1
            try:
                identity = await self._attempt()
            except (LogUnavailable, LogNotPermitted, TopicAbsent) as error:
                self._note(error)
            except (ConfigError, InvalidArgument) as error:
                if is_first:
                    raise
                self._note(error)
            else:
                _log.info(
                    "cluster %s, metadata topic %s with %d partitions",
                    identity.cluster_id,
                    identity.topic_id,
                    identity.partition_count,
                    extra={"cluster_id": identity.cluster_id},
                )
                return identity
            pause_s = self._backoff.failed()
            self._context.listener.disconnect(self.trouble)
            _log.warning(
                "the log is not reached (attempt %d): %s; next attempt in %.2f s",
                self.attempts,
                self.trouble,
                pause_s,
            )
            await self._backoff.wait()

    async def _attempt(self) -> LogIdentity:
        timeout_s = self._context.settings.bounds_timeout_ms / 1_000
        identity = await self._context.log.identity(timeout_s=timeout_s)
        self._check(identity.partition_count)
        self._context.confirm(identity)
        return identity

    def _note(self, error: Exception) -> None:
        self.trouble = str(error)
        self._is_silent = isinstance(error, LogUnavailable)
