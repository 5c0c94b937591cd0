"""Ten incidents of events, each found by one command: its JSON, and the text of the runbook."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from rlmm.inspection.cluster_facts import PartitionOffsets, PartitionPlace, TopicFacts
from rlmm.log.files.log_folder import TOPIC
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm_demo.world.service import DemoService
from tests.support.builders import (
    TOPIC_ID,
    delete_finished,
    delete_started,
    partition_delete,
    segment_id,
    tp,
    update,
)
from tests.support.cli.incidents import NOW_MS, ORDERS, PAGE, Incident
from tests.support.cli.shared_history import START_MS, write_records
from tests.support.cli.state_commands import stop_the_clock, told
from tests.support.kafka.fake_cluster import FakeCluster, settings

MARKED, BEGUN, _ = PartitionDeleteState
HERE = Path(__file__)
SIZE = 1_048_576
"""Of every segment."""


@pytest.fixture
def incident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Incident:
    stop_the_clock(monkeypatch, NOW_MS)
    return Incident(folder=tmp_path / "log")


def test_f102_incident_when_a_copy_never_ends_then_stuck_names_it(incident: Incident) -> None:
    """`stuck` names the copy that never ended, and its bytes do not count as copied."""
    incident.copy("a", 0, 99)
    stuck = incident.begin("b", 100, 199, broker_id=2)
    found = incident.findings("stuck")["COPY-STALLED"]
    assert found["fields"]["segment_id"] == str(stuck.uuid)
    assert found["fields"]["broker_id"] == 2
    assert "broker 2 wrote it" in found["detail"]
    offsets = incident.document("offsets")
    assert [one["tier_end"] for one in offsets["items"]] == [99]
    incident.shows_what_the_page_says("A copy never ends")


def test_incident_when_a_shorter_copy_hides_a_segment_then_verify_names_it(
    incident: Incident,
) -> None:
    """KAFKA-20932: `verify` names the hidden segment, and `segments find` finds offset 150."""
    hidden = incident.copy("a", 0, 199)
    incident.copy("b", 0, 99, broker_id=2)
    found = incident.findings("verify")
    assert set(found) == {"HIDDEN-SEGMENT", "STOCK-LOOKUP-EMPTY", "OVERLAP"}
    assert found["HIDDEN-SEGMENT"]["fields"]["segment_id"] == str(hidden.uuid)
    lacking = found["STOCK-LOOKUP-EMPTY"]["fields"]
    assert (lacking["first_offset"], lacking["last_offset"]) == (100, 199)
    assert incident.ask("segments", "find", "orders-3", "--offset", "150").exit_code == 0
    incident.shows_what_the_page_says("A finished segment is hidden")


def test_incident_when_offsets_are_in_no_segment_then_verify_names_them(incident: Incident) -> None:
    """`verify` names the offsets at which a consumer would get no record."""
    incident.copy("a", 0, 99)
    lost = incident.copy("b", 100, 199)
    incident.copy("c", 200, 299)
    incident.put(delete_started(lost, event_timestamp_ms=incident.now_ms))
    incident.put(delete_finished(lost, event_timestamp_ms=incident.now_ms))
    found = incident.findings("verify")
    assert set(found) == {"LOOKUP-HOLE"}
    fields = found["LOOKUP-HOLE"]["fields"]
    assert (fields["first_offset"], fields["last_offset"], fields["epoch"]) == (100, 199, 0)
    assert incident.ask("segments", "find", "orders-3", "--offset", "150").exit_code == 1
    incident.shows_what_the_page_says("Offsets are in no segment")


def test_f57_incident_when_a_lost_leader_finishes_late_then_verify_names_both(
    incident: Incident,
) -> None:
    """`verify` names both copies, and the broker that began first and ended last."""
    late = incident.begin("old", 0, 99, broker_id=1)
    newer = incident.copy("new", 0, 99, broker_id=2)
    incident.end(late, broker_id=1)
    found = incident.findings("verify")
    assert set(found) == {"LATE-FINISH", "OVERLAP"}
    fields = found["LATE-FINISH"]["fields"]
    assert (fields["segment_id"], fields["broker_id"]) == (str(late.uuid), 1)
    assert (fields["other_segment_id"], fields["other_broker_id"]) == (str(newer.uuid), 2)
    assert (fields["started_at"], fields["other_finished_at"], fields["finished_at"]) == (0, 2, 3)
    assert set(incident.findings("verify", "--no-history")) == {"OVERLAP"}
    assert incident.findings("verify", "--at", str(START_MS + 2_000)) == {}
    incident.shows_what_the_page_says("A lost leader finishes late")


def test_f57_verify_when_asked_about_the_past_then_goes_by_the_log_up_to_there(
    incident: Incident,
) -> None:
    """The late finish is a finding now, and before it there was only an overlap."""
    old = incident.copy("old", 0, 99, broker_id=1)
    incident.copy("new", 0, 99, broker_id=2)
    before = str(incident.now_ms - 1)
    incident.end(old, broker_id=1)
    assert "LATE-FINISH" in incident.findings("verify")
    then = incident.findings("verify", "--at", before)
    assert set(then) == {"OVERLAP"}


def test_f65_incident_when_the_head_is_trimmed_then_verify_says_what_cannot_be_known(
    incident: Incident,
) -> None:
    """`verify` names the trimmed metadata partition and counts its updates without base."""
    first, second = incident.begin("a", 0, 99), incident.begin("b", 100, 199)
    incident.end(first)
    incident.end(second)
    incident.copy("c", 200, 299)
    place = incident.records[0].place
    incident.log_starts = {place: 2}
    found = incident.findings("verify")
    assert set(found) == {"HISTORY-TRIMMED"}
    fields = {"metadata_partition": place, "log_start": 2, "updates_without_base": 2}
    assert found["HISTORY-TRIMMED"]["fields"] == fields
    assert found["HISTORY-TRIMMED"]["subject"] == f"{TOPIC}-{place}"
    assert incident.findings("check", "--whole-history")["HISTORY-INCOMPLETE"]
    incident.shows_what_the_page_says("The head of the metadata topic is gone")


def test_incident_when_a_topic_is_created_anew_then_verify_names_its_ids(
    incident: Incident,
) -> None:
    """`verify` has one finding with both topic ids, and the old segments cause no other one."""
    old = tp("orders", 3, Uuid.of(0, 0xB0))
    incident.copy("a", 0, 99, of=old)
    incident.copy("b", 0, 99)
    found = incident.findings("verify")
    assert set(found) == {"TOPIC-RECREATED"}
    ids = {str(old.topic_id), str(ORDERS.topic_id)}
    assert set(found["TOPIC-RECREATED"]["fields"]["topic_ids"]) == ids
    incident.shows_what_the_page_says("A topic was created anew")


def test_incident_when_a_record_is_poison_then_events_show_its_bytes_and_why(
    incident: Incident,
) -> None:
    """`events` shows the bytes in hex with their place and reason."""
    incident.copy("a", 0, 99)
    place = incident.records[0].place
    incident.put_bytes(b"\x02\x00junk", place)
    document = incident.document("events", "--verdict", "undecodable")
    (item,) = document["items"]
    assert (item["metadata_partition"], item["offset"]) == (place, 2)
    assert (item["verdict"], item["reason"]) == ("undecodable", "unknown-frame-version")
    assert b"\x02\x00junk".hex() in str(item)
    incident.shows_what_the_page_says("A record that nobody can read")


def test_f116_incident_when_a_topic_deletion_stops_then_stuck_says_what_is_left(
    incident: Incident,
) -> None:
    """The finding has the topic id, its bytes and its last event until every segment is gone."""
    ids = [incident.copy(label, start, start + 99) for start, label in ((0, "a"), (100, "b"))]
    for state in (MARKED, BEGUN):
        incident.put(partition_delete(state, ORDERS, event_timestamp_ms=incident.now_ms))
    incident.put(delete_started(ids[0], event_timestamp_ms=incident.now_ms))
    incident.put(delete_finished(ids[0], event_timestamp_ms=incident.now_ms))
    assert set(incident.findings("stuck")) == {"TOPIC-DELETE-UNFINISHED"}
    incident.shows_what_the_page_says("A topic deletion stopped half-way")


def test_f44_incident_when_the_partition_count_was_changed_then_verify_says_where_brokers_look(
    incident: Incident,
) -> None:
    """`verify` names events in another metadata partition than the count gives them."""
    for number in range(4):
        one = incident.begin(f"s{number}", 0, 99, of=tp("orders", number))
        incident.end(one)
    before = list(incident.records)
    incident.records.clear()
    incident.partition_count = 5
    incident.records += before
    answer = incident.ask("verify")
    assert answer.exit_code == 1
    assert answer.document is not None
    items = answer.document["items"]
    assert {item["code"] for item in items} == {"WRONG-PLACE"}
    assert all(item["fields"]["metadata_partition"] != item["fields"]["expected"] for item in items)
    incident.shows_what_the_page_says("The number of metadata partitions was changed")


def test_f70_incident_when_one_replica_acknowledges_then_doctor_says_what_to_set(
    incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor` names the reason and the fix and changes nothing."""
    metadata = TopicFacts(
        TOPIC, Uuid.of(1, 1), {n: PartitionPlace(1, 0, (1, 2, 3), (1, 2, 3)) for n in range(3)},
        settings(min_insync_replicas="1", cleanup_policy="delete", retention_ms="-1",
                 retention_bytes="-1", unclean_leader_election_enable="false"),
        is_internal=True,
    )  # fmt: skip
    incident.copy("a", 0, 99)
    incident.beside(FakeCluster({TOPIC: metadata}), monkeypatch)
    found = incident.findings("doctor")
    assert found["MIN-ISR-1"]["subject"] == TOPIC
    assert "min.insync.replicas=2" in found["MIN-ISR-1"]["fix"]
    incident.shows_what_the_page_says("The metadata topic is acknowledged by one replica")


