"""A tier to be damaged: the example partition twice, copied in each way that there is."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.support.tier.job_folders import PLAIN, TierPlace
from tests.support.tier.verified_tiers import copied_place, stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyOptions
    from tests.support.tier.verified_tiers import Stored


@pytest.fixture(scope="module")
def tiers(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., TierPlace]:
    @cache
    def made(options: CopyOptions, prefix: str) -> TierPlace:
        place = TierPlace(tmp_path_factory.mktemp("tier"), options=options, prefix=prefix)
        assert place.run().is_fine
        return place

    return made


@pytest.fixture
def tiered(tiers: Callable[..., TierPlace], tmp_path: Path) -> Callable[..., TierPlace]:
    def own(options: CopyOptions = PLAIN, prefix: str = "") -> TierPlace:
        return copied_place(tiers(options, prefix), tmp_path / "tier")

    return own


@pytest.fixture
def place(tiered: Callable[..., TierPlace]) -> TierPlace:
    return tiered()


@pytest.fixture
def one(place: TierPlace) -> Stored:
    return stored(place)


@pytest.fixture
def two(place: TierPlace) -> Stored:
    return stored(place, 1)
