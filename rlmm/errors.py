"""
Every error of rlmm, in one tree.

Two questions decide the class: whose fault is it, and would waiting help. Expected outcomes (an
event that the state machine rejects, a record that cannot be decoded) are not here: they are
values, see `rlmm.metadata.verdicts`.

    RlmmError
    ├── ConfigError           the command or its files are wrong: nothing was started, correct it
    ├── RequestError          the caller asked for something that cannot be meant
    │   ├── InvalidArgument   a value no broker could hold: refused before any I/O
    │   └── NotPublishable    a record that would stop a stock broker's consumer: never written
    ├── NotFound
    │   └── UnknownPartition  the user partition is not loaded here: load it, or ask where it is
    ├── NotReady              loaded, but its history is not read yet: wait and ask again
    ├── LogError              the log of events: Kafka's, or our own on disk
    │   ├── LogUnavailable    brokers away, no leader, a deadline passed: back off, ask again
    │   ├── LogTruncated      the offset lies outside what the log holds: rebuild from its start
    │   ├── LogRecreated      the topic is another one than it was: all that was read is void
    │   ├── AppendUncertain   nobody can say whether the event was stored: look before repeating
    │   ├── AppendRefused     the event was surely not stored
    │   ├── LogNotPermitted   credentials or rights do not suffice: an operator must act
    │   └── LogDamaged        stored bytes are not what was written: that partition is offline
    ├── ImageCorrupt          a state image that cannot be trusted: take an older one, or replay
    └── EngineFailed          an implementation under test died, hung or broke the protocol
"""

from __future__ import annotations

from typing import ClassVar


class RlmmError(Exception):
    """Root of all errors that rlmm raises on purpose."""

    code: ClassVar[str] = "error"
    """Stable name: on the wire, in logs and in `docs/errors.md`."""
    retriable: ClassVar[bool] = False
    """Whether the same call may succeed later without anybody changing anything."""
    exit_code: ClassVar[int] = 1
    """Status with which a command ends that meets this error."""


class ConfigError(RlmmError):
    """A command, a setting or a file it names is wrong; nothing was started."""

    code = "config"
    exit_code = 2


class RequestError(RlmmError):
    """The caller asked for something that cannot be meant."""

    code = "request"
    exit_code = 2


class InvalidArgument(RequestError):
    """A value that no broker could hold; refused before any I/O."""

    code = "invalid-argument"


class NotPublishable(RequestError):
    """A record that would stop the consumer of a stock broker; it is never written."""

    code = "not-publishable"


class NotFound(RlmmError):
    """The thing asked for does not exist here."""

    code = "not-found"


class UnknownPartition(NotFound):
    """The user partition is not loaded here."""

    code = "unknown-partition"


class NotReady(RlmmError):
    """The user partition is loaded, but its history has not been read yet."""

    code = "not-ready"
    retriable = True
    exit_code = 4


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


class ImageCorrupt(RlmmError):
    """A state image that cannot be trusted; none of it was taken over."""

    code = "image-corrupt"


class EngineFailed(RlmmError):
    """An implementation under test could not be started, died, hung or broke the protocol."""

    code = "engine-failed"
    exit_code = 3
