"""Fixtures that tests of tier commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.lost_tiers import Lost
from tests.support.tier_command import Command, forget_environment
from tests.support.tier_places import TierPlace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands find no settings in the environment of the machine."""
    forget_environment(monkeypatch, tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    return TierPlace(tmp_path)


@pytest.fixture
def tier(tmp_path: Path) -> Command:
    """The command for a place whose segments are copied."""
    command = Command(TierPlace(tmp_path))
    assert command.place.run().is_fine
    return command


@pytest.fixture
def lost(tmp_path: Path) -> Lost:
    return Lost(tmp_path)
