"""A tier of one topic in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.read_tiers import store_in, tier_in, usual_log

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.stores.local import LocalStore
    from tests.support.written_logs import WrittenLog


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
