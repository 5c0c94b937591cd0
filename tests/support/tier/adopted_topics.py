"""A topic to be adopted, in a line each: as it is, with trouble, with a driver that has died."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_tiering.adopt.settings import RETENTION_MS
from spark_tiering.executor.tasks import UnitOutcome
from tests.support.builders import tp
from tests.support.tier.copy_plans import cut, source
from tests.support.tier.simulated_adoption import AdoptedWorld
from tests.support.tier.simulated_jobs import Killed

if TYPE_CHECKING:
    from spark_tiering.adopt.outcomes import AdoptionRefusal, TopicOutcome, TopicStatus

ONE, TWO = tp("orders", 0), tp("orders", 1)
BEFORE = {RETENTION_MS: "86400000", "local.retention.bytes": "1000", "segment.bytes": "1048576"}


def world(**changed: object) -> AdoptedWorld:
    sources = [
        source(cut(*range(0, 50, 10), is_active=True), partition=ONE, is_tiered=True, log_start=0),
        source(cut(5, 100, 200, is_active=True), partition=TWO, is_tiered=True, log_start=5),
    ]
    return AdoptedWorld(sources, explicit=dict(BEFORE), **changed)  # type: ignore[arg-type]


def standing_and_reason(outcome: TopicOutcome) -> tuple[TopicStatus, AdoptionRefusal | None]:
    return outcome.standing, None if outcome.why is None else outcome.why.reason


def troubled() -> AdoptedWorld:
    found = world()
    found.outcomes[20] = UnitOutcome.CONFLICT
    return found


def died(dies_at: int, *, is_troubled: bool) -> AdoptedWorld:
    found = troubled() if is_troubled else world()
    found.dies_at = dies_at
    with pytest.raises(Killed):
        found.adopt()
    found.dies_at = None
    found.outcomes.clear()
    return found
