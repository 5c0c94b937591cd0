"""The strategies reach the corners that the properties are about."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given, settings

from rlmm.metadata.decoding import decode
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.verdicts import Undecodable
from tests.support.records import golden, strategies

if TYPE_CHECKING:
    from rlmm.metadata.events import Event


def test_histories_when_played_then_meet_what_matters() -> None:
    """Segments get in each other's way: every kind of verdict, displacement, strays, deletion."""
    seen: Counter[str] = Counter()

    @settings(max_examples=100, derandomize=True, database=None, deadline=None)
    @given(strategies.histories())
    def play(history: list[Event]) -> None:
        shard = PythonShard(0)
        for event in history:
            verdict = shard.apply_event(event)
            seen[type(verdict).__name__] += 1
            seen[str(getattr(verdict, "remark", None))] += 1
        held = shard.statistics()
        seen["started"] += held.segments_started
        seen["finished"] += held.segments_finished
        seen["being deleted"] += held.segments_being_deleted
        seen["stray"] += sum(len(state.strays) for state in shard._states.values())

    play()
    wanted = {"Applied", "Duplicate", "Rejected", "displaced-another-segment"}
    wanted |= {"started", "finished", "being deleted", "stray", "partition-delete-out-of-order"}
    assert wanted <= {name for name, count in seen.items() if count}, seen


def test_damage_when_done_then_some_values_still_mean_something() -> None:
    """Damage is small enough that values pass for records, and large enough that most do not."""
    random = Random(1)
    results = Counter(
        isinstance(decode(strategies.damaged(random, one.value)), Undecodable)
        for one in golden.ALL
        for _ in range(50)
    )
    assert results[True] > 200
    assert results[False] > 200
