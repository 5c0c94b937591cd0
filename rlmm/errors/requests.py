"""The caller is wrong: a configuration, a value, a right, or a thing that does not exist."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class ConfigError(RlmmError):
    """A command, a setting or a file it names is wrong; nothing was started."""

    code = "config"
    exit_code = 2


class TopicAbsent(ConfigError):
    """The metadata topic surely does not exist, and nothing was asked for that would create it."""

    code = "topic-absent"


class FolderInUse(ConfigError):
    """A folder of which there may be one user has one already; the message names it."""

    code = "folder-in-use"


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


class NotWritable(RequestError):
    """This service only reads: it is an observer."""

    code = "not-writable"


class NotPermitted(RequestError):
    """Who is asking may not ask this; the message names what would be needed."""

    code = "not-permitted"
    exit_code = 3


class Superseded(NotPermitted):
    """Another start of the same broker has taken over: what this one says counts no more."""

    code = "superseded"


class ProtocolError(RequestError):
    """Bytes that are no request, or no answer; the connection they came by is given up."""

    code = "protocol"
    exit_code = 3


class UnsupportedVersion(RequestError):
    """There is no version of the protocol that both sides know."""

    code = "unsupported-version"
    exit_code = 3


class UnknownMethod(RequestError):
    """A request that this version of the service does not know."""

    code = "unknown-method"


class WrongCluster(RequestError):
    """The caller belongs to another cluster than the one whose metadata is served here."""

    code = "wrong-cluster"
    exit_code = 3


class EventRejected(RequestError):
    """
    The state machine refuses the event; nothing changed.

    *stored_at* is the metadata partition and offset of the event where it was refused only after it
    had been stored, because another one came first; else it was never written.
    """

    code = "event-rejected"
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        reason: str = "rejected",
        current: str | None = None,
        requested: str | None = None,
        stored_at: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.current = current
        self.requested = requested
        self.stored_at = stored_at


class NotFound(RlmmError):
    """The thing asked for does not exist here."""

    code = "not-found"


class UnknownPartition(NotFound):
    """Nothing is known of the user partition: no event of it was stored, or it is not loaded."""

    code = "unknown-partition"


class FileAbsent(NotFound):
    """No such file of a broker's partition is here, or none any more; the message names it."""

    code = "file-absent"
