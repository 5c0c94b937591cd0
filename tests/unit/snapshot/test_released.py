"""Snapshots that a release wrote: today's code reads the same state."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import SegmentState
from tests.support.engine.released_snapshots import released_shard, said_of
from tests.support.engine.snapshots import HISTORY, PARTITION, store_in
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

COMPAT = tree.ROOT / "tests/compat"
VERSIONS = sorted(path.stem for path in COMPAT.glob("snapshots-*.json"))


def said(version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((COMPAT / f"{version}.json").read_text())
    return found


@pytest.mark.parametrize("version", VERSIONS)
async def test_released_snapshot_when_it_is_restored_then_answers_as_when_it_was_written(
    version: str, tmp_path: Path
) -> None:
    """A restored snapshot of a release answers every question as that release did."""
    shutil.copytree(COMPAT / version, tmp_path / "snapshots")
    expected = said(version)
    restored = await store_in(tmp_path / "snapshots").restore(PARTITION, 0, expected["position"])
    assert restored is not None
    assert isinstance(restored.shard, PythonShard)
    assert restored.history == HISTORY
    assert said_of(restored.shard) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_released_snapshot_then_holds_every_state_there_is(version: str) -> None:
    """The released snapshot has every possible state."""
    partitions = said(version)["user_partitions"]
    states = {one["state"] for partition in partitions for one in partition["segments"]}
    assert states == {state.name for state in list(SegmentState)[:3]}
    deletes = [one["partition_delete"] for one in partitions if one["partition_delete"]]
    assert len({state for _, _, state in deletes}) == 3
    custom = {one["custom_metadata"] for each in partitions for one in each["segments"]}
    assert {None, ""} < custom


def test_newest_released_snapshot_then_is_what_today_s_code_makes_of_the_same_events() -> None:
    """Today's code makes the newest released snapshot from the same events."""
    assert said_of(released_shard()) == said(VERSIONS[-1])
