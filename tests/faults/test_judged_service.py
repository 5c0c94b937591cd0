"""`rlmm serve` under kills, judged by the answers that its clients got."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.judge.broken import FAULTS
from tests.support.judge.run import JudgedRun

if TYPE_CHECKING:
    from pathlib import Path

FOUND_IN_CI = ("verdict always applied", "believed snapshot", "observer that does not follow")
SITUATIONS = (
    *("histories begun anew by a cut", "refusals of another partition count"),
    *("answered by the observer", "pauses of the observer", "kills of the observer"),
)


@pytest.mark.timeout(8 * 3_600)
@pytest.mark.parametrize(
    ("operations", "kills"),
    [
        pytest.param(1_500, 4, id="1500-operations"),
        pytest.param(100_000, 100, id="100000-operations", marks=pytest.mark.long),
    ],
)
async def test_service_when_killed_again_and_again_then_all_answers_have_one_order(
    tmp_path: Path, operations: int, kills: int
) -> None:
    """Every answer of a service that is killed is linearizable on its user partition."""
    run = JudgedRun(tmp_path, operations=operations, kills=kills, seed=1)
    figures = await run.run()
    assert figures.illegal == 0, "\n".join(figures.told)
    assert figures.operations >= operations
    assert figures.kills >= kills
    assert figures.counts["answered"] > operations // 2
    assert kills < 100 or all(figures.counts[what] > 2 for what in SITUATIONS), figures.counts


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=[pytest.mark.long] * (name not in FOUND_IN_CI)) for name in FAULTS],
)
async def test_judge_when_a_fault_is_planted_in_the_service_then_finds_it(
    tmp_path: Path, fault: str
) -> None:
    """The judge finds an illegal answer of a service with a planted fault."""
    run = JudgedRun(tmp_path, operations=10_000, kills=80, seed=5, fault=fault)
    figures = await run.run()
    assert figures.illegal, figures
    assert figures.told
