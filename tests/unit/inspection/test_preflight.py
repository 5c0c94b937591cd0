"""Dependencies on the tier before a partition is reassigned or a topic is deleted."""

from __future__ import annotations

import pytest

from rlmm.inspection.cluster_facts import PartitionOffsets
from rlmm.inspection.preflight import (
    before_deletion,
    before_reassignment,
    targets_without_tier,
)
from rlmm.metadata.segment import SegmentState
from tests.support.builders import started, tp

CF = SegmentState.COPY_SEGMENT_FINISHED
WHOLE = [started("a", 0, 99, {0: 0}, state=CF), started("b", 100, 199, {3: 100}, state=CF)]


@pytest.mark.parametrize(
    ("local", "leader_epoch", "codes"),
    [
        (200, 3, []),
        (150, 3, []),
        (0, 3, []),
        # The range before the local start was copied by nobody, or by a leader yet to come.
        (250, 3, ["NO-STATE-BEFORE-LOCAL"]),
        (200, 2, ["NO-STATE-BEFORE-LOCAL"]),
        (100, 2, []),
        (200, None, []),
    ],
)
def test_reassignment_needs_the_segment_right_before_the_local_start(
    local: int, leader_epoch: int | None, codes: list[str]
) -> None:
    """The segment before the local start is needed in an epoch that the leader has."""
    ends = PartitionOffsets(earliest=0, earliest_local=local, latest=300, last_stable=200)
    found = before_reassignment(tp(), WHOLE, ends, leader_epoch)
    assert [one.kind.code for one in found] == codes


def test_reassignment_when_copies_are_open_or_behind_then_says_so() -> None:
    """Open copies and lag are notes, and do not prevent a reassignment."""
    segments = [*WHOLE, started("open", 200, 299, {3: 200})]
    ends = PartitionOffsets(earliest=0, earliest_local=150, latest=400, last_stable=350)
    found = before_reassignment(tp(), segments, ends, 3)
    assert [one.kind.code for one in found] == ["COPY-UNDER-WAY", "COPIES-BEHIND"]
    assert found[1].fields["offsets"] == 150
    unknown = before_reassignment(tp(), segments, None, None)
    assert [one.kind.code for one in unknown] == ["LOCAL-START-UNKNOWN", "COPY-UNDER-WAY"]
    assert [one.kind.code for one in before_reassignment(tp(), [], ends, 3)] == ["NOT-TIERED"]


def test_reassignment_to_a_broker_that_does_not_tier_is_an_error() -> None:
    """A broker without tiering is an error, and an unknown one is not judged."""
    found = targets_without_tier({1: True, 2: False, 3: None}, [1, 2, 3, 4])
    assert [one.subject for one in found] == ["broker 2"]


def test_deletion_names_what_only_the_tier_has_and_what_would_stay_behind() -> None:
    """Data that is local as well goes, too, and is not named."""
    ends = PartitionOffsets(earliest=0, earliest_local=150, latest=400)
    found = before_deletion("orders", [(WHOLE, ends)])
    assert [one.kind.code for one in found] == ["DATA-ONLY-REMOTE"]
    assert (found[0].fields["segments"], found[0].fields["size_bytes"]) == (1, 1_024)
    both = before_deletion("orders", [(WHOLE, None), ([started("open", 200, 299)], ends)])
    assert [one.kind.code for one in both] == ["DATA-ONLY-REMOTE", "LEFTOVERS-LIKELY"]
    assert both[0].fields["segments"] == 2
    assert [one.kind.code for one in before_deletion("orders", [([], ends)])] == ["NOT-TIERED"]
