"""The file of events, line by line, both ways."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

import pytest

from rlmm.log.protocol import LogIdentity
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.maintenance.json_lines import LineFault, parse_line, spaced_line
from spark_tiering.maintenance.rebuild.document import (
    EventsFileHeader,
    RestoredSegment,
    entry_fields,
    entry_of,
    head_fields,
    parse_entry,
    parse_head,
)
from tests.support.builders import delete_started, finished, segment_id
from tests.support.stores.segment_objects import whole_segment

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
