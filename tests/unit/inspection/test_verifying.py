"""Checks of the tier's metadata, by what a stock broker would find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.findings.finding import Severity
from rlmm.inspection.cluster_facts import PartitionOffsets
from rlmm.inspection.event_record import EventRecord
from rlmm.inspection.late_finishes import LATE_FINISH, CopyTimes
from rlmm.inspection.moment import PartitionSummary
from rlmm.inspection.verify import broken_rules, verify_partition, verify_places
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentState
from rlmm.retention.segment_lineage import finished_of, gaps_in, lineage_of, overlaps_in
from tests.support.builders import delete_started, finished, segment_id, started, tp
from tests.support.cli.metadata_history import moment_of
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from rlmm.findings.finding import Finding
    from rlmm.metadata.events import Event

OLD, NEW = 1, 2
"""Brokers."""


def late_among(*events: Event, head: int = 0) -> list[object]:
    shard, told = ChosenShard(0), list[EventRecord]()
    for offset, event in enumerate(events):
        verdict = shard.apply_event(event, offset)
        told.append(EventRecord(0, offset, offset + 1, -1, event, verdict, encode_any(event)))
    pairs = overlaps_in(finished_of(shard.segments(tp())))
    copies = CopyTimes({one.id for pair in pairs for one in pair[:2]})
    for happened in told[head:]:
        copies.tell(happened)
    found = copies.late(pairs)
    assert all(one.kind is LATE_FINISH for one in found)
    assert {one.fields["broker_id"] for one in found} <= {OLD}
    return [one.fields["finished_at"] for one in found]


def begun(label: str, broker_id: int, last: int = 99) -> Event:
    return started(label, 0, last, broker_id=broker_id)


def ended(label: str, broker_id: int) -> Event:
    return finished(label, broker_id=broker_id)


LATE = (begun("old", OLD), begun("new", NEW), ended("new", NEW), ended("old", OLD))
IN_TURN = (begun("old", OLD), ended("old", OLD), begun("new", NEW), ended("new", NEW))


@pytest.mark.parametrize(
    ("events", "at"),
    [
        pytest.param(LATE, [3], id="late"),
        pytest.param((*LATE, ended("old", OLD)), [4], id="and-repeated"),
        pytest.param((*LATE, ended("new", NEW)), [], id="and-put-right-by-a-repeat"),
        pytest.param((*LATE, begun("old", OLD)), [3], id="and-begun-again-which-is-refused"),
        pytest.param((*IN_TURN, ended("old", OLD)), [4], id="repeated-late"),
        pytest.param(
            (begun("old", OLD), begun("new", NEW), ended("old", OLD), ended("new", NEW)),
            [],
            id="at-the-same-time-in-order",
        ),
        pytest.param((*LATE[:3], ended("gone", OLD), LATE[3]), [4], id="another-refused-between"),
        pytest.param(
            (begun("old", OLD, 49), begun("new", NEW), ended("new", NEW), ended("old", OLD)),
            [3],
            id="shorter",
        ),
        pytest.param(IN_TURN, [], id="one-after-the-other"),
        pytest.param(
            (begun("new", NEW), ended("new", NEW), begun("old", OLD), ended("old", OLD)),
            [],
            id="begun-behind-it",
        ),
        pytest.param(
            (begun("old", OLD), begun("new", OLD), ended("new", OLD), ended("old", OLD)),
            [],
            id="same-broker",
        ),
        pytest.param((*LATE, delete_started("old", broker_id=OLD)), [], id="being-deleted"),
    ],
)
def test_f57_copies_when_told_in_order_then_late_is_who_began_first_and_ended_last(
    events: tuple[Event, ...], at: list[int]
) -> None:
    """A late finish is one of a copy that began first and ended last, of another broker."""
    assert late_among(*events) == at


def test_f57_copies_when_a_beginning_is_not_in_the_log_then_nobody_is_blamed() -> None:
    """A trimmed head may have had it anywhere."""
    assert late_among(*LATE, head=0) == [3]
    for head in range(1, len(LATE) + 1):
        assert late_among(*LATE, head=head) == []


def copied(
    label: str, start: int, last: int, epochs: dict[int, int] | None = None
) -> tuple[Event, Event]:
    return started(label, start, last, epochs), finished(label)


async def found_in(*copies: tuple[Event, ...], offsets: PartitionOffsets | None = None) -> list[
    Finding
]:  # fmt: skip
    moment = await moment_of([event for events in copies for event in events])
    shard = await moment.state(tp())
    assert broken_rules(shard) == []
    return verify_partition(shard, tp(), offsets)


def codes(found: list[Finding]) -> list[str]:
    return [one.kind.code for one in found]


async def test_verify_when_leaders_changed_and_all_is_there_then_finds_nothing() -> None:
    """A new leader rolls elsewhere, and its first copies begin inside an epoch."""
    found = await found_in(
        copied("a", 0, 99, {0: 0}),
        copied("b", 100, 199, {0: 100, 2: 150}),
        copied("c", 200, 299, {2: 200, 3: 290}),
        copied("d", 300, 399, {3: 300}),
        offsets=PartitionOffsets(earliest=0, earliest_local=300, latest=450),
    )
    assert found == []


async def test_verify_when_a_range_is_missing_then_names_the_hole_and_its_epoch() -> None:
    """The finding names the hole and its epoch, and open or deleted segments do not fill it."""
    found = await found_in(
        copied("a", 0, 99), (started("open", 100, 149),), copied("b", 150, 199, {0: 150, 1: 180}),
        copied("c", 200, 299, {1: 200}), (delete_started("c"),), copied("d", 300, 399, {1: 300}),
    )  # fmt: skip
    assert codes(found) == ["LOOKUP-HOLE", "LOOKUP-HOLE"]
    holes = [(one.fields["epoch"], one.fields["first_offset"], one.fields["last_offset"])
             for one in found]  # fmt: skip
    assert holes == [(0, 100, 149), (1, 200, 299)]
    assert found[0].kind.severity is Severity.ERROR
    assert found[0].subject == "orders-7"


async def test_verify_when_a_segment_is_displaced_then_it_is_hidden_and_overlaps() -> None:
    """KAFKA-20932: 0-150 hides 0-100 and overlaps 101-200; 0-100 stays covered."""
    found = await found_in(copied("a", 0, 100), copied("b", 101, 200), copied("c", 0, 150))
    assert codes(found) == ["HIDDEN-SEGMENT", "OVERLAP", "OVERLAP"]
    assert found[0].fields["segment_id"] == str(segment_id("a").uuid)
    assert {one.kind.severity for one in found[1:]} == {Severity.NOTE}


async def test_verify_after_an_unclean_election_then_the_replaced_epoch_is_no_hole() -> None:
    """Epoch 1 was replaced from offset 100 on by epoch 2, whose leader had not seen it."""
    found = await found_in(
        copied("a", 0, 99, {0: 0}), copied("b", 100, 199, {1: 100}),
        copied("c", 90, 250, {0: 90, 2: 100}),
    )  # fmt: skip
    assert "LOOKUP-HOLE" not in codes(found)
    (superseded,) = [one for one in found if one.kind.code == "SUPERSEDED-EPOCH"]
    assert superseded.fields == {
        "topic": "orders", "topic_id": str(tp().topic_id), "partition": 7, "epoch": 1,
        "segments": 1, "size_bytes": 1_024,
    }  # fmt: skip


def ranges(found: list[Finding], code: str) -> list[tuple[object, object]]:
    return [
        (one.fields["first_offset"], one.fields["last_offset"])
        for one in found
        if one.kind.code == code
    ]


TWO = copied("a", 0, 99), copied("b", 100, 199)
HOLE = copied("a", 0, 99), copied("b", 200, 299)


@pytest.mark.parametrize(
    ("copies", "ends", "code", "expected"),
    [
        (TWO, (0, 150, 500), "", []),
        (TWO, (0, 260, 500), "NOWHERE", [(200, 259)]),
        (TWO, (0, 200, 500), "", []),
        (TWO, (120, 200, 500), "BELOW-LOG-START", None),
        (TWO, (0, 150, 180), "BEYOND-LOG-END", None),
        (TWO, (None, None, None), "", []),
        ((copied("b", 100, 199),), (0, 150, 500), "NOWHERE", [(0, 99)]),
        (((started("open", 0, 99),),), (0, 150, 500), "NOWHERE", [(0, 149)]),
        (HOLE, (0, None, None), "LOOKUP-HOLE", [(100, 199)]),
        (HOLE, (150, None, None), "LOOKUP-HOLE", [(150, 199)]),
        (HOLE, (200, None, None), "BELOW-LOG-START", None),
    ],
)
async def test_verify_against_the_log_then_names_what_nobody_has(
    copies: tuple[tuple[Event, ...], ...], ends: tuple[int | None, ...], code: str,
    expected: list[tuple[int, int]] | None,
) -> None:  # fmt: skip
    """Offsets in neither log nor tier are named from the log start on; unknown ends are skipped."""
    offsets = PartitionOffsets(earliest=ends[0], earliest_local=ends[1], latest=ends[2])
    found = await found_in(*copies, offsets=offsets)
    if copies is not HOLE:
        assert codes(found) == ([code] if code else [])
    else:
        assert code in codes(found)
        assert ("LOOKUP-HOLE" in codes(found)) is (code == "LOOKUP-HOLE")
    if expected is not None:
        assert ranges(found, code) == expected


async def test_verify_when_epochs_do_not_fit_then_the_segment_is_named() -> None:
    """The finding names the segment that starts before its first epoch does."""
    found = await found_in(copied("a", 10, 99, {0: 5}))
    assert codes(found) == ["EPOCH-ORDER"]
    assert "begins at 10, its first epoch at 5" in found[0].detail


@pytest.mark.parametrize(
    ("earliest", "code"), [(None, "BEGINS-LATE"), (150, "BEGINS-LATE"), (149, "EPOCH-ORDER")]
)
async def test_verify_when_an_epoch_begins_inside_a_segment_then_the_log_start_tells_why(
    earliest: int | None, code: str
) -> None:
    """A late epoch start is a note, and a log start before that epoch makes it an order fault."""
    offsets = None if earliest is None else PartitionOffsets(earliest=earliest)
    found = await found_in(copied("a", 0, 99), copied("b", 100, 199, {0: 150}), offsets=offsets)
    assert {code} <= set(codes(found)) <= {code, "BELOW-LOG-START"}


async def test_verify_when_a_new_leader_copies_what_was_copied_then_is_a_note() -> None:
    """The overlap of a new leader's copy with the old leader's last one is a note."""
    found = await found_in(
        copied("a", 0, 99), copied("b", 100, 199), copied("c", 50, 240, {0: 50, 1: 200}),
        copied("d", 241, 300, {1: 241}),
    )  # fmt: skip
    assert set(codes(found)) == {"OVERLAP"}


@pytest.mark.parametrize("late", [(0, 100), (50, 100)], ids=["in-its-slot", "inside"])
async def test_verify_when_a_shorter_copy_is_asked_first_then_names_what_stock_brokers_miss(
    late: tuple[int, int],
) -> None:
    """The finding names offsets that KAFKA-20932 hides."""
    found = await found_in(copied("a", 0, 200), copied("b", *late))
    assert ranges(found, "STOCK-LOOKUP-EMPTY") == [(101, 200)]
    assert ("HIDDEN-SEGMENT" in codes(found)) is (late[0] == 0)


@pytest.mark.parametrize(
    ("earliest", "expected"), [(None, []), (0, [(0, 100)]), (40, [(40, 100)]), (101, [])]
)
async def test_verify_when_what_took_the_first_slot_is_deleted_then_the_log_start_tells(
    earliest: int | None, expected: list[tuple[int, int]]
) -> None:
    """Empty look-ups count from the log start on, and not without one."""
    found = await found_in(
        copied("a", 0, 100), copied("b", 0, 200), (delete_started("b"),), copied("c", 201, 300),
        copied("d", 101, 200), offsets=PartitionOffsets(earliest=earliest),
    )  # fmt: skip
    assert ranges(found, "STOCK-LOOKUP-EMPTY") == expected


def test_f44_partition_in_another_place_than_brokers_look_then_is_named() -> None:
    """The topic was created with another number of partitions than they were written with."""
    one = PartitionSummary(tp(), 3, 0, 1, 0, 10)
    (found,) = verify_places([one], {tp(): 21})
    assert (found.kind.code, found.fields["expected"]) == ("WRONG-PLACE", 21)
    assert verify_places([one], {tp(): 3}) == []


def test_f66_topic_that_was_created_anew_is_named_with_both_ids() -> None:
    """The finding needs segments of both topic ids."""
    other = tp(topic_id=Uuid.of(0, 1))
    both = [PartitionSummary(tp(), 3, 0, 1, 0, 10), PartitionSummary(other, 4, 0, 1, 0, 10)]
    (found,) = verify_places(both, {tp(): 3, other: 4})
    assert found.kind.code == "TOPIC-RECREATED"
    assert len(found.fields["topic_ids"]) == 2  # type: ignore[arg-type]
    for gone in (PartitionSummary(other, 4, 0, 0, 0, 0), PartitionSummary(other, 4, 0, 0, 2, 9)):
        assert verify_places([both[0], gone], {tp(): 3, other: 4}) == [], "it goes, or is gone"


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=8))
def test_gaps_of_one_epoch_are_what_no_segment_holds(parts: list[tuple[int, int]]) -> None:
    """Counted offset by offset."""
    segments = [
        started(str(n), start, start + size - 1, {0: start},
                state=SegmentState.COPY_SEGMENT_FINISHED)
        for n, (start, size) in enumerate(parts)
    ]  # fmt: skip
    held = {offset for start, size in parts for offset in range(start, start + size)}
    expected = set(range(min(held), max(held) + 1)) - held
    gaps = gaps_in(lineage_of(segments), finished_of(segments))
    found = [offset for gap in gaps for offset in range(gap.first, gap.last + 1)]
    assert (set(found), len(found)) == (expected, len(expected))
