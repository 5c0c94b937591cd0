"""What is asked for would be answered somewhere else, later, or by a service that is there."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class NotAssigned(RlmmError):
    """The user partition is not one of those that this service was given."""

    code = "not-assigned"
    exit_code = 3

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


class NotSealed(RlmmError):
    """A broker's file that is there and not to be read yet: it may change, or is not stable."""

    code = "not-sealed"
    exit_code = 4


class OverBudget(RlmmError):
    """The memory budget is used up; what is held is answered, nothing more is taken."""

    code = "over-budget"
    retriable = True
    exit_code = 4


class TooBusy(RlmmError):
    """A client asks for more at once than the limits of the service allow."""

    code = "too-busy"
    retriable = True
    exit_code = 4


class SidecarUnavailable(RlmmError):
    """
    The service was not reached, or did not answer in time.

    Nothing that was asked for has been stored: where that is not sure, it is `OutcomeUnknown`.
    """

    code = "sidecar-unavailable"
    retriable = True
    exit_code = 3
