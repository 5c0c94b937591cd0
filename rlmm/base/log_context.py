"""
What every log line of a task or a block carries beside its message: which cluster, which partition.

Bound here by whoever begins something, read by whoever writes lines; neither knows the other. Tasks
inherit what was bound where they were created, threads what they are given of it. A field that
varies from line to line is given with the line itself, by `extra`.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IS_ANSWER = "is_answer"
ANSWER: Mapping[str, object] = {IS_ANSWER: True}
"""Given by `extra` with a line that answers what an operator asked for: it is never held back as a
repeat. It is not written."""

_NONE: Mapping[str, object] = {}
_BOUND: ContextVar[Mapping[str, object]] = ContextVar("rlmm line fields", default=_NONE)


@contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Lines that are logged in this block, and in tasks begun in it, carry *fields* as well."""
    token = _BOUND.set({**_BOUND.get(), **fields})
    try:
        yield
    finally:
        # A task that is thrown away unfinished is ended somewhere else, where nothing is bound.
        with suppress(ValueError):
            _BOUND.reset(token)


def bound_fields() -> Mapping[str, object]:
    return _BOUND.get()
