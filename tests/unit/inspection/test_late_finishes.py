"""Late finishes, by the order of events and by their brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.event_record import EventRecord
from rlmm.inspection.late_finishes import LATE_FINISH, CopyTimes
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.python_shard import PythonShard
from rlmm.retention.segment_lineage import finished_of, overlaps_in
from tests.support.builders import delete_started, finished, started, tp

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

OLD, NEW = 1, 2
"""Brokers."""


def late_among(*events: Event, head: int = 0) -> list[object]:
    shard, told = PythonShard(0), list[EventRecord]()
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
