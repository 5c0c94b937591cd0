"""Thresholds, judged once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.inspection.check_thresholds import Thresholds, judge
from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus, StateSourceKind
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid

WELL = MetadataPartitionStatus(
    3, "open", None, "", log_start=0, position=10, target=10, log_end=10, lag_records=0, lag_s=0.0,
    user_partitions=1, segments={}, size_bytes=0, is_history_complete=True, snapshot_age_s=60.0,
)  # fmt: skip
STRICT = Thresholds(5.0, 5, 0, 0, 3_600.0, needs_whole_history=True)


def standing(*places: MetadataPartitionStatus) -> SourceStatus:
    return SourceStatus(
        StateSourceKind.SIDECAR, "here", LogIdentity("c", Uuid.of(0, 1), 50), places
    )


@pytest.mark.parametrize(
    ("place", "codes", "said"),
    [
        (WELL, [], ""),
        (replace(WELL, state="replaying", why="behind"), ["NOT-READY"], "replaying: behind"),
        (replace(WELL, lag_s=6.0, lag_records=2), ["BEHIND"], "6 s old, and there are 2 later"),
        (replace(WELL, lag_records=6), ["BEHIND"], "6 records"),
        (replace(WELL, rejected={"illegal-transition": 2}), ["EVENTS-REJECTED"],
         "2 illegal-transition"),
        (replace(WELL, undecodable={"truncated": 1}), ["RECORDS-UNDECODABLE"], "1 truncated"),
        (replace(WELL, lost_records=4), ["RECORDS-UNDECODABLE"], "4 in all that its state is made"),
        (replace(WELL, lost_records=4, undecodable={"truncated": 1}), ["RECORDS-UNDECODABLE"],
         "1 truncated"),
        (replace(WELL, snapshot_age_s=3_601.0), ["SNAPSHOT-OLD"], "3601 s"),
        (replace(WELL, is_history_complete=False, log_start=40), ["HISTORY-INCOMPLETE"],
         "at offset 40"),
        (replace(WELL, lag_s=None, lag_records=None, snapshot_age_s=None), [], ""),
    ],
)  # fmt: skip
def test_check_names_what_is_beyond_its_threshold_and_what_is_unknown_is_not(
    place: MetadataPartitionStatus, codes: list[str], said: str
) -> None:
    """Each finding names its metadata partition, and unknown values give none."""
    found = judge(standing(WELL, place), STRICT)
    assert [one.kind.code for one in found] == codes
    assert all(one.subject == "__remote_log_metadata-3" and said in one.detail for one in found)


def test_check_when_thresholds_are_not_set_then_only_what_is_always_wrong_is_told() -> None:
    """Exactly at a threshold is fine."""
    place = replace(WELL, lag_s=300.0, rejected={"unknown-segment": 9}, snapshot_age_s=1e9)
    assert judge(standing(place), Thresholds()) == []


def test_check_when_the_log_was_never_reached_then_is_not_ready() -> None:
    """A log that was never reached is not ready, because its partitions are unknown."""
    (found,) = judge(SourceStatus(StateSourceKind.SIDECAR, "here", None, ()), Thresholds())
    assert (found.kind.code, found.subject) == ("NOT-READY", "here")
