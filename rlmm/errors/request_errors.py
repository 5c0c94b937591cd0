"""Errors of requests: the caller is wrong, must wait, or gets no answer."""

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
    """The caller lacks a role for this request; the message names the role."""

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

    *stored_at* is the event's metadata partition and offset where it was refused only after it had
    been stored, because another one came first; else it was never written.
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


class NotAssigned(RlmmError):
    """The user partition is not one of those that this service was given."""

    code = "not-assigned"
    exit_code = 3

    def __init__(self, message: str, *, metadata_partition: int | None = None) -> None:
        super().__init__(message)
        self.metadata_partition = metadata_partition


class NotReady(RlmmError):
    """
    The history behind the answer has not been read up to its target.

    *reason* is a stable word. *records_left* counts offsets up to the target; position and target
    are `None` while they are unknown.
    """

    code = "not-ready"
    retriable = True
    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        reason: str = "replaying",
        user_partition: str | None = None,
        metadata_partition: int | None = None,
        position: int | None = None,
        target: int | None = None,
        retry_after_ms: int = 1_000,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.user_partition = user_partition
        self.metadata_partition = metadata_partition
        self.position = position
        self.target = target
        self.retry_after_ms = retry_after_ms

    @property
    def records_left(self) -> int | None:
        if self.position is None or self.target is None:
            return None
        return max(0, self.target - self.position)


class NotSealed(RlmmError):
    """A broker's file that is there and not to be read yet: it may change, or is not stable."""

    code = "not-sealed"
    exit_code = 4


class OverBudget(RlmmError):
    """The memory budget is used up; rlmm reads no more, and answers while its state is current."""

    code = "over-budget"
    retriable = True
    exit_code = 4


class TooBusy(RlmmError):
    """A client asks for more at once than the limits of the service allow."""

    code = "too-busy"
    retriable = True
    exit_code = 4


class SidecarUnavailable(RlmmError):
    """The service was not reached in time; nothing is stored, else it is `OutcomeUnknown`."""

    code = "sidecar-unavailable"
    retriable = True
    exit_code = 3


class Unresolved(RlmmError):
    """A wait ended without its answer; the caller's event, if any, is at `stored_at`."""

    code = "unresolved"
    exit_code = 4

    def __init__(self, message: str, *, stored_at: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.stored_at = stored_at


class OutcomeUnknown(Unresolved):
    """The deadline passed after the event was stored; its verdict is not known."""

    code = "outcome-unknown"
    retriable = True


class AssignmentLost(Unresolved):
    """The partition was taken away from this service while the caller waited."""

    code = "assignment-lost"


class Stopped(Unresolved):
    """The service is stopping, or has stopped."""

    code = "stopped"


class PumpFailed(Unresolved):
    """A task of the engine died of a fault of ours; the message names task and cause."""

    code = "pump-failed"


class PartFailed(RlmmError):
    """A part of the service died of a fault of ours, and the process with it."""

    code = "part-failed"
    exit_code = 5


class StopTimedOut(RlmmError):
    """A part of the service did not end by the deadline of a stop; the message names it."""

    code = "stop-timed-out"
    exit_code = 6


class EngineFailed(RlmmError):
    """An implementation under test could not be started, died, hung or broke the protocol."""

    code = "engine-failed"
    exit_code = 3
