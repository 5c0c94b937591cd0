"""The root of all errors, and how the first of several is found."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["RlmmError", "first_of"]


class RlmmError(Exception):
    """Root of all errors that rlmm raises on purpose."""

    code: ClassVar[str] = "error"
    """Stable name: on the wire, in logs and in `docs/errors.md`."""
    retriable: ClassVar[bool] = False
    """Whether the same call may succeed later without any change by an operator."""
    exit_code: ClassVar[int] = 1
    """Status with which a command ends that meets this error."""


def first_of(error: BaseException) -> BaseException:
    """Return the error itself where it came in a group, the first one where there were several."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
