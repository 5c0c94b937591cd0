"""Finds calls of ours that block the event loop; work in a thread may block."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockBuster, BlockBusterFunction

from rlmm.base.threads import OwnedThread

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
    for name in ("io.BufferedReader.read", "io.TextIOWrapper.read"):  # the kernel's, of no disk
        detector.functions[name].can_block_in("rlmm/pump/memory_budget.py", "measure_memory")
    detector.activate()
    try:
        yield
    finally:
        detector.deactivate()


@contextmanager
def detecting_for_a_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Detect while a test runs; remove replaced calls afterwards, or they would stay."""
    with detecting_blocking("rlmm"):
        yield
        monkeypatch.undo()


@pytest.fixture(autouse=True)
def nothing_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail tests that import this fixture, or whose `conftest.py` does, on blocking calls."""
    with detecting_for_a_test(monkeypatch):
        yield


@contextmanager
def no_thread_starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the system start no thread of ours, as where a process may have no more of them."""

    def refuse(thread: OwnedThread) -> None:
        del thread
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(OwnedThread, "start", refuse)
        yield
