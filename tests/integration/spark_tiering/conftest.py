"""Places of a tier in which copy jobs run, and a tier of one topic in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.datasource.readable_tiers import store_in, tier_in, usual_log
from tests.support.tier.job_folders import TierPlace

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.stores.local import LocalStore
    from tests.support.partitions.written_logs import WrittenLog


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    """Two partitions with two segments each that can be copied."""
    return TierPlace(tmp_path)


@pytest.fixture
def log() -> WrittenLog:
    return usual_log()


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return store_in(tmp_path)


@pytest.fixture
def tier(log: WrittenLog, tmp_path: Path) -> dict[str, str]:
    """Options of a reader of the tier."""
    return tier_in(tmp_path, log)
