"""`rlmm serve` under kills, judged by the answers that its clients got."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.judge.broken import FAULTS, TIMEOUT_S, program_of
from tests.support.judge.run import JudgedRun

if TYPE_CHECKING:
    from pathlib import Path

FOUND_IN_CI = (
    *("event not stored", "listing from before", "verdict always applied"),
    "refused, though stored",
)


@pytest.mark.timeout(8 * 3_600)
@pytest.mark.parametrize(
    ("operations", "kills"),
    [
        pytest.param(2_500, 5, id="2500-operations"),
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


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=[pytest.mark.long] * (name not in FOUND_IN_CI)) for name in FAULTS],
)
async def test_judge_when_a_fault_is_planted_in_the_service_then_finds_it(
    tmp_path: Path, fault: str
) -> None:
    """The judge finds an illegal answer of a service with a planted fault."""
    run = JudgedRun(
        tmp_path,
        operations=20_000,
        kills=20,
        seed=3,
        program=program_of(fault),
        timeout_s=TIMEOUT_S,
    )
    figures = await run.run()
    assert figures.illegal, figures
    assert figures.told
