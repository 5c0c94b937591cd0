"""The file of events, the steps of its application, and objects against metadata."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

import pytest

from rlmm.findings.tier_findings import INCOMPLETE_SET
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.maintenance.json_lines import LineFault, parse_line, spaced_line
from spark_tiering.maintenance.rebuild.apply_steps import (
    GONE,
    ApplyStep,
    ApplySteps,
    groups,
    steps_for,
    taken_by_a_service,
)
from spark_tiering.maintenance.rebuild.decision import (
    PartitionDifference,
    ReadableCover,
    RebuildFate,
    SegmentDecision,
    decide,
    differences,
    overlaps,
)
from spark_tiering.maintenance.rebuild.document import (
    EventsFileHeader,
    RestoredSegment,
    entry_fields,
    entry_of,
    head_fields,
    parse_entry,
    parse_head,
)
from spark_tiering.maintenance.rebuild.manifests import ReadSet
from tests.support.builders import delete_started, finished, segment_id, tp
from tests.support.stores.segment_objects import whole_segment

ONE, TWO = whole_segment(1, 0, 99), whole_segment(2, 100, 199)
ENTRIES = [entry_of(ONE), entry_of(TWO)]


def steps(*present: SegmentMetadata, entries: list[RestoredSegment] = ENTRIES) -> ApplySteps:
    return steps_for(entries, {one.id: one for one in present})


def test_steps_when_it_is_there_already_then_nothing_is_repeated() -> None:
    """An application publishes all events in order, and continues behind existing ones."""
    assert steps() == ApplySteps([ApplyStep(entry, needs_start=True) for entry in ENTRIES])
    begun = ApplyStep(ENTRIES[1], needs_start=False)
    assert steps(ONE, entry_of(TWO).start) == ApplySteps([begun], equal=1)


@pytest.mark.parametrize(
    ("present", "why"),
    [
        pytest.param(
            replace(ONE, size_bytes=9), "other fields: size_bytes 40, the metadata has 9",
            id="fields",
        ),
        pytest.param(
            replace(entry_of(ONE).start, broker_id=9), "begun by broker 9", id="other broker"
        ),
        pytest.param(
            replace(ONE, state=SegmentState.DELETE_SEGMENT_STARTED),
            "DELETE_SEGMENT_STARTED by now", id="deletion",
        ),
        pytest.param(
            whole_segment(3, 0, 120), "holds its offsets by now, 0 to 120", id="newer copy"
        ),
    ],
)  # fmt: skip
def test_steps_when_the_metadata_contradicts_leave_out(present: SegmentMetadata, why: str) -> None:
    """A segment that the metadata contradicts is left out, and the others are published."""
    found = steps(present)
    assert [one.segment_id for one in found.refused] == [ONE.id]
    assert why in found.refused[0].why
    assert [one.entry.start.id for one in found.steps] == [TWO.id]


def test_steps_when_something_is_deleted_then_it_does_not_come_back() -> None:
    """Nothing deleted by the topic's history comes back, nor anything of a deleted partition."""
    told = steps_for(ENTRIES, {}, {ONE.id})
    assert [(one.segment_id, one.why) for one in told.refused] == [(ONE.id, GONE)]
    assert len(told.steps) == 1
    told = steps_for(ENTRIES, {}, deletion="DELETE_PARTITION_FINISHED")
    assert len(told.refused) == 2
    assert "DELETE_PARTITION_FINISHED" in told.refused[0].why


def test_steps_when_copies_of_the_file_overlap_then_none_is_in_the_others_way() -> None:
    """Overlapping copies of one file do not keep each other from being published."""
    newer = whole_segment(3, 0, 199, event_timestamp_ms=500)
    told = steps(newer, entries=[*ENTRIES, entry_of(newer)])
    assert told.refused == []
    assert len(told.steps) == 2


