"""Decisions about metadata: quiet, safe to copy beside, ended copies, and checks afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentState
from spark_tiering.adopt.end_plan import blocking, ending_plan
from spark_tiering.adopt.outcomes import AdoptionRefusal
from spark_tiering.adopt.safety import (
    AdoptedPartition,
    QuietWatch,
    copied_twice,
    few,
    highest_tiered,
    moved_starts,
    why_not_enabled,
)
from spark_tiering.copy_plan.document import format_plan, parse_plan
from spark_tiering.copy_plan.inputs import OpenCopyWriter, StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode, EndReason, LeftOpen
from tests.support.builders import tp
from tests.support.tier.copy_plans import copied, cut, evidence, image, metadata, rules, source

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.segments.leader_epochs import Epochs

CS, CF, DS, DF = SegmentState
A, B = tp("orders", 1), tp("orders", 2)
HISTORY: Epochs = ((0, 0),)


def seen(
    *segments: SegmentMetadata, log_start: int | None = 0, history: Epochs | None = HISTORY
) -> AdoptedPartition:
    return AdoptedPartition(tp(), image(*segments), log_start, history)


def test_metadata_when_left_alone_long_enough_then_quiet() -> None:
    """Metadata is quiet after enough time since the last change of any partition."""
    watch = QuietWatch(100)
    assert not watch.saw(0, {A: "x", B: "y"})
    assert not watch.saw(99, {A: "x", B: "y"})
    assert not watch.saw(120, {A: "x", B: "z"})
    assert not watch.saw(219, {A: "x", B: "z"})
    assert watch.saw(220, {A: "x", B: "z"})


def test_metadata_when_it_cannot_be_read_then_never_quiet() -> None:
    """Metadata that cannot be read never counts as quiet, and an added partition is a change."""
    watch = QuietWatch(10)
    assert not any(watch.saw(at, {A: "x", B: None}) for at in range(0, 100, 20))
    assert watch.unread == [B]
    assert not watch.saw(100, {A: "x"})
    assert watch.saw(110, {A: "x"})


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (seen(log_start=None), AdoptionRefusal.NO_LEADER),
        (AdoptedPartition(tp(), None, 0, HISTORY), AdoptionRefusal.METADATA_ABSENT),
        (seen(copied("a", 0, 10, CF), history=None), AdoptionRefusal.SOURCE_LACKS_PARTITION),
        (seen(copied("a", 10, 20, CS)), AdoptionRefusal.LONE_COPY),
        (seen(copied("a", 10, 20, CF)), AdoptionRefusal.LONE_COPY),
        (seen(copied("a", 10, 20, DS)), AdoptionRefusal.LONE_COPY),
        (seen(copied("a", 0, 10, CF), copied("b", 20, 30, CF)), AdoptionRefusal.TIER_HAS_HOLE),
        (seen(copied("a", 0, 10, CS), copied("b", 10, 20, CF)), AdoptionRefusal.TIER_HAS_HOLE),
        (
            seen(copied("a", 50, 60, CS, ((0, 50),)), copied("b", 10, 20, CF, ((1, 10),)),
                 log_start=10, history=((0, 0), (1, 10))),
            AdoptionRefusal.LONE_COPY,
        ),
    ],
    ids=[
        "no-leader", "no-metadata", "no-history", "lone-started", "lone-finished", "lone-deleting",
        "hole", "hole-with-an-open-copy", "lone-of-the-oldest-epoch",
    ],
)  # fmt: skip
def test_brokers_may_not_lose_records(partition: AdoptedPartition, reason: AdoptionRefusal) -> None:
    """Brokers may not copy while a start or a finished offset would make them delete records."""
    refused = why_not_enabled(partition)
    assert refused is not None
    assert refused.reason is reason


@pytest.mark.parametrize(
    "partition",
    [
        seen(),
        seen(history=None),
        seen(copied("a", 0, 10, CF)),
        seen(copied("a", 0, 10, CF), copied("b", 10, 20, CS)),
        seen(copied("a", 0, 10, CS)),
        seen(copied("a", 0, 10, CF), copied("b", 10, 20, CF), log_start=5),
        seen(copied("a", 0, 10, CF), copied("b", 30, 40, CS)),
    ],
    ids=["nothing", "elsewhere", "copied", "going-on", "begun", "trimmed", "open-above"],
)
def test_brokers_when_the_tier_is_whole_then_may_copy(partition: AdoptedPartition) -> None:
    """Brokers may copy when finished segments reach from the log start without a hole."""
    assert why_not_enabled(partition) is None


def test_leader_when_it_copies_again_then_is_to_know_the_highest_finished_offset() -> None:
    """A leader that copies again has to report its lineage's highest finished offset."""
    assert highest_tiered(seen()) is None
    assert highest_tiered(seen(copied("a", 0, 10, CS))) is None
    assert highest_tiered(seen(copied("a", 0, 10, CF), copied("b", 10, 20, CF))) == 19
    assert highest_tiered(seen(copied("a", 0, 10, CF), log_start=50)) is None
    assert highest_tiered(seen(copied("a", 0, 10, CF), history=None)) is None


