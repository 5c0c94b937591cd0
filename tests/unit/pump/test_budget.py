"""The memory budget."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.errors import ConfigError, OverBudget
from rlmm.pump.budget import Budget, MemorySettings, MemoryUsage, measure_memory

MIB = 1 << 20


class Resident:
    def __init__(self) -> None:
        self.mib = 0.0

    async def measure(self) -> MemoryUsage:
        return MemoryUsage(round(self.mib * MIB), 1_000 * MIB)


class Held(Budget):
    def __init__(self) -> None:
        self.memory = Resident()
        super().__init__(
            MemorySettings(alert_bytes=80 * MIB, limit_bytes=100 * MIB), self.memory.measure
        )

    async def at(self, mib: float) -> tuple[bool, bool]:
        self.memory.mib = mib
        await self.look()
        return self.statistics().is_alert, self.is_exhausted


async def test_budget_when_memory_grows_then_alerts_before_it_refuses() -> None:
    """The alert comes below the limit, and the refusal at it."""
    budget = Held()
    assert await budget.at(79.9) == (False, False)
    assert await budget.at(80) == (True, False)
    budget.require_room("anything")
    assert await budget.at(99.9) == (True, False)
    assert await budget.at(100) == (True, True)


async def test_budget_when_exhausted_then_refuses_by_name_and_counts() -> None:
    """The refusal names the request, the limit and its key, and is counted."""
    budget = Held()
    await budget.at(120)
    with pytest.raises(
        OverBudget, match=r"a write: 120 MiB are resident, memory.limit_bytes allows 100"
    ):
        budget.require_room("a write")
    assert budget.statistics().refusals == 1


async def test_budget_when_a_little_is_given_back_then_is_still_exhausted() -> None:
    """Taking begins again only clearly below the limit, not at every page."""
    budget = Held()
    await budget.at(100)
    assert await budget.at(97.5) == (True, True)
    assert await budget.at(96.5) == (True, False)
    assert await budget.at(99) == (True, False)


async def test_wait_when_there_is_room_again_then_ends() -> None:
    """A waiter for memory runs no code until a measurement finds room."""
    budget = Held()
    await budget.wait_room()
    await budget.at(100)
    waiting = asyncio.create_task(budget.wait_room())
    await budget.at(98)
    await asyncio.sleep(0)
    assert not waiting.done()
    await budget.at(50)
    await waiting


@pytest.mark.parametrize(
    ("settings", "alert", "limit"),
    [
        (MemorySettings(), 800, 900),
        (MemorySettings(limit_bytes=500 * MIB), 500, 500),
        (MemorySettings(alert_bytes=100 * MIB), 100, 900),
        (MemorySettings(alert_bytes=950 * MIB), 900, 900),
        (MemorySettings(alert_bytes=10 * MIB, limit_bytes=20 * MIB), 10, 20),
    ],
    ids=["nothing-said", "limit", "alert", "alert-beyond", "both"],
)
async def test_limits_when_not_said_then_are_shares_of_what_there_is(
    settings: MemorySettings, alert: int, limit: int
) -> None:
    """By default the alert is at 80 % and the limit at 90 % of machine or container."""
    budget = Budget(settings, Resident().measure)
    await budget.look()
    stands = budget.statistics()
    assert (stands.alert_bytes, stands.limit_bytes) == (alert * MIB, limit * MIB)


async def test_measurement_then_is_this_process() -> None:
    """The measured memory is positive and less than that of the machine."""
    memory = await measure_memory()
    assert MIB < memory.resident_bytes < memory.total_bytes


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"alert_bytes": 0}, "memory.alert_bytes"),
        ({"limit_bytes": -1}, "memory.limit_bytes"),
        ({"limit_bytes": 2**63}, "memory.limit_bytes"),
        ({"alert_bytes": 0.5}, "memory.alert_bytes"),
        ({"alert_bytes": float("inf")}, "memory.alert_bytes"),
        ({"limit_bytes": True}, "memory.limit_bytes"),
        (
            {"alert_bytes": 2, "limit_bytes": 1},
            "memory.alert_bytes must not be above memory.limit_bytes",
        ),
    ],
    ids=["zero", "negative", "int64", "fraction", "infinite", "flag", "crossed"],
)
def test_f97_memory_when_it_means_nothing_then_is_refused_by_its_key(
    given: dict[str, int], names: str
) -> None:
    """The settings refuse an impossible amount of memory by its key."""
    with pytest.raises(ConfigError, match=names):
        MemorySettings(**given)