def test_steps_for_a_service_when_another_broker_copied_the_same_then_it_is_left_out() -> None:
    """A service takes overlapping copies of one broker, and no covered copy of another."""
    again = whole_segment(3, 0, 99, broker_id=2, event_timestamp_ms=9)
    told = taken_by_a_service(steps(entries=[*ENTRIES, entry_of(again)]))
    assert [one.segment_id for one in told.refused] == [again.id]
    assert len(told.steps) == 2
    same_broker = replace(again, broker_id=1)
    assert not taken_by_a_service(steps(entries=[*ENTRIES, entry_of(same_broker)])).refused


def test_groups_when_segments_overlap_then_the_later_one_waits_for_the_verdict() -> None:
    """A segment that overlaps an earlier one waits for its verdict, and no group is too large."""
    elsewhere = whole_segment(9, 0, 99, partition=tp("logs", 0))
    over = whole_segment(3, 150, 250)
    entries = [*ENTRIES, entry_of(elsewhere), entry_of(over)]
    found = list(groups([ApplyStep(one, needs_start=True) for one in entries]))
    assert [[one.entry.start.id for one in group] for group in found] == [
        [ONE.id, TWO.id, elsewhere.id],
        [over.id],
    ]
    apart = [ApplyStep(entry_of(whole_segment(n, n * 10, n * 10 + 9)), True) for n in range(7)]
    assert [len(group) for group in groups(apart, 3)] == [3, 3, 1]
    assert list(groups([])) == []


SEGMENT = whole_segment(
    1, 10, 99, epochs={0: 10, 2: 50}, custom_metadata=b"\1\0\2\xc8\1", max_timestamp_ms=77
)
ENTRY = entry_of(SEGMENT)
HEAD = EventsFileHeader(
    "s3://bucket", "tier/", "remote-size", LogIdentity("cluster", Uuid(bytes(16)), 50), 5,
    {"missing": 1},
)  # fmt: skip


def lines(entry: RestoredSegment = ENTRY) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = entry_fields(entry, "tier/")
    return parse_line(spaced_line(first)), parse_line(spaced_line(second))


def test_entry_when_written_and_read_then_is_the_same() -> None:
    """An entry reads back with both events of a copy, and its lines show what they say."""
    first, second = lines()
    assert parse_entry(first, second, "tier/") == ENTRY
    assert ENTRY.finished == SEGMENT
    assert ENTRY.start.custom_metadata is None
    # A broker's consumer stops on any other first state.
    assert ENTRY.start.state is SegmentState.COPY_SEGMENT_STARTED
    assert base64.b64decode(first["value"]) == encode(ENTRY.start)
    shown = {
        "event": "COPY_SEGMENT_STARTED", "topic": "orders", "partition": 7, "start_offset": 10,
        "leader_epochs": {"0": 10, "2": 50}, "time": "1970-01-01T00:00:00.010Z",
    }  # fmt: skip
    assert first.items() >= shown.items()
    assert re.fullmatch(r"tier/orders-.*\.rsm-manifest", first["object"])
    assert (second["event"], second["custom_metadata"]) == ("COPY_SEGMENT_FINISHED", "AQACyAE=")


@pytest.mark.parametrize("head", [HEAD, replace(HEAD, identity=None)], ids=["log", "no log"])
def test_head_when_written_and_read_then_is_the_same(head: EventsFileHeader) -> None:
    """The head reads back, and names no log for a rebuild without one."""
    assert parse_head(parse_line(spaced_line(head_fields(head)))) == head


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"format": "rlmm-metadata-backup"}, "no file of"),
        ({"version": 2}, "version '2', this build reads 1"),
        ({"source": {}}, "source"),
        ({"counts": 3}, "counts"),
        ({"identity": {"partition_count": 0}}, "identity.partition_count"),
        ({"identity": {"partition_count": 5, "topic_id": "x"}}, "identity"),
        ({"identity": []}, "identity"),
    ],
)
def test_head_when_it_is_anothers_then_says_so(changed: dict[str, Any], said: str) -> None:
    """A head of another format is refused before the rest is read."""
    with pytest.raises(LineFault, match=said):
        parse_head(head_fields(HEAD) | changed)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", ["start_offset", "topic", "segment_id", "time_ms", "broker_id"])