def test_runbook_when_read_then_every_incident_of_it_is_made_here() -> None:
    """The runbook has ten incidents, and a test makes each of them."""
    _, _, behind = PAGE.read_text(encoding="utf-8").partition("\n## Incidents\n")
    titles = re.findall(r"^### (.+)$", behind.partition("\n## ")[0], re.MULTILINE)
    shown = re.findall(r'shows_what_the_page_says\("(.+?)"\)', HERE.read_text(encoding="utf-8"))
    assert sorted(titles) == sorted(shown)
    assert len(titles) == 10


# ------------------------------------------------------- failure scenarios, as commands show them


def test_f78_history_when_an_event_was_refused_then_shows_it_with_place_and_reason(
    incident: Incident,
) -> None:
    """`history` shows the refused event, `status` counts it, and later events are applied."""
    one = incident.copy("a", 0, 99)
    place = incident.records[0].place
    incident.put(update(one, SegmentState.DELETE_SEGMENT_FINISHED))
    incident.put(delete_started(one, event_timestamp_ms=incident.now_ms))
    document = incident.document("history", str(one.uuid))
    told = [(item["offset"], item["verdict"], item["reason"]) for item in document["items"]]
    refused = (2, "rejected", "illegal-transition")
    assert told == [(0, "applied", None), (1, "applied", None), refused, (3, "applied", None)]
    assert {item["metadata_partition"] for item in document["items"]} == {place}
    status = incident.document("status")
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
    told = twice.document("history", str(segment_id("a").uuid))
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
    usage = incident.document("usage")
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
    listed = incident.document("segments", "list", "--state", "DELETE_SEGMENT_STARTED")
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
    usage = incident.document("usage")
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
