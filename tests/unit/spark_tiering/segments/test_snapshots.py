"""Producer snapshots compared with the log's state."""

from __future__ import annotations

import pytest

from spark_tiering.segments.producer_snapshots import judge_snapshot
from spark_tiering.segments.producer_state import ProducerEntry

IDLE = ProducerEntry(1, 0, 9, 50, 4, 1_000, -1, -1)
BUSY = ProducerEntry(2, 3, 5, 140, 0, 2_000, 7, 130)
ENDED = ProducerEntry(3, 1, -1, -1, 0, 2_500, 7, -1)
ALL = (IDLE, BUSY, ENDED)


def judge(found: tuple[ProducerEntry, ...], *, is_whole: bool = True) -> str:
    """Return the fault of a snapshot of *found*, or an empty text."""
    wrong = judge_snapshot(
        "f", {one.producer_id: one for one in found}, {one.producer_id: one for one in ALL}, 100,
        is_whole=is_whole,
    )  # fmt: skip
    return "" if wrong is None else wrong.detail


@pytest.mark.parametrize(
    ("found", "text", "is_whole"),
    [
        pytest.param(ALL, "", True, id="equal"),
        pytest.param((BUSY,), "", True, id="idle ones forgotten"),
        pytest.param((IDLE._replace(timestamp_ms=5), BUSY, ENDED), "", True, id="another time"),
        pytest.param(
            (*ALL, ProducerEntry(9, 0, 1, 20, 1, 5, -1, -1)), "", True, id="one from before"
        ),
        pytest.param((IDLE, ENDED), "producer 2: open since 130, and not there", True, id="open"),
        pytest.param((IDLE, BUSY._replace(txn_first_offset=-1)), "producer 2", True, id="not open"),
        pytest.param(
            (IDLE, BUSY._replace(txn_first_offset=129)), "producer 2", True, id="since when"
        ),
        pytest.param(
            (IDLE._replace(txn_first_offset=40), BUSY), "producer 1", True, id="still open"
        ),
        pytest.param((IDLE._replace(last_sequence=8), BUSY), "producer 1", True, id="sequence"),
        pytest.param((IDLE._replace(last_offset=49), BUSY), "producer 1", True, id="offset"),
        pytest.param((IDLE._replace(producer_epoch=1), BUSY), "producer 1", True, id="epoch"),
        pytest.param(
            (BUSY, ProducerEntry(9, 0, 1, 20, 1, 5, -1, 15)),
            "knows nothing of it",
            True,
            id="stranger",
        ),
        pytest.param(
            (IDLE._replace(last_sequence=1, last_offset=90), BUSY), "", False, id="alone: before"
        ),
        pytest.param(
            (ENDED._replace(last_sequence=8, last_offset=80), BUSY), "", False, id="alone: its data"
        ),
        pytest.param((BUSY._replace(txn_first_offset=80),), "", False, id="alone: open for longer"),
        pytest.param(
            (BUSY, ProducerEntry(9, 0, 1, 20, 1, 5, -1, 15)), "", False, id="alone: open elsewhere"
        ),
        pytest.param(
            (BUSY._replace(txn_first_offset=-1),), "producer 2", False, id="alone: not open"
        ),
        pytest.param(
            (BUSY._replace(txn_first_offset=131),), "producer 2", False, id="alone: open later"
        ),
        pytest.param((), "producer 2", False, id="alone: nothing"),
        pytest.param((BUSY._replace(last_sequence=4),), "producer 2", False, id="alone: sequence"),
        pytest.param(
            (BUSY, ENDED._replace(producer_epoch=0)), "producer 3", False, id="alone: epoch"
        ),
        pytest.param(
            (BUSY, ENDED._replace(txn_first_offset=90)), "producer 3", False, id="alone: ended here"
        ),
        pytest.param(
            (BUSY, ProducerEntry(9, 0, 1, 120, 1, 5, -1, 120)),
            "producer 9",
            False,
            id="alone: never seen",
        ),
    ],
)
def test_snapshot_is_held_to_the_known_state(
    found: tuple[ProducerEntry, ...], text: str, is_whole: bool
) -> None:
    """A snapshot must equal the state but for idle producers and times, or the segment alone."""
    fault = judge(found, is_whole=is_whole)
    assert text in fault if text else not fault


def test_coordinator_epoch_when_no_marker_was_seen_then_is_not_held_to_anything() -> None:
    """A coordinator epoch is not checked without a marker of that producer in the segment."""
    quiet = IDLE._replace(last_offset=120)
    told = quiet._replace(coordinator_epoch=4)
    assert judge_snapshot("f", {1: told}, {1: quiet}, 100, is_whole=False) is None
    assert judge_snapshot("f", {1: told}, {1: quiet}, 100, is_whole=True) is not None
