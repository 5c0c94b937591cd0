"""Parts of a process that ended, or would not."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


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
