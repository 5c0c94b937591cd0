"""How a service says that it stands, as far as it says it."""

from __future__ import annotations

from typing import Any

from rlmm.inspection.check_thresholds import Thresholds, judge
from rlmm.metadata.ids import Uuid
from rlmm.state_sources.sidecar_status import standing_of, with_lag
from rlmm.views.source_status import standing_totals

TOPIC = Uuid(b"t" * 16)
SAID: dict[Any, Any] = {"cluster_id": "c", "topic_id": str(TOPIC), "partition_count": 2}


def test_standing_when_the_service_says_little_then_the_rest_is_not_known() -> None:
    """Facts that an older service leaves out are unknown, not zero."""
    said = {**SAID, "metadata_partitions": [{"metadata_partition": 1, "state": "stale"}, "odd", {}]}
    found = standing_of(said, "here", "serve")
    absent, told = found.places
    assert (absent.metadata_partition, absent.state, absent.why) == (0, "absent", "absent")
    assert (told.state, told.position, told.lag_records, told.lag_s) == ("stale", None, None, None)
    assert (told.segments, told.user_partitions, told.is_history_complete) == (None, None, None)
    assert not found.is_caught_up
    assert found.notes[-1].startswith("1 of 2 metadata partitions are not read by the service")
    assert not found.left_out, "whether that is meant so it does not say"


def test_standing_when_the_service_was_not_given_all_then_what_it_has_is_what_counts() -> None:
    """A service is complete with the partitions of its broker."""
    place = {"metadata_partition": 1, "state": "open", "position": 3, "segments": {}}
    said = {**SAID, "metadata_partitions": [place], "is_assignment_known": True}
    found = standing_of(said, "here", "serve")
    assert [one.state for one in found.places] == ["not-assigned", "open"]
    assert found.is_caught_up
    assert found.left_out == found.notes[-1]
    assert found.left_out.endswith("; --bootstrap-server shows all")
    assert [one.metadata_partition for one in found.assigned] == [1]
    assert standing_totals(found.places).metadata_partitions == 1
    assert not judge(found, Thresholds())
    waiting = standing_of({**said, "is_assignment_known": False}, "here", "serve")
    assert (waiting.places[0].state, waiting.places[0].why) == ("absent", "assignment-unknown")
    assert (waiting.is_caught_up, waiting.left_out) == (False, "")


def test_standing_when_all_is_said_then_is_told_in_our_words() -> None:
    """The standing has the service's facts, with ages in milliseconds."""
    place = {
        "metadata_partition": 0, "state": "open", "why": None, "detail": "", "position": 5,
        "target": 4, "log_start": 1, "log_end": 5, "lag_records": 0, "user_partitions": 3,
        "segments": {"COPY_SEGMENT_STARTED": 2}, "size_bytes": 9, "rejected": {"x": 1},
        "undecodable": {}, "history": {"is_complete": False}, "snapshot": {"age_ms": 1_500},
    }  # fmt: skip
    said = {**SAID, "partition_count": 1, "metadata_partitions": [place]}
    found = standing_of(said, "here", "observer")
    (told,) = found.places
    assert found.is_caught_up
    assert found.notes == ("the service observes: it writes nothing",)
    assert (told.lag_s, told.snapshot_age_s, told.is_history_complete) == (0.0, 1.5, False)
    assert (told.segments, dict(told.rejected)) == ({"COPY_SEGMENT_STARTED": 2}, {"x": 1})
    assert with_lag(found, {0: 3.5}).places[0].lag_s == 3.5
    assert with_lag(found, {}) == found


def test_standing_when_nobody_has_said_what_is_assigned_then_that_is_why() -> None:
    """The standing names the missing assignment as a reason for which waiting helps."""
    said = {**SAID, "is_assignment_known": False, "assignment": "not known yet"}
    found = standing_of(said, "here", "serve")
    assert {one.why for one in found.places} == {"assignment-unknown"}
    found = standing_of({"last_trouble": "no broker"}, "here", "serve")
    assert (found.identity, found.places) == (None, ())
    assert found.notes == ("the service has not reached its log: no broker",)
