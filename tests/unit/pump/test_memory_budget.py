"""The memory budget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, OverBudget
from rlmm.pump import memory_budget
from rlmm.pump.memory_budget import (
    Budget,
    MemorySettings,
    MemoryUsage,
    container_limit_bytes,
    measure_memory,
)

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


class Resident:
    def __init__(self) -> None:
        self.mib = 0.0

    def measure(self) -> MemoryUsage:
        return MemoryUsage(round(self.mib * MIB), 1_000 * MIB)


class Held(Budget):
    def __init__(self) -> None:
        self.memory = Resident()
        super().__init__(
            MemorySettings(alert_bytes=80 * MIB, limit_bytes=100 * MIB), self.memory.measure
        )

    async def at(self, mib: float) -> tuple[bool, bool]:
        self.memory.mib = mib
        self.look()
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
    budget.look()
    stands = budget.statistics()
    assert (stands.alert_bytes, stands.limit_bytes) == (alert * MIB, limit * MIB)


async def test_measurement_then_is_this_process() -> None:
    """The measured memory is positive and less than that of the machine."""
    memory = measure_memory()
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
def test_f97_memory_that_is_none_is_refused_by_its_key(given: dict[str, int], names: str) -> None:
    """The settings refuse an impossible amount of memory by its key."""
    with pytest.raises(ConfigError, match=names):
        MemorySettings(**given)


UNLIMITED_V1 = "9223372036854771712"
POD = "kubepods.slice/pod7.slice/rlmm.scope"
HYBRID = "12:pids:/pod\n5:memory:/pod/rlmm\n1:name=systemd:/x\n0::/pod/rlmm\n"

CASES: dict[str, tuple[str | None, dict[str, str], int | None]] = {
    "no-groups": (None, {}, None),
    "v2, own group is the mount": ("0::/\n", {"memory.max": "1000\n"}, 1_000),
    "v2, no limit": ("0::/\n", {"memory.max": "max\n"}, None),
    "v2, own group deep below the mount": (
        f"0::/{POD}\n",
        {f"{POD}/memory.max": "700\n", "kubepods.slice/memory.max": "max\n"},
        700,
    ),
    "v2, an outer group is narrower": (
        f"0::/{POD}\n",
        {f"{POD}/memory.max": "700\n", "kubepods.slice/pod7.slice/memory.max": "600\n"},
        600,
    ),
    "v2, own group has no limit and an outer one has": (
        f"0::/{POD}\n",
        {f"{POD}/memory.max": "max\n", "kubepods.slice/memory.max": "500\n"},
        500,
    ),
    "v2, a group beside it is not its own": (
        f"0::/{POD}\n",
        {f"{POD}/memory.max": "700\n", "other.slice/memory.max": "1\n"},
        700,
    ),
    "v2, told from the host and mounted from the container": (
        f"0::/{POD}\n",
        {"memory.max": "800\n"},
        800,
    ),
    "v2, above what can be seen": ("0::/../../other\n", {"memory.max": "800\n"}, 800),
    "v2, a path with colons": (
        "0::/system.slice/a:b:c.scope\n",
        {"system.slice/a:b:c.scope/memory.max": "900\n"},
        900,
    ),
    "v1, own group": (
        "5:memory:/pod/rlmm\n",
        {"memory/pod/rlmm/memory.limit_in_bytes": "300\n"},
        300,
    ),
    "v1, no limit is a huge number": (
        "5:memory:/\n",
        {"memory/memory.limit_in_bytes": f"{UNLIMITED_V1}\n"},
        None,
    ),
    "v1, an outer group is narrower": (
        "5:memory:/pod/rlmm\n",
        {
            "memory/pod/rlmm/memory.limit_in_bytes": f"{UNLIMITED_V1}\n",
            "memory/pod/memory.limit_in_bytes": "400\n",
            "memory/memory.limit_in_bytes": f"{UNLIMITED_V1}\n",
        },
        400,
    ),
    "v1, told from the host and mounted from the container": (
        "5:memory:/docker/0123\n",
        {"memory/memory.limit_in_bytes": "200\n"},
        200,
    ),
    "v1, controllers that share a mount": (
        "5:cpu,memory:/pod\n",
        {"cpu,memory/pod/memory.limit_in_bytes": "250\n"},
        250,
    ),
    "v1, other controllers say nothing": (
        "5:memory:/pod\n4:cpu:/cpus\n",
        {"memory/cpus/memory.limit_in_bytes": "1\n", "cpu/cpus/memory.limit_in_bytes": "1\n"},
        None,
    ),
    "both, memory in v1": (HYBRID, {"memory/pod/rlmm/memory.limit_in_bytes": "300\n"}, 300),
    "both, memory in v2": (HYBRID, {"unified/pod/memory.max": "350\n"}, 350),
    "proc tells nothing, v2": (None, {"memory.max": "1000\n"}, 1_000),
    "proc tells nothing, v1": (None, {"memory/memory.limit_in_bytes": "1000\n"}, 1_000),
    "what is no number": ("0::/\n", {"memory.max": "³\n"}, None),
    "what is no line": ("nonsense\n\n0::/\n", {"memory.max": "1000\n"}, 1_000),
}


@pytest.mark.parametrize(("groups", "files", "limit"), CASES.values(), ids=CASES)
def test_limit_when_groups_set_some_then_is_the_least_that_holds_for_the_process(
    tmp_path: Path, groups: str | None, files: dict[str, str], limit: int | None
) -> None:
    """The limit is the least of the process's group and all around it, in both versions."""
    if groups is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, content in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert container_limit_bytes(tmp_path) == limit


@pytest.mark.parametrize(
    "limit", [123_456_789, None, 1 << 61], ids=["container", "no-container", "beyond-the-machine"]
)
async def test_memory_when_a_container_has_less_than_the_machine_then_that_is_all_there_is(
    monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    """The memory is the smaller one of container and machine."""
    monkeypatch.setattr(memory_budget, "container_limit_bytes", lambda: None)
    machine = measure_memory().total_bytes
    monkeypatch.setattr(memory_budget, "container_limit_bytes", lambda: limit)
    assert measure_memory().total_bytes == min(machine, limit or machine)
