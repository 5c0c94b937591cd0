"""A tier in memory to audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.tier.audited_tiers import AuditedTier

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def tier() -> Iterator[AuditedTier]:
    with AuditedTier() as tier:
        yield tier
