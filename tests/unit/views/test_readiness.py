"""Readiness as it is shown: pure, from values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.engine.statistics import EngineStatus
from rlmm.gate.state import GateState
from rlmm.gate.statistics import ShardGateStatistics
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import NotReadyReason, ReplayProgress
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import Uuid
from rlmm.views.readiness import ProcessStatus, liveness_view, readiness_view

IDENTITY = LogIdentity("cluster", Uuid(bytes(16)), 2)
OPEN = ShardGateStatistics(GateState.OPEN, None, "", 1)
BEHIND = ShardGateStatistics(GateState.STALE, NotReadyReason.BEHIND, "5 records", 1)
NEVER = ShardGateStatistics(GateState.REPLAYING, NotReadyReason.REPLAYING, "", 0)
ALL = EngineStatus(
    IDENTITY,
    Assignment.everything(),
    "",
    100.0,
    {0: OPEN, 1: OPEN},
    {1: ReplayProgress(1, 3, 8, 0, 9, 0.0)},
    {},
)
REPLAYING = replace(ALL, gates={0: OPEN, 1: NEVER})
STALE = replace(ALL, gates={0: OPEN, 1: BEHIND})
UNREACHED = EngineStatus(None, Assignment.everything(), "away", None, {}, {}, {})


@pytest.mark.parametrize(
    ("process", "word", "is_ready", "was_ready"),
    [
        (ProcessStatus({}, is_begun=False), "starting", False, False),
        (ProcessStatus({}, ("a",)), "starting", False, False),
        (ProcessStatus({}), "not-ready", False, False),
        (ProcessStatus({"a": ALL}, ("a", "b")), "starting", False, False),
        (ProcessStatus({"a": ALL}), "ready", True, True),
        (ProcessStatus({"a": ALL, "b": UNREACHED}), "not-ready", False, False),
        (ProcessStatus({"a": REPLAYING}), "not-ready", False, False),
        (ProcessStatus({"a": STALE}), "not-ready", False, True),
        (ProcessStatus({"a": replace(ALL, gates={})}), "not-ready", False, False),
        (
            ProcessStatus({"a": replace(ALL, assignment=Assignment.awaited(), gates={})}),
            "not-ready", False, False,
        ),
        (
            ProcessStatus({"a": replace(ALL, assignment=Assignment.nothing(), gates={})}),
            "ready", True, True,
        ),
        (ProcessStatus({"a": ALL}, end="stopping"), "stopping", False, True),
        (ProcessStatus({"a": ALL}, end="stopping", failure="x"), "failed", False, True),
    ],
    ids=[
        "unborn", "opening", "nothing", "one-opening", "ready", "one-unreached", "replaying",
        "behind", "not-begun", "awaited", "assigned-nothing", "stopping", "failed",
    ],
)  # fmt: skip
def test_process_when_it_stands_so_then_it_says_so(
    process: ProcessStatus, word: str, is_ready: bool, was_ready: bool
) -> None:
    """A process is ready when it answers for all, and started once it was ready."""
    shown = readiness_view(process)
    assert (shown.status, shown.is_ready) == (word, is_ready)
    assert process.was_ready == was_ready
    assert bool(shown.detail) != is_ready


@pytest.mark.parametrize(
    ("judged_s", "end", "failure", "word"),
    [
        (100.0, "", "", "alive"),
        (39.0, "", "", "stuck"),
        (39.0, "stopping", "", "alive"),
        (100.0, "stopping", "a part has failed", "failed"),
        (None, "", "", "alive"),
    ],
    ids=["young", "old", "old-at-the-end", "failed", "first-moment"],
)
def test_life_when_the_heartbeat_is_so_old_then_f100(
    judged_s: float | None, end: str, failure: str, word: str
) -> None:
    """A pump without a heartbeat is not alive, except during an orderly stop."""
    engine = replace(ALL, judged_s=judged_s)
    shown = liveness_view(ProcessStatus({"a": engine}, end=end, failure=failure), 100.0, 60.0)
    assert (shown.status, shown.is_alive) == (word, word == "alive")


def test_life_when_the_log_is_not_reached_then_it_is_life() -> None:
    """Brokers that are away are no reason to be started anew."""
    unreached = replace(UNREACHED, judged_s=0.0)
    assert liveness_view(ProcessStatus({"a": unreached}), 1e9, 60.0).is_alive


def test_process_when_a_log_takes_long_to_open_then_names_what_is_waited_for() -> None:
    """A cluster whose engine began without its log is shown once, as being opened, and where."""
    process = ProcessStatus(
        {"a": ALL, "b": UNREACHED}, ("a", "b", "c"), waits={"b": "the log in /data/b"}
    )
    shown = readiness_view(process)
    assert shown.status == "starting"
    assert shown.detail == "logs are being opened: b (the log in /data/b), c"
    clusters = shown.clusters
    assert [(one.cluster, one.reason, one.detail) for one in clusters] == [
        ("b", "opening", "its log is being opened: the log in /data/b"),
        ("c", "opening", "its log is being opened"),
        ("a", None, ""),
    ]
