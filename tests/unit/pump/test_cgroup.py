"""The memory limit of a container, as control groups tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.pump import budget
from rlmm.pump.budget import container_limit_bytes, measure_memory

if TYPE_CHECKING:
    from pathlib import Path

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
    monkeypatch.setattr(budget, "container_limit_bytes", lambda: None)
    machine = (await measure_memory()).total_bytes
    monkeypatch.setattr(budget, "container_limit_bytes", lambda: limit)
    assert (await measure_memory()).total_bytes == min(machine, limit or machine)