def test_entry_when_words_and_record_differ_then_is_refused(number: int, name: str) -> None:
    """An entry whose words differ from its record, or its key from the prefix, is refused."""
    both = lines()
    with pytest.raises(LineFault, match="object"):
        parse_entry(*both, "other/")
    both[number][name] = 5
    with pytest.raises(LineFault, match=name):
        parse_entry(*both, "tier/")


def test_entry_when_two_lines_are_no_copy_then_is_refused() -> None:
    """Two lines that are not start and finish of one copy are refused."""
    first, second = lines()
    for wrong in (
        RestoredSegment(ENTRY.start, delete_started(segment_id(1), custom_metadata=b"x")),
        RestoredSegment(ENTRY.start, finished(segment_id(2))),
    ):
        other = dict(second) | {"value": base64.b64encode(encode(wrong.finish)).decode()}
        with pytest.raises(LineFault, match="start and the finish"):
            parse_entry(first, other, "tier/")
    with pytest.raises(LineFault, match="start and the finish"):
        parse_entry(second, first, "tier/")
    for value in ("no base64!", 5, None):
        with pytest.raises(LineFault, match="value"):
            parse_entry(first | {"value": value}, second, "tier/")


WHOLE = whole_segment(1)


def read(segment: SegmentMetadata, modified_ms: int = 0) -> ReadSet:
    return ReadSet(segment.id, segment.start_offset, modified_ms, segment)


CS, CF, DS, DF = SegmentState
FATE = RebuildFate
BROKEN = ReadSet(WHOLE.id, 0, 0, None, INCOMPLETE_SET.code, "log without a manifest")
INNER, LONGER = whole_segment(2, 10, 60), whole_segment(3, 50, 150)
MARKED = "DELETE_PARTITION_MARKED"
CASES: dict[str, tuple[list[ReadSet], list[SegmentMetadata], dict[str, Any], list[RebuildFate]]] = {
    "nothing known": ([read(WHOLE)], [], {}, [FATE.MISSING]),
    "the same": ([read(WHOLE)], [WHOLE], {}, [FATE.EQUAL]),
    "finisher": (
        [read(WHOLE)],
        [replace(WHOLE, event_timestamp_ms=9, broker_id=7)],
        {},
        [FATE.EQUAL],
    ),
    "no flag": ([read(WHOLE)], [replace(WHOLE, txn_index_empty=False)], {}, [FATE.EQUAL]),
    "size": ([read(WHOLE)], [replace(WHOLE, size_bytes=41)], {}, [FATE.DIFFERENT]),
    "custom": ([read(WHOLE)], [replace(WHOLE, custom_metadata=b"\0")], {}, [FATE.DIFFERENT]),
    "open copy": ([read(WHOLE)], [replace(WHOLE, state=CS)], {}, [FATE.OPEN]),
    "deletion": ([read(WHOLE)], [replace(WHOLE, state=DS)], {}, [FATE.DELETED]),
    # Readers would find expired records otherwise.
    "begun in the past": ([read(WHOLE)], [], {"past": {WHOLE.id: DS}}, [FATE.DELETED]),
    "ended in the past": ([read(WHOLE)], [], {"past": {WHOLE.id: DF}}, [FATE.DELETED]),
    "only copied in the past": ([read(WHOLE)], [], {"past": {WHOLE.id: CF}}, [FATE.MISSING]),
    "deleted partition": ([read(WHOLE)], [], {"deletion": MARKED}, [FATE.DELETED]),
    "broken": ([BROKEN], [], {}, [FATE.BROKEN]),
    "broken and deleted": ([BROKEN], [], {"past": {WHOLE.id: DS}}, [FATE.DELETED]),
    "no objects": ([], [WHOLE], {}, [FATE.LOST]),
    "no objects of an open copy": ([], [replace(WHOLE, state=CS)], {}, []),
    "no objects of a deletion": ([], [replace(WHOLE, state=DS)], {}, []),
    # Its late finish would displace or cut the present one.
    "within a present one": ([read(INNER)], [WHOLE], {}, [FATE.LOST, FATE.SUPERSEDED]),
    "within one being deleted": ([read(INNER)], [replace(WHOLE, state=DS)], {}, [FATE.MISSING]),
    "beyond a present one": ([read(LONGER)], [WHOLE], {}, [FATE.MISSING, FATE.LOST]),
    "unknown topic": ([read(WHOLE)], [], {"is_topic_known": False}, [FATE.UNKNOWN]),
    "known of an unknown topic": ([read(WHOLE)], [WHOLE], {"is_topic_known": False}, [FATE.EQUAL]),
}


