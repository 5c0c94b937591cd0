"""Admission in the hands of the native core: up to its moment, and until it is taken back."""

from __future__ import annotations

import math
import os
from importlib.util import find_spec

import pytest

from rlmm.gate.admission import Gate
from rlmm.gate.reads import PartitionQueries
from rlmm.log.replay_progress import CaughtUp, ReplayProgress
from rlmm.metadata.assignment import Assignment
from rlmm.wire.messages import request_frame
from rlmm.wire.values import partition_value
from tests.support.builders import finished, segment_id, started, tp

pytestmark = pytest.mark.skipif(
    find_spec("rlmm_native") is None and "CI" not in os.environ,
    reason="the native core is not built: `make native` builds it, with cargo",
)

FRAME = request_frame(1, "segment_for", [partition_value(tp()), 0, 0])


def opened() -> tuple[Gate, PartitionQueries]:
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - may not be built

    gate = Gate()
    gate.connect(1)
    gate.assign(Assignment.everything())
    progress = ReplayProgress(0, 0, None, None, None, None)
    gate.begin_partition(0, progress)
    shard = NativeShard(0)
    for event in (started(segment_id("a")), finished(segment_id("a"))):
        shard.apply_event(event)
    gate.set_shard(0, shard)
    gate.take_fact(0, CaughtUp(), progress)
    gate.hold(0, 10.0)
    reads = PartitionQueries(gate)
    assert reads.lookups.answer is None
    assert reads.row_for(tp(), 0, 0) is not None
    return gate, reads


def is_answered(reads: PartitionQueries, now_s: float) -> bool:
    assert reads.lookups.answer is not None
    return reads.lookups.answer(FRAME, now_s, 10, 1_000) is not None


def test_frame_when_the_moment_has_passed_then_is_not_answered() -> None:
    """The core answers up to the moment, also where it is set earlier than it was."""
    gate, reads = opened()
    assert [is_answered(reads, now_s) for now_s in (0.0, 10.0, 10.5)] == [True, True, False]
    gate.hold(0, 5.0)
    assert [is_answered(reads, now_s) for now_s in (5.0, 7.0)] == [True, False]
    gate.hold(0, -math.inf)
    assert not is_answered(reads, 0.0)
    gate.hold(0, math.nan)
    assert not is_answered(reads, 0.0)


def test_frame_when_the_state_is_dropped_or_taken_back_then_is_not_answered() -> None:
    """The core answers from no state that was given up, and for nothing after a change."""
    gate, reads = opened()
    gate.assign(Assignment.everything())
    assert not is_answered(reads, 0.0)
    assert reads.row_for(tp(), 0, 0) is not None
    assert is_answered(reads, 0.0)
    shard = gate.admit(tp())
    for _ in shard.clearing():
        pass
    assert not is_answered(reads, 0.0)
