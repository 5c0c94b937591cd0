"""Clients of every kind, each with something that answers; a fake service."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.server.fake_service import FakeService, faking
from tests.support.server.metadata_clients import KINDS, cluster_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.server.metadata_clients import Cluster


@pytest.fixture(params=KINDS)
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A service, or a stand-in for it, and clients of one kind."""
    async with cluster_of(request.param) as made:
        yield made


@pytest.fixture
async def service() -> AsyncIterator[FakeService]:
    """Run a service at a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
        async with faking(Path(folder) / "s") as made:
            yield made
