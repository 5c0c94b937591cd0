"""The verdict of a writer's own event, whether the offset or the record comes first."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.errors import AssignmentLost, OutcomeUnknown, PumpFailed, Stopped, Unresolved
from rlmm.metadata.report import Entry, Report, Tally
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Rejected,
    RejectReason,
    Undecodable,
    UndecodableReason,
    Verdict,
)
from rlmm.pump.verdict_waits import VerdictWaits

Values = list[tuple[int, bytes | None]]

REJECTED = Rejected(RejectReason.UNKNOWN_SEGMENT, None, SegmentState.COPY_SEGMENT_FINISHED)
DAMAGED = Undecodable(UndecodableReason.DAMAGED_BATCH)


def value(offset: int) -> bytes:
    return b"event %d" % offset


def values(first: int, next_offset: int) -> Values:
    return [(offset, value(offset)) for offset in range(first, next_offset)]


def passed(first: int, next_offset: int, **verdicts: Verdict) -> tuple[Report, Values]:
    """Return a report on offsets [*first*, *next_offset*); `at7=REJECTED` is one verdict."""
    entries = tuple(
        Entry(int(name[2:]), int(name[2:]) + 1, verdict) for name, verdict in verdicts.items()
    )
    report = Report(0, first, next_offset, True, Tally(), 0, entries)
    return report, values(first, next_offset)


async def test_f51_verdict_when_the_record_comes_first_then_is_found() -> None:
    """The writer gets its verdict even if the reader passed the event first."""
    verdicts = VerdictWaits(5)
    append = verdicts.begin()
    verdicts.take_report(*passed(5, 8, at6=REJECTED))
    assert await verdicts.listen(6, append, value(6)) == REJECTED
    assert await verdicts.listen(5, append, value(5)) == APPLIED
    verdicts.end_append(append)


async def test_f51_verdict_when_the_offset_comes_first_then_is_waited_for() -> None:
    """Each of several writers gets the verdict on its own event."""
    verdicts = VerdictWaits(0)
    append = verdicts.begin()
    heard = [verdicts.listen(offset, append, value(offset)) for offset in (2, 0, 1, 9)]
    verdicts.end_append(append)
    verdicts.take_report(*passed(0, 2, at1=DUPLICATE))
    verdicts.take_report(*passed(2, 4, at2=REJECTED))
    assert [await waiter for waiter in heard[:3]] == [REJECTED, APPLIED, DUPLICATE]
    assert not heard[3].done()
    verdicts.take_report(*passed(4, 10))
    assert await heard[3] == APPLIED


async def test_verdict_when_a_damaged_batch_was_read_then_is_not_known_at_its_offsets() -> None:
    """Damage does not tell which events were there: the log may have been cut below them."""
    verdicts = VerdictWaits(0)
    append = verdicts.begin()
    early, late = verdicts.listen(4, append, value(4)), verdicts.listen(10, append, value(10))
    lost = Entry(3, 10, DAMAGED)
    report = Report(0, 0, 11, True, Tally(), 0, (lost,))
    verdicts.take_report(report, values(10, 11))
    assert await late == APPLIED
    for lost_event in (early, verdicts.listen(9, append, value(9))):
        with pytest.raises(OutcomeUnknown, match="is damaged there"):
            await lost_event
    verdicts.end_append(append)


async def test_verdict_when_the_reader_pauses_between_append_and_answer_then_is_kept() -> None:
    """The verdicts since the start of the append are kept, however many slices are read."""
    verdicts = VerdictWaits(0)
    append = verdicts.begin()
    for offset in range(0, 100, 2):
        verdicts.take_report(*passed(offset, offset + 2, **{f"at{offset}": DUPLICATE}))
    assert await verdicts.listen(40, append, value(40)) == DUPLICATE
    assert await verdicts.listen(41, append, value(41)) == APPLIED
    verdicts.end_append(append)


async def test_kept_verdicts_when_appends_always_overlap_then_do_not_pile_up() -> None:
    """Verdicts that no present append can need are dropped, even if appends always overlap."""
    verdicts = VerdictWaits(0)
    append = verdicts.begin()
    for offset in range(1_000):
        following = verdicts.begin()
        verdicts.end_append(append)
        verdicts.take_report(*passed(offset, offset + 1, **{f"at{offset}": DUPLICATE}))
        append = following
    assert len(verdicts._kept) <= 2
    assert len(verdicts._passed) <= 2
    assert await verdicts.listen(999, append, value(999)) == DUPLICATE
    verdicts.end_append(append)
    assert not verdicts._kept
    assert not verdicts._passed


@pytest.mark.parametrize(
    "error", [OutcomeUnknown, AssignmentLost, Stopped, PumpFailed], ids=lambda kind: kind.code
)
async def test_f50_end_then_reaches_who_waits_and_who_comes_later(error: type[Unresolved]) -> None:
    """Each end of reading has its own error, also for an append that gets its offset later."""
    verdicts = VerdictWaits(0)
    append = verdicts.begin()
    heard = verdicts.listen(3, append, value(3))
    verdicts.fail(error, "over")
    with pytest.raises(error, match="over"):
        await heard
    with pytest.raises(error, match="over"):
        await verdicts.listen(0, append, value(0))
    verdicts.end_append(append)
    assert verdicts.listening == 0


async def test_f50_offset_that_was_passed_before_the_append_then_tells_no_verdict() -> None:
    """An offset that was read before the append gives no verdict, because the log was truncated."""
    verdicts = VerdictWaits(0)
    verdicts.take_report(*passed(0, 5, at3=DUPLICATE))
    append = verdicts.begin()
    for offset in (3, 4):
        with pytest.raises(OutcomeUnknown, match="cut off"):
            await verdicts.listen(offset, append, value(offset))
    heard = verdicts.listen(5, append, value(5))
    verdicts.end_append(append)
    verdicts.take_report(*passed(5, 6))
    assert await heard == APPLIED


async def test_end_when_there_are_two_then_the_first_is_told() -> None:
    """The first of two ends counts."""
    verdicts = VerdictWaits(0)
    verdicts.fail(AssignmentLost, "taken away")
    verdicts.fail(Stopped, "stopped")
    with pytest.raises(AssignmentLost):
        await verdicts.listen(0, verdicts.begin(), value(0))


async def test_f90_waiter_when_cancelled_then_the_others_hear_as_before() -> None:
    """A cancelled writer is removed, and the others get their verdicts."""
    verdicts = VerdictWaits(0)
    append = verdicts.begin()
    gone, stays = verdicts.listen(1, append, value(1)), verdicts.listen(1, append, value(1))
    verdicts.end_append(append)
    assert verdicts.listening == 2
    gone.cancel()
    assert verdicts.listening == 1
    verdicts.take_report(*passed(0, 2, at1=REJECTED))
    assert await stays == REJECTED
    assert verdicts.listening == 0


async def test_f90_waiting_when_many_wait_then_no_task_and_no_timer_is_needed() -> None:
    """A thousand writes that wait are a thousand futures, and nothing else."""
    verdicts = VerdictWaits(0)
    append = verdicts.begin()
    heard = [verdicts.listen(offset, append, value(offset)) for offset in range(1_000)]
    verdicts.end_append(append)
    assert len(asyncio.all_tasks()) == 1
    verdicts.take_report(*passed(0, 1_000, at500=DUPLICATE))
    assert [await waiter for waiter in heard].count(APPLIED) == 999


@pytest.mark.parametrize("is_first", [True, False], ids=["record-first", "offset-first"])
@pytest.mark.parametrize(
    "stored", [[(1, b"another event")], []], ids=["another-event", "no-record"]
)
async def test_verdict_when_another_event_is_at_its_offset_then_is_unknown(
    stored: Values, is_first: bool
) -> None:
    """A writer never gets the verdict of an event that a new leader stored at its offset."""
    verdicts = VerdictWaits(1)
    append = verdicts.begin()
    read = Report(0, 1, 2, True, Tally(), 0, ()), stored
    if is_first:
        verdicts.take_report(*read)
    waiter = verdicts.listen(1, append, value(1))
    verdicts.end_append(append)
    if not is_first:
        verdicts.take_report(*read)
    with pytest.raises(OutcomeUnknown, match="another event, or none, was read at offset 1"):
        await waiter
