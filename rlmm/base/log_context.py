"""
The context of log lines: the fields, such as cluster and partition, that a task or block binds.

Tasks inherit it from where they are created, threads from their caller.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IS_ANSWER = "is_answer"
ANSWER: Mapping[str, object] = {IS_ANSWER: True}
"""Marks, by `extra`, an answer to an operator, which is never held back as a repeat."""

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
