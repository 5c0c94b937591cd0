"""The file of events, both ways, and the steps of its application."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

import pytest

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
from spark_tiering.maintenance.rebuild.document import (
    EventsFileHeader,
    RestoredSegment,
    entry_fields,
    entry_of,
    head_fields,
    parse_entry,
    parse_head,
)
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
def test_steps_when_the_metadata_contradicts_then_the_segment_is_left_out(
    present: SegmentMetadata, why: str
) -> None:
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
