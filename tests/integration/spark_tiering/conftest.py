"""Fixtures of several modules: a clean environment for commands, and an S3 stub."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cli.tier_command import forget_environment
from tests.support.stores.s3_stub import ObjectStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def this_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the machine's own environment and configuration from commands."""
    forget_environment(monkeypatch, tmp_path)


@pytest.fixture
def stub() -> Iterator[ObjectStub]:
    with ObjectStub() as stub:
        yield stub
