"""The tools for tests of shards notice damage."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.report import Entry, Report, Tally
from rlmm.metadata.verdicts import APPLIED, DUPLICATE, Applied, Remark
from tests.support.engine.shards import check_report, state_of
from tests.support.records.histories import PARTITIONS, DenseHistory

SAMPLE = """
import pytest
from tests.support.builders import started
from rlmm.metadata.python_shard import PythonShard
from tests.support.engine.shards import new_shard, state_of

def broken():
    shard = PythonShard(0)
    shard.apply_event(started("s"))
    state_of(shard).size_bytes += 1

def test_broken(): broken()

@pytest.mark.breaks_shards
def test_broken_on_purpose(): broken()

def test_sound(): new_shard().apply_event(started("s"))
"""


@pytest.mark.breaks_shards
@pytest.mark.parametrize(
    ("name", "errors"), [("test_broken", 1), ("test_broken_on_purpose", 0), ("test_sound", 0)]
)
def test_shard_when_broken_then_error(pytester: pytest.Pytester, name: str, errors: int) -> None:
    """The check runs without a request by the test, and only a mark turns it off."""
    pytester.makepyfile(test_sample=SAMPLE)
    options = ("-p", "tests.support.engine.shards", "-p", "no:randomly", "-p", "no:asyncio")
    result = pytester.runpytest_inprocess(*options, f"test_sample.py::{name}")
    result.assert_outcomes(passed=1, errors=errors)


@pytest.mark.parametrize(
    ("tally", "entries"),
    [
        pytest.param(Tally(applied=1), (), id="offset-not-counted"),
        pytest.param(Tally(applied=3), (), id="offset-counted-twice"),
        pytest.param(Tally(applied=1, duplicate=1), (), id="entry-missing"),
        pytest.param(Tally(applied=2), (Entry(0, 1, DUPLICATE),), id="entry-not-counted"),
        pytest.param(Tally(applied=2), (Entry(0, 1, APPLIED),), id="entry-not-needed"),
        pytest.param(
            Tally(duplicate=2), (Entry(1, 2, DUPLICATE), Entry(0, 1, DUPLICATE)), id="order"
        ),
        pytest.param(Tally(duplicate=2), (Entry(1, 3, DUPLICATE),), id="behind-the-end"),
    ],
)
def test_report_when_wrong_then_refused(tally: Tally, entries: tuple[Entry, ...]) -> None:
    """The check finds each way to lose an offset or count it twice."""
    with pytest.raises(AssertionError):
        check_report(Report(0, 0, 2, complete=True, tally=tally, redelivered=0, entries=entries))


def test_dense_history_then_reaches_what_is_hard_to_reach() -> None:
    """Displaced, hidden and stray segments, repeats, second lives and deleted partitions."""
    seen: Counter[str] = Counter()
    for seed in range(5):
        history, shard = DenseHistory(random.Random(seed)), PythonShard(0)
        for _ in range(200):
            verdict = shard.apply_event(history.event())
            seen[str(verdict.remark) if isinstance(verdict, Applied) else str(verdict)] += 1
            if shard.knows(PARTITIONS[0]):
                state = state_of(shard, PARTITIONS[0])
                seen["stray"] += bool(state.strays)
                seen["hidden"] += any(entry.shadowed for entry in state.epochs.values())
    assert min(seen[str(remark)] for remark in Remark if remark is not Remark.MISPLACED) >= 3
    assert min(seen["stray"], seen["hidden"], seen[str(DUPLICATE)]) >= 20