def test_open_copies_when_ended_then_from_the_top_down_and_brokers_ones_stay() -> None:
    """Open copies of a job end from the top down; brokers' copies are left to retention."""
    opened = [
        copied("a", 10, 20, CS),
        copied("b", 30, 40, DS),
        copied("c", 20, 30, CS),
        copied("foreign", 40, 50, CS, broker_id=9),
    ]
    facts = [evidence(one) for one in opened[:3]]
    facts.append(evidence(opened[3], writer=OpenCopyWriter.FOREIGN))
    held = source(cut(0, 10, 20, 30, 40), is_tiered=True, log_start=0)
    plan = ending_plan(
        rules(CopyMode.ADOPT), metadata(image(*opened)), {held.partition: held}, facts
    )
    (one,) = plan.partitions
    assert [end.start_offset for end in one.ends] == [30, 20, 10]
    assert [end.reason for end in one.ends] == [
        EndReason.DELETION_BEGUN,
        EndReason.WINDOW_CLOSED,
        EndReason.WINDOW_CLOSED,
    ]
    assert [left.reason for left in one.left_open] == [LeftOpen.NOT_OURS]
    assert blocking(plan) == []
    assert parse_plan(format_plan(plan)) == plan


@pytest.mark.parametrize(
    ("writer", "objects", "bases", "reason"),
    [
        (OpenCopyWriter.ALIVE, StoredObjects.NONE, (0, 10, 20), LeftOpen.WRITER_ALIVE),
        (OpenCopyWriter.ENDED, StoredObjects.UNKNOWN, (0, 10, 20), LeftOpen.OBJECTS_UNKNOWN),
        (OpenCopyWriter.ENDED, StoredObjects.WHOLE, (20, 30), LeftOpen.LAST_COPY),
    ],
    ids=["alive", "not-known", "last-copy"],
)
def test_open_copy_when_it_must_not_be_ended_then_keeps_the_window_open(
    writer: OpenCopyWriter, objects: StoredObjects, bases: tuple[int, ...], reason: LeftOpen
) -> None:
    """An open copy that must not be ended is named, stays undeleted, and keeps the window open."""
    opened = copied("a", 10, 20, CS)
    held = source(cut(*bases), is_tiered=True, log_start=0)
    plan = ending_plan(
        rules(CopyMode.ADOPT),
        metadata(image(opened)),
        {held.partition: held},
        [evidence(opened, objects, writer)],
    )
    assert plan.is_empty
    (text,) = blocking(plan)
    assert reason.value in text


def test_open_copy_when_nothing_is_known_of_it_then_keeps_the_window_open() -> None:
    """An open copy without evidence of its writer keeps the window open."""
    plan = ending_plan(rules(CopyMode.ADOPT), metadata(image(copied("a", 0, 10, CS))), {}, [])
    assert plan.is_empty
    assert len(blocking(plan)) == 1


def test_log_start_when_it_has_moved_then_is_named() -> None:
    """A log start offset that moved in a window is named, because nothing expires there."""
    partitions = [AdoptedPartition(A, None, 5, None), AdoptedPartition(B, None, None, None)]
    assert moved_starts(partitions, {1: 5, 2: 7}) == []
    assert moved_starts(partitions, {1: 4}) == [f"{A}: its log began at 4, it begins at 5"]


def test_range_when_somebody_copies_it_once_more_then_is_named() -> None:
    """A second copy of an adopted range is named; older copies or those above it are not."""
    ours, old = copied("ours", 10, 20, CF), copied("old", 10, 20, CS, broker_id=9)
    before = [seen(ours, old)]
    above = copied("above", 20, 30, CF, broker_id=9)
    again = copied("again", 15, 25, CS, broker_id=9)
    assert copied_twice(before, [seen(ours, old, above)], {ours.id.uuid}) == []
    (text,) = copied_twice(before, [seen(ours, old, above, again)], {ours.id.uuid})
    assert "15-24 is copied once more" in text


def test_many_texts_when_told_then_the_first_ones_and_how_many_more() -> None:
    """A list of many texts shows the first ones and the number of others."""
    assert few(["a", "b"]) == "a; b"
    assert few(list("abcdefg")) == "a; b; c; d; e; and 2 more"
