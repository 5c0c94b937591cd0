"""Leader epochs: known ones, agreement with the log, and the part for a copy."""

from __future__ import annotations

import pytest

from spark_tiering.segments import leader_epochs
from spark_tiering.segments.findings import SegmentFinding
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.leader_epochs import (
    EpochsJudge,
    EpochsOfLog,
    epochs_of_file,
    epochs_until,
    epochs_within,
)
from spark_tiering.segments.log_walk import LogBatch

HISTORY = ((4, 0), (6, 251), (9, 400))


def batch(base_offset: int, epoch: int) -> LogBatch:
    return LogBatch(0, 70, base_offset, base_offset, epoch, 0, -1, -1, -1, False, False, None)


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        pytest.param(b"0\n1\n4 x\n", Kind.DAMAGED, "no leader epoch", id="no number"),
        pytest.param(b"1\n0\n", Kind.DAMAGED, "version", id="version"),
        pytest.param(b"0\n3\n4 0\n", Kind.DAMAGED, "its count says 3", id="count"),
        pytest.param(b"0\n1\n4 0\n\n", Kind.DAMAGED, "2 lines", id="blank last line"),
        pytest.param(b"\xff\xfe", Kind.DAMAGED, "no text", id="no text"),
        pytest.param(
            b"0\n1\n" + b"9" * 5000 + b" 0\n", Kind.DAMAGED, "no leader", id="long number"
        ),
        pytest.param(b"0\n2\n4 0\n4 9\n", Kind.UNORDERED, "(4, 9)", id="epoch twice"),
        pytest.param(b"0\n2\n4 9\n5 9\n", Kind.UNORDERED, "(5, 9)", id="offset twice"),
        pytest.param(b"0\n0\n", Kind.MISSING, "no epochs", id="none"),
        pytest.param(b"", Kind.MISSING, "no epochs", id="empty"),
    ],
)
def test_wrong_check_point_says_how(content: bytes, kind: Kind, text: str) -> None:
    """A checkpoint that is not text, does not rise, or is missing is a finding."""
    found = epochs_of_file("f", content)
    assert isinstance(found, SegmentFinding)
    assert found.kind is kind
    assert text in found.detail


def test_check_point_when_it_is_right_then_has_the_history() -> None:
    """A checkpoint file has its history whatever its line ends, as with Kafka."""
    assert epochs_of_file("f", b"0\n3\n4 0\n6 251\n9 400\n") == HISTORY
    assert epochs_of_file("f", b"0\r\n2\r\n4 0\r\n6 251") == HISTORY[:2]


@pytest.mark.parametrize(
    ("base_offset", "next_offset", "carried", "own"),
    [
        pytest.param(0, 120, ((4, 0),), ((4, 0),), id="first"),
        pytest.param(120, 251, ((4, 0),), ((4, 120),), id="ends where an epoch begins"),
        pytest.param(251, 300, HISTORY[:2], ((6, 251),), id="begins with one"),
        pytest.param(240, 401, HISTORY, ((4, 240), (6, 251), (9, 400)), id="over two changes"),
    ],
)
def test_history_when_cut_then_is_the_segments(
    base_offset: int,
    next_offset: int,
    carried: tuple[tuple[int, int], ...],
    own: tuple[tuple[int, int], ...],
) -> None:
    """The listed epochs of a segment begin at its base offset."""
    assert epochs_until(HISTORY, next_offset) == carried
    assert epochs_within(HISTORY, base_offset, next_offset) == own


def test_f109_epoch_when_it_is_not_known_then_is_not_guessed() -> None:
    """The epochs are unknown when the first offset belongs to no known one."""
    assert epochs_within(((6, 251),), 240, 300) is None
    assert epochs_within((), 240, 300) is None


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        pytest.param([batch(0, 4), batch(250, 4), batch(251, 6), batch(500, 9)], "", id="right"),
        pytest.param([batch(251, 4)], "epoch 6 at offset 251, the log has 4", id="too early"),
        pytest.param([batch(249, 4), batch(250, 6)], "the log has 6", id="too late"),
        pytest.param([batch(10, -1)], "the log has -1", id="none in the log"),
    ],
)
def test_epochs_when_the_log_has_others_then_are_wrong(batches: list[LogBatch], text: str) -> None:
    """The epochs are wrong when the log's batches have others."""
    judge = EpochsJudge("f", HISTORY)
    for one in batches:
        judge.note(one)
    assert ("" if judge.finding is None else judge.finding.detail).endswith(text)
    assert (judge.finding is None) is (text == "")


def test_epochs_of_an_offset_below_the_history_when_judged_then_are_wrong() -> None:
    """Epochs are wrong when they begin above the first offset of the log."""
    judge = EpochsJudge("f", ((4, 10),))
    judge.note(batch(5, -1))
    assert judge.finding is not None


@pytest.mark.parametrize(
    ("before", "batches", "expected"),
    [
        pytest.param((), [batch(0, 4), batch(9, 4), batch(20, 6)], ((4, 0), (6, 20)), id="start"),
        pytest.param(((4, 0),), [batch(9, 4), batch(20, 6)], ((4, 0), (6, 20)), id="goes on"),
        pytest.param(None, [batch(0, 4)], None, id="nothing known before"),
        pytest.param((), [batch(0, 4), batch(9, -1)], None, id="a batch without"),
        pytest.param((), [batch(0, 4), batch(9, 3)], None, id="back to an older one"),
        pytest.param(((4, 0),), [], ((4, 0),), id="no batches"),
    ],
)
def test_epochs_when_made_from_the_log_then_are_those_that_batches_prove(
    before: tuple[tuple[int, int], ...] | None,
    batches: list[LogBatch],
    expected: tuple[tuple[int, int], ...] | None,
) -> None:
    """Epochs made from the log are those of its batches, and a contradiction makes them unknown."""
    made = EpochsOfLog(before)
    for one in batches:
        made.note(one)
    assert made.entries == expected


def test_epochs_when_there_are_too_many_then_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log with too many epochs makes them unknown instead of filling the memory."""
    monkeypatch.setattr(leader_epochs, "EPOCHS_MAX", 3)
    made = EpochsOfLog(())
    for number in range(4):
        made.note(batch(number, number))
    assert made.entries is None
