"""Waits that ended without their answer."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


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
