"""Local files in the worlds of the demonstration, while a broker changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm_demo.world.made_up_world import MadeUpWorld

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_local_bytes_when_a_segment_is_deleted_meanwhile_then_counts_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that the broker deletes meanwhile counts as zero bytes."""
    world = MadeUpWorld(tmp_path, tmp_path / "socket")
    kept, gone = tmp_path / "00.log", tmp_path / "01.log"
    kept.write_bytes(b"12345")
    monkeypatch.setattr(world, "log_files", lambda: [kept, gone])
    assert world.local_bytes() == 5
