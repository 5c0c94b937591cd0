"""The detector of blocking calls finds them."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockingError

from tests.support.blocking import detecting_blocking, detecting_for_a_test

if TYPE_CHECKING:
    from pathlib import Path


def sync_file(path: Path) -> None:
    with path.open("wb") as file:
        os.fsync(file.fileno())


async def test_blocking_call_when_on_the_event_loop_then_it_fails(tmp_path: Path) -> None:
    """A sync on the event loop is found, though the detector does not know it by itself."""
    with detecting_blocking(__name__), pytest.raises(BlockingError, match=r"os\.fsync"):
        sync_file(tmp_path / "file")


async def test_blocking_call_when_in_a_thread_then_it_is_fine(tmp_path: Path) -> None:
    """Work that left the event loop may block."""
    with detecting_blocking(__name__):
        await asyncio.to_thread(sync_file, tmp_path / "file")
    assert (tmp_path / "file").exists()


async def test_blocking_call_when_made_by_others_then_it_is_fine(tmp_path: Path) -> None:
    """The detector watches only calls of the named modules."""
    with detecting_blocking("rlmm"):
        sync_file(tmp_path / "file")
    assert (tmp_path / "file").exists()


def test_call_that_a_test_replaced_is_the_real_one_afterwards() -> None:
    """A test that replaced a call leaves the real one behind, not the detector's wrapper."""
    real = time.sleep
    with pytest.MonkeyPatch.context() as monkeypatch, detecting_for_a_test(monkeypatch):
        wrapper = time.sleep
        monkeypatch.setattr(time, "sleep", lambda _: None)
    assert real is not wrapper
    assert time.sleep is real
