"""One fixture: the log that the contract suite runs over; no call of ours may block the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.log import implementations
from tests.support.blocking import nothing_blocks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.conformance.log.implementations import MakeLog
    from tests.conformance.log.under_test import LogUnderTest

__all__ = ["nothing_blocks", "under_test"]


@pytest.fixture(params=implementations.params())
async def under_test(request: pytest.FixtureRequest) -> AsyncIterator[LogUnderTest]:
    make: MakeLog = request.param
    async with make(request) as made:
        yield made
