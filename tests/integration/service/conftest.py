"""Every test of this folder fails when the service blocks the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.blocking import nothing_blocks

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["nothing_blocks"]

TWO = """
[snapshot]
free_bytes_min = 0

[clusters.east]
log.num_partitions = 2

[clusters.west.log]
num_partitions = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rlmm.toml"
    file.write_text(f'data_dir = "{tmp_path / "data"}"\n{TWO}')
    return file
