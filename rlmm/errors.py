"""
Every error of rlmm, in one tree.

Two questions decide the class: whose fault is it, and would waiting help. Expected outcomes (an
event that the state machine rejects, a record that cannot be decoded) are not here: they are
values, see `rlmm.metadata.verdicts`.

    RlmmError
    ├── ConfigError           the command or its files are wrong: nothing was started, correct it
    │   └── TopicAbsent       the metadata topic does not exist: a service waits for it
    ├── RequestError          the caller asked for something that cannot be meant
    │   ├── InvalidArgument   a value no broker could hold: refused before any I/O
    │   ├── NotPublishable    a record that would stop a stock broker's consumer: never written
    │   ├── NotWritable       an observer, or a log without a producer: write somewhere else
    │   └── EventRejected     the state machine refuses the event: read the state, then decide
    ├── NotFound
    │   └── UnknownPartition  no event of that user partition was ever stored, or it is not loaded
    ├── NotAssigned           the user partition is not this service's: ask who has it
    ├── NotReady              its history is not read up to its target: wait and ask again
    ├── OverBudget            the memory budget is used up: nothing more is taken until it shrinks
    ├── Unresolved            a wait that ended without its answer; what was stored stays stored
    │   ├── OutcomeUnknown    the deadline passed: the event is stored, its verdict is not known
    │   ├── AssignmentLost    the partition was taken away while the caller waited
    │   ├── Stopped           the service is stopping, or has stopped
    │   └── PumpFailed        the task that reads the log died: a bug, the process ends
    ├── LogError              the log of events: Kafka's, or our own on disk
    │   ├── LogUnavailable    brokers away, no leader, a deadline passed: back off, ask again
    │   ├── LogTruncated      the offset lies outside what the log holds: rebuild from its start
    │   ├── LogRecreated      the topic is another one than it was: all that was read is void
    │   ├── AppendUncertain   nobody can say whether the event was stored: look before repeating
    │   ├── AppendRefused     the event was surely not stored
    │   ├── LogNotPermitted   credentials or rights do not suffice: an operator must act
    │   └── LogDamaged        stored bytes are not what was written: that partition is offline
    ├── ImageCorrupt          a state image that cannot be trusted: take an older one, or replay
    ├── SnapshotError         a snapshot could not be written, or not be used
    │   ├── SnapshotCorrupt   not what was written: take an older one, or replay
    │   ├── SnapshotForeign   of another cluster, topic or layout: it is void here
    │   ├── SnapshotUnsupported  of a version that this build does not know: never guessed at
    │   └── SnapshotRefused   not written, the disk is nearly full: make room
    ├── PartFailed            a part of the service died of a fault of ours: the process ends
    ├── StopTimedOut          a part did not end in time when it was asked to: it is named
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


class TopicAbsent(ConfigError):
    """The metadata topic surely does not exist, and nothing was asked for that would create it."""

    code = "topic-absent"


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


class NotAssigned(RlmmError):
    """The user partition is not one of those that this service was given."""

    code = "not-assigned"

    def __init__(self, message: str, *, metadata_partition: int | None = None) -> None:
        super().__init__(message)
        self.metadata_partition = metadata_partition


class NotReady(RlmmError):
    """
    The history that the answer depends on has not been read up to where it must be.

    *reason* is a stable word. *records_left* counts offsets up to the target; position and target
    are `None` while nobody could ask for them.
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
        """Offsets between position and target."""
        if self.position is None or self.target is None:
            return None
        return max(0, self.target - self.position)


class OverBudget(RlmmError):
    """The memory budget is used up; what is held is answered, nothing more is taken."""

    code = "over-budget"
    retriable = True
    exit_code = 4


class Unresolved(RlmmError):
    """
    A wait ended without the answer it was for.

    *stored_at* is the metadata partition and offset of the caller's event, where it has one: then
    it is in the log, whatever became of it.
    """

    code = "unresolved"
    exit_code = 4

    def __init__(self, message: str, *, stored_at: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.stored_at = stored_at


class OutcomeUnknown(Unresolved):
    """The deadline passed after the event was stored; its verdict was not heard."""

    code = "outcome-unknown"
    retriable = True


class AssignmentLost(Unresolved):
    """The partition was taken away from this service while the caller waited."""

    code = "assignment-lost"


class Stopped(Unresolved):
    """The service is stopping, or has stopped."""

    code = "stopped"


class PumpFailed(Unresolved):
    """The task that reads the log died of a fault of ours."""

    code = "pump-failed"


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


class SnapshotError(RlmmError):
    """A snapshot could not be written, or not be used."""

    code = "snapshot"


class SnapshotCorrupt(SnapshotError):
    """A snapshot file is not what was written; none of it was taken over."""

    code = "snapshot-corrupt"


class SnapshotForeign(SnapshotError):
    """A snapshot belongs to another cluster, topic, partition or partition count."""

    code = "snapshot-foreign"


class SnapshotUnsupported(SnapshotError):
    """A snapshot has a version that this build does not know."""

    code = "snapshot-unsupported"


class SnapshotRefused(SnapshotError):
    """A snapshot was not written, because the disk has too little room left."""

    code = "snapshot-refused"


class PartFailed(RlmmError):
    """A part of the service died of a fault of ours, and the process with it."""

    code = "part-failed"
    exit_code = 5


class StopTimedOut(RlmmError):
    """What did not end within the deadline when the service was asked to stop, by name."""

    code = "stop-timed-out"
    exit_code = 6


class EngineFailed(RlmmError):
    """An implementation under test could not be started, died, hung or broke the protocol."""

    code = "engine-failed"
    exit_code = 3


def first_of(error: BaseException) -> BaseException:
    """The error itself where it came in a group, the first one where there were several."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
