"""Failure scenarios as commands show them to an operator."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.cluster_facts import PartitionOffsets, PartitionPlace, TopicFacts
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentState
from rlmm_demo.world.service import DemoService
from tests.support.builders import (
    TOPIC_ID,
    delete_finished,
    delete_started,
    segment_id,
    update,
)
from tests.support.cli.incidents import NOW_MS, ORDERS, Incident
from tests.support.cli.shared_history import write_records
from tests.support.cli.state_commands import stop_the_clock, told
from tests.support.kafka.fake_cluster import FakeCluster, settings

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 1_048_576
"""Of every segment."""


@pytest.fixture
def incident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Incident:
    stop_the_clock(monkeypatch, NOW_MS)
    return Incident(folder=tmp_path / "log")


def test_f78_history_when_an_event_was_refused_then_shows_it_with_place_and_reason(
    incident: Incident,
) -> None:
    """`history` shows the refused event, `status` counts it, and later events are applied."""
    one = incident.copy("a", 0, 99)
    place = incident.records[0].place
    incident.put(update(one, SegmentState.DELETE_SEGMENT_FINISHED))
    incident.put(delete_started(one, event_timestamp_ms=incident.now_ms))
    answer = incident.ask("history", str(one.uuid))
    assert answer.document is not None
    told = [(item["offset"], item["verdict"], item["reason"]) for item in answer.document["items"]]
    refused = (2, "rejected", "illegal-transition")
    assert told == [(0, "applied", None), (1, "applied", None), refused, (3, "applied", None)]
    assert {item["metadata_partition"] for item in answer.document["items"]} == {place}
    status = incident.ask("status").document
    assert status is not None
    assert status["totals"]["rejected"] == {"illegal-transition": 1}


def test_f79_commands_when_the_whole_log_comes_twice_then_the_state_is_the_same(
    incident: Incident, tmp_path: Path
) -> None:
    """Repeated events change no state and cause no finding, and `history` shows them."""
    incident.copy("a", 0, 99)
    gone = incident.copy("b", 100, 199)
    incident.put(delete_started(gone, event_timestamp_ms=incident.now_ms))
    incident.put(delete_finished(gone, event_timestamp_ms=incident.now_ms))
    twice = Incident(folder=tmp_path / "twice", records=[*incident.records, *incident.records])
    once = incident.ask("segments", "list").document
    again = twice.ask("segments", "list").document
    assert once is not None
    assert again is not None
    assert once["items"] == again["items"]
    assert once["totals"] == again["totals"]
    for command in ("verify", "stuck"):
        assert incident.ask(command).exit_code == twice.ask(command).exit_code == 0
    told = twice.ask("history", str(segment_id("a").uuid)).document
    assert told is not None
    assert {item["verdict"] for item in told["items"][2:]} <= {"duplicate", "rejected"}


def test_f102_stuck_when_a_copy_was_made_again_then_the_old_one_is_waste(
    incident: Incident,
) -> None:
    """`stuck` shows the abandoned copy and the id of its successor."""
    old = incident.begin("old", 0, 99)
    new = incident.copy("new", 0, 99, broker_id=2)
    found = incident.findings("stuck")
    assert set(found) == {"COPY-ABANDONED"}
    assert found["COPY-ABANDONED"]["fields"]["segment_id"] == str(old.uuid)
    assert str(new.uuid) in found["COPY-ABANDONED"]["detail"]
    usage = incident.ask("usage").document
    assert usage is not None
    assert usage["totals"]["waste_bytes"] == SIZE


def test_f114_stuck_when_a_deletion_was_never_finished_then_names_the_segment(
    incident: Incident,
) -> None:
    """`stuck` names a segment whose deletion never ended, so its objects are not lost."""
    one = incident.copy("a", 0, 99)
    incident.put(delete_started(one, broker_id=4, event_timestamp_ms=incident.now_ms))
    found = incident.findings("stuck")
    assert set(found) == {"DELETE-STALLED"}
    fields = found["DELETE-STALLED"]["fields"]
    assert (fields["segment_id"], fields["broker_id"]) == (str(one.uuid), 4)
    listed = incident.ask("segments", "list", "--state", "DELETE_SEGMENT_STARTED").document
    assert listed is not None
    assert [item["segment_id"] for item in listed["items"]] == [str(one.uuid)]


@pytest.mark.parametrize(("kept_segments", "due"), [(3, 0), (2, 1)])
def test_f117_usage_when_copies_are_open_then_size_retention_does_not_count_them(
    incident: Incident, monkeypatch: pytest.MonkeyPatch, kept_segments: int, due: int
) -> None:
    """KAFKA-17062: three good segments exactly at the limit stay, however many copies are open."""
    for number in range(3):
        incident.copy(f"s{number}", number * 100, number * 100 + 99)
    for label in ("open", "opener"):
        incident.begin(label, 300, 399)
    topic = TopicFacts(
        ORDERS.topic, TOPIC_ID, {ORDERS.partition: PartitionPlace(1, 0, (1,), (1,))},
        settings(retention_ms="-1", retention_bytes=str(kept_segments * SIZE)),
    )  # fmt: skip
    ends = {ORDERS: PartitionOffsets(earliest=0, earliest_local=300, latest=300)}
    incident.beside(FakeCluster({ORDERS.topic: topic}, ends), monkeypatch)
    usage = incident.ask("usage").document
    assert usage is not None
    assert (usage["totals"]["due_segments"], usage["totals"]["open_segments"]) == (due, 2)


def test_f116_stuck_when_a_topic_is_gone_from_the_cluster_then_names_its_id_and_bytes(
    incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`stuck` names the topic id and its bytes even if no broker wrote a deletion event."""
    incident.copy("a", 0, 99)
    other = TopicFacts(ORDERS.topic, Uuid.of(0, 0xB0), {})
    incident.beside(FakeCluster({ORDERS.topic: other}), monkeypatch)
    found = incident.findings("stuck")
    assert set(found) == {"TOPIC-GONE"}
    fields = found["TOPIC-GONE"]["fields"]
    assert (fields["topic_id"], fields["size_bytes"]) == (str(TOPIC_ID), SIZE)


def test_f65_service_when_it_comes_from_its_snapshot_then_still_tells_what_it_never_knew(
    incident: Incident, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart from snapshots keeps the counts of undecodable records and baseless updates."""
    monkeypatch.setenv("RLMM_PUMP_UNDECODABLE_SHARE_MAX", "1")
    for label in ("a", "b"):
        incident.begin(label, 0, 99)
    for label in ("a", "b"):
        incident.end(SegmentId(ORDERS, segment_id(label).uuid))
    place = incident.records[0].place
    incident.put_bytes(b"junk", place)
    folder, socket = tmp_path / "data", tmp_path / "s"
    asyncio.run(write_records(folder / "log", incident.records, log_starts={place: 2}))
    found = []
    for _ in ("from the log", "from the snapshot"):
        with DemoService(folder, socket) as service:
            service.wait_ready()
            checked = told("check", "--whole-history", "--sidecar", str(socket)).document
            verified = told("verify", "--sidecar", str(socket)).document
            service.snapshot(folder)
            service.stop()
        assert checked is not None
        assert verified is not None
        found.append(
            (
                {item["code"] for item in checked["items"]},
                [item["fields"]["updates_without_base"] for item in verified["items"]],
            )
        )
    assert found[0] == found[1]
    assert found[0] == ({"RECORDS-UNDECODABLE", "HISTORY-INCOMPLETE"}, [2])
