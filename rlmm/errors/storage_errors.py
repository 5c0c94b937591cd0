"""Errors of storage: the log, snapshots, the tier, and the jobs that work on it."""

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
    """It is unknown whether the event was stored."""

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


class StoreError(RlmmError):
    """Something about the store of objects as a whole, whatever the object."""

    code = "store"
    exit_code = 3


class StoreUnavailable(StoreError):
    """The store did not answer, or asked for patience too often; the call changed nothing."""

    code = "store-unavailable"
    retriable = True


class StoreAbsent(StoreError):
    """There is no such bucket, or no such folder; the message names it."""

    code = "store-absent"


class StoreNotPermitted(StoreError):
    """The store refuses this user; the message names the operation."""

    code = "store-not-permitted"


class CredentialsAbsent(StoreError):
    """No credentials were found where they are looked for; the message names the places."""

    code = "credentials-absent"


class StoreUnsuitable(StoreError):
    """The store lacks a feature that rlmm needs, or implements it differently than it says."""

    code = "store-unsuitable"


class PlanStale(RlmmError):
    """The state behind the plan has changed: nothing was done, make another plan."""

    code = "plan-stale"
    exit_code = 2


class TopicBusy(RlmmError):
    """Another job works on the topic; the message names it, and when it is free at the latest."""

    code = "topic-busy"
    exit_code = 4
    retriable = True


class DataLost(RlmmError):
    """Offsets that were asked for are not there; the message names them, and why."""

    code = "data-lost"
    exit_code = 1


class TierUnreadable(RlmmError):
    """A segment is there, and cannot be read as it is; the message has the code of the finding."""

    code = "tier-unreadable"
    exit_code = 1


class EngineUnfit(RlmmError):
    """No unit of work can run: Spark, its Java, its session or all its workers are not fit."""

    code = "engine-unfit"
    exit_code = 3