@pytest.mark.parametrize(("found", "present", "said", "fates"), CASES.values(), ids=CASES)
def test_decide_when_a_set_is_listed_then_metadata_and_history_say_what_it_is(
    found: list[ReadSet],
    present: list[SegmentMetadata],
    said: dict[str, Any],
    fates: list[RebuildFate],
) -> None:
    """Metadata and any history decide what a set is; broker, event time and flag do not count."""
    known = {one.id: one for one in present}
    decided = decide(tp(), found, known, **({"past": {}} | said)).decided
    assert [one.fate for one in decided] == fates


def test_decide_when_a_set_is_not_brought_back_then_says_why() -> None:
    """A decision names the deletion that it goes by, or the code of an incomplete set."""
    for state in (DS, DF):
        (found,) = decide(tp(), [read(WHOLE)], {}, {WHOLE.id: state}).decided
        assert found.detail == state.name
    (found,) = decide(tp(), [read(WHOLE)], {}, {}, MARKED).decided
    assert f"all of the partition: {MARKED}" in found.detail
    (found,) = decide(tp(), [BROKEN], {}, {}).decided
    assert found.code == INCOMPLETE_SET.code


def test_decide_when_several_are_missing_then_their_events_have_the_order_of_their_times() -> None:
    """Missing segments are ordered by event time: look-ups find the last one begun."""
    older, newer = (
        whole_segment("older", event_timestamp_ms=5),
        whole_segment("newer", event_timestamp_ms=6),
    )
    found = decide(tp(), [read(newer), read(WHOLE), read(older)], {}, {})
    assert [one.event_timestamp_ms for one in found.missing] == [0, 5, 6]


def test_differences_when_fields_differ_then_each_is_named_with_both_values() -> None:
    """Each differing field is named with both values."""
    known = replace(
        WHOLE, last_offset=98, epochs=((1, 0),), max_timestamp_ms=7, txn_index_empty=True
    )
    said = differences(replace(WHOLE, txn_index_empty=False), known)
    assert [one.split()[0] for one in said] == ["last_offset", "epochs", "max_timestamp_ms", "a"]
    assert "99, the metadata has 98" in said[0]


def test_covers_when_several_reach_far_then_any_that_has_all_is_enough() -> None:
    """Any single segment that has the whole range covers it, and two halves do not."""
    first, second = whole_segment(1, 0, 49), whole_segment(2, 50, 120)
    both = ReadableCover([second, first])
    assert both.holder(whole_segment(3, 10, 90)) is None
    assert both.holder(whole_segment(3, 60, 120)) == second
    assert ReadableCover([]).holder(first) is None
    wide = whole_segment(4, 5, 200)
    assert ReadableCover([first, wide, second]).holder(whole_segment(3, 60, 120)) == wide


def test_overlaps_when_segments_hold_the_same_offsets_then_neighbours_are_told() -> None:
    """Overlapping neighbours are reported, with a doubt by the times of their manifests."""
    events = [
        SegmentDecision(RebuildFate.MISSING, one.id, one.start_offset, one, modified_ms=modified_ms)
        for one, modified_ms in (
            (whole_segment("a", 0, 99), 50),
            (whole_segment("b", 0, 99), 40),
            (whole_segment("c", 100, 199), 0),
            (whole_segment("d", 120, 150), 0),
            (whole_segment("e", 160, 170), 0),
        )
    ]
    found = overlaps(PartitionDifference(tp(), events))
    named = [(one.first.segment, one.second.segment) for one in found]
    assert named == [
        (events[0].segment, events[1].segment),
        (events[2].segment, events[3].segment),
        (events[2].segment, events[4].segment),
    ]
    assert [one.is_order_doubtful for one in found] == [True, False, False]
