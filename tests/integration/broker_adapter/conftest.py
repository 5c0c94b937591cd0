"""Clients of every kind, each with something that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.server.metadata_clients import KINDS, cluster_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.server.metadata_clients import Cluster


@pytest.fixture(params=KINDS)
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A service, or a stand-in for it, and clients of one kind."""
    async with cluster_of(request.param) as made:
        yield made
