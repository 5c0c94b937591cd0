"""Places of a tier in which copy jobs run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.tier.job_folders import TierPlace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    """Two partitions with two segments each that can be copied."""
    return TierPlace(tmp_path)
