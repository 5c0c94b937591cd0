"""Finds calls of ours that block the event loop; work in a thread may block."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockBuster, BlockBusterFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

_ALSO_BLOCKING = ("fsync", "fdatasync", "sync")
"""Calls of `os` that the detector does not know by itself."""


@contextmanager
def detecting_blocking(*modules: str) -> Iterator[None]:
    """Make blocking calls from *modules* on an event loop raise `BlockingError`."""
    detector = BlockBuster(list(modules))
    for name in _ALSO_BLOCKING:
        blocking = BlockBusterFunction(None, f"os.{name}", scanned_modules=list(modules))
        detector.functions[f"os.{name}"] = blocking
    detector.activate()
    try:
        yield
    finally:
        detector.deactivate()


@contextmanager
def detecting_for_a_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Detect while a test runs, and remove the wrapper that a test's replacement left behind."""
    with detecting_blocking("rlmm"):
        yield
        monkeypatch.undo()


@pytest.fixture(autouse=True)
def nothing_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that imports this fixture when a call blocks the loop."""
    with detecting_for_a_test(monkeypatch):
        yield
