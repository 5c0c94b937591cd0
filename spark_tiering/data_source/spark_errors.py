"""The errors that leave the source without the stack trace, which Spark would show to the user."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from rlmm.errors import RlmmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RUNTIME: Final = ("SPARK_PYTHON_RUNTIME", "PYTHON_WORKER")
"""What the environment of a worker of Spark's says, and no program's."""
_HIDDEN: Final = "SPARK_HIDE_TRACEBACK"
"""What Spark looks at when it writes down what was raised; its workers end with that."""

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def told_in_one_line(function: Callable[P, R]) -> Callable[P, R]:
    """Raise an rlmm error of the function without its cause."""

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except RlmmError as error:
            raise _bare(error) from None

    return called


def iterated_in_one_line(rows: Iterator[T]) -> Iterator[T]:
    """Raise an rlmm error of the iteration without its cause."""
    try:
        yield from rows
    except RlmmError as error:
        raise _bare(error) from None


def _bare(error: RlmmError) -> RlmmError:
    if os.environ.get(_RUNTIME[0]) == _RUNTIME[1]:
        os.environ[_HIDDEN] = "1"
    return error.with_traceback(None)
