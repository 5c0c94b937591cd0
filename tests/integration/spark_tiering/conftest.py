"""Fixtures of tier commands, and a tier of one topic in a folder that data sources read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cli.tier_command import Command, forget_environment
from tests.support.datasource.readable_tiers import store_in, tier_in, usual_log
from tests.support.stores.s3_stub import ObjectStub
from tests.support.tier.job_folders import TierPlace
from tests.support.tier.lost_tiers import Lost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.local import LocalStore
    from tests.support.partitions.written_logs import WrittenLog


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_environment(monkeypatch, tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    return TierPlace(tmp_path)


@pytest.fixture
def tier(tmp_path: Path) -> Command:
    command = Command(TierPlace(tmp_path))
    assert command.place.run().is_fine
    return command


@pytest.fixture
def lost(tmp_path: Path) -> Lost:
    return Lost(tmp_path)


@pytest.fixture
def log() -> WrittenLog:
    return usual_log()


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return store_in(tmp_path)


@pytest.fixture
def read_options(log: WrittenLog, tmp_path: Path) -> dict[str, str]:
    return tier_in(tmp_path, log)


@pytest.fixture
def stub() -> Iterator[ObjectStub]:
    with ObjectStub() as stub:
        yield stub
