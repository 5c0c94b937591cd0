"""The log of events, wherever it lives."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class LogError(RlmmError):
    """Something about the log of events, wherever it lives."""

    code = "log"
    exit_code = 3


class LogUnavailable(LogError):
    """The log did not answer for now: brokers away, no leader, or a deadline passed."""

    code = "log-unavailable"
    retriable = True


class LogTruncated(LogError):
    """The offset asked for lies outside what the log holds."""

    code = "log-truncated"

    def __init__(
        self, message: str, log_start: int | None = None, next_offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.log_start = log_start
        self.next_offset = next_offset


class LogRecreated(LogError):
    """The topic was deleted and created anew: nothing read before belongs to it."""

    code = "log-recreated"


class AppendUncertain(LogError):
    """Nobody can say whether the event was stored."""

    code = "append-uncertain"


class AppendRefused(LogError):
    """The event was surely not stored."""

    code = "append-refused"


class LogNotPermitted(LogError):
    """Credentials or rights do not suffice; an operator must act."""

    code = "log-not-permitted"


class LogDamaged(LogError):
    """Stored bytes are not what was written; that partition is offline."""

    code = "log-damaged"
