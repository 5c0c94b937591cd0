"""The simulator: invariants hold, seeds replay exactly, and broken engines are caught."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from hypothesis import settings

from rlmm.log.memory.partition import MemoryPartition
from tests.simulation.__main__ import main
from tests.simulation.broken import BROKEN, Broken
from tests.simulation.fetches import end_of_epoch
from tests.simulation.seeds import Tried, told, try_many, try_seeds
from tests.simulation.steps import STEPS
from tests.simulation.world import run
from tests.support.engine.chosen import needs_native
from tests.support.repository import tree

pytestmark = pytest.mark.breaks_shards  # a judge of its own looks at every shard, at every step

CHUNK = 50
SEEDS = 1_000
"""What CI runs; while working it is a part of them."""
SEEDS_LONG = int(os.environ.get("RLMM_SIMULATION_SEEDS", "100000"))
SAME_STORY = "[(run(seed).digest, run(seed).counts) for seed in range(100, 106)]"
CAUGHT_WITHIN = 300
"""Seeds within which a broken engine must be caught."""
CAUGHT_WITHIN_LONG = 3_000
RARE = frozenset({"endless stop"})
"""Faults that need rare things to meet."""
NO_FAULTS = RARE if sys.version_info >= (3, 13) else frozenset()
"""A task group of Python 3.13 keeps a cancellation itself: nothing is broken."""
CAUGHT_WHILE_WORKING = frozenset({"stale read", "early acknowledgement", "torn snapshot"})


def is_short() -> bool:
    return settings().max_examples < settings.get_profile("ci").max_examples


def failures(tried: Tried) -> str:
    return "\n\n".join(told(outcome) for outcome in tried.failed[:3])


@pytest.mark.parametrize("first", range(0, 2 * CHUNK if is_short() else SEEDS, CHUNK))
def test_simulation_when_anything_may_happen_then_invariants_hold(first: int) -> None:
    """An engine violates no invariant for any seed."""
    tried = try_seeds(first, first + CHUNK)
    assert not tried.failed, failures(tried)


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
def test_simulation_of_many_seeds_when_anything_may_happen_then_invariants_hold() -> None:
    """An engine violates no invariant for as many seeds as `RLMM_SIMULATION_SEEDS` sets."""
    found = Tried()
    for tried in try_many(SEEDS, SEEDS + SEEDS_LONG, workers=2):
        found.add(tried)
        assert not found.failed, failures(found)
    assert found.count == SEEDS_LONG


@pytest.mark.parametrize("seed", [3, 14, 15])
def test_simulation_when_a_seed_is_run_again_then_its_story_is_the_same(seed: int) -> None:
    """A seed replays exactly, to the last line and millisecond of its story."""
    first, again = run(seed), run(seed)
    assert first.lines == again.lines
    assert first.digest == again.digest
    assert first.digest != run(seed + 1).digest


@needs_native
def test_simulation_on_either_engine_then_has_the_same_story() -> None:
    """A seed of the Python engine replays on the native one to the last line and millisecond."""
    program = f"from tests.simulation.world import run\nprint({SAME_STORY})"
    stories = []
    for engine in ("python", "native"):
        told = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tree.ROOT, env={**os.environ, "RLMM_ENGINE": engine},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        stories.append(told.stdout)
    assert stories[0] == stories[1]


def test_simulation_when_many_seeds_have_run_then_everything_was_tried() -> None:
    """Many seeds together take every step and meet every kind of answer, outcome and recovery."""
    tried = try_seeds(0, CHUNK)
    for step in STEPS:
        assert tried.counts[f"step: {step.__name__}"], step.__name__
    for what in (
        "read: answered",
        "read: unknown",
        "read: NotReady",
        "read: NotAssigned",
        "read: Stopped",
        "write: applied",
        "write: duplicate",
        "write: stored",
        "write: rejected",
        "write: not known: AppendUncertain",
        "write: not known: OutcomeUnknown",
        "write: not known: Stopped",
        "write: not stored: OverBudget",
        "at_least: reached",
        "linearizable: current",
        "disks looked at after a crash",
        "records lost by elections",
        "states compared whole after a cut",
        "starts refused: another partition count",
        "snapshots restored",
        "restarts that replay nothing",
    ):
        assert tried.counts[what] >= 3, (what, tried.counts[what])


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(broken, id=broken.name, marks=[pytest.mark.long] * (broken.name in RARE))
        for broken in BROKEN
        if broken.name not in NO_FAULTS
        if broken.name in CAUGHT_WHILE_WORKING or not is_short()
    ],
)
def test_simulation_when_an_engine_is_broken_then_catches_it(broken: Broken) -> None:
    """One planted fault violates the invariant about it; without it, the seed violates none."""
    limit = CAUGHT_WITHIN_LONG if broken.name in RARE else CAUGHT_WITHIN
    for seed in range(limit):
        with broken.applied():
            outcome = run(seed)
        if outcome.violations:
            assert outcome.violations[0].invariant in broken.violates, told(outcome)
            with broken.applied(is_sound=True):
                outcome = run(seed)
            assert not outcome.violations, told(outcome)
            return
    pytest.fail(f"{broken.name} is not caught within {limit} seeds")


def test_broken_engines_when_counted_then_each_has_a_name_of_its_own() -> None:
    """At least twenty faults are planted, no two under one name."""
    assert len({broken.name for broken in BROKEN}) == len(BROKEN) >= 20


EPOCH_ENDS = {
    "the newest": (6, (6, 30)),
    "one before it": (3, (3, 20)),
    "one that was skipped": (4, (3, 20)),
    "one without records": (5, (3, 20)),
    "one that retention removed": (0, (0, 10)),
    "one after all": (7, (-1, -1)),
}


@pytest.mark.parametrize(("asked", "end"), EPOCH_ENDS.values(), ids=EPOCH_ENDS)
def test_leader_epoch_when_its_end_is_asked_then_is_answered_as_by_a_broker(
    asked: int, end: tuple[int, int]
) -> None:
    """A leader names the largest epoch up to the wanted one, and where the next begins."""
    starts = [(1, 2), (2, 4), (3, 8), (5, 20), (6, 20)]
    held = MemoryPartition(0, 10, 30, leader_epoch=6, epoch_starts=starts)
    assert end_of_epoch(held, asked) == end


def test_simulation_command_when_a_seed_fails_then_tells_its_number_and_story() -> None:
    """The output has the seed, the end of its story and the violated invariant."""
    result = CliRunner().invoke(main, ["--broken", "early acknowledgement", "--seeds", "5"])
    assert result.exit_code == 1, result.output
    failed = re.search(r"VIOLATED by seed (\d+): I3: .*acknowledged", result.output)
    assert failed is not None, result.output
    assert f"--seed {failed[1]} --verbose" in result.output


def test_simulation_command_when_one_seed_is_told_then_prints_its_story() -> None:
    """With `--verbose` the command prints a seed's story line by line, with times and actors."""
    result = CliRunner().invoke(main, ["--seed", "3", "--verbose"])
    assert result.exit_code == 0, result.output
    outcome = run(3)
    assert result.output.splitlines()[:-1] == list(outcome.lines)
    assert outcome.digest in result.output
