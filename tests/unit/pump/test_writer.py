"""Writes: the order of refusals, the waits, and the counts of their ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from rlmm.base.duration_histogram import BOUNDS_S, Durations
from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    EventRejected,
    NotAssigned,
    NotPublishable,
    NotReady,
    NotWritable,
    OutcomeUnknown,
    OverBudget,
    Stopped,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode
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
from rlmm.pump.memory_budget import Budget, MemorySettings, MemoryUsage
from rlmm.pump.settings import WriteSettings
from rlmm.pump.verdict_waits import VerdictWaits
from rlmm.pump.writer import EventWriter, StoredNotAssigned, WriterStatistics, WrittenEvent
from tests.support.builders import finished, segment_id, started, tp, update
from tests.support.engine.chosen import ChosenShard

PLACE = 2
JUNK = update("a", SegmentState.COPY_SEGMENT_STARTED)


@dataclass
class Around:
    assignment: Assignment = field(default_factory=Assignment.everything)
    connects_after_s: float = 0.0
    opens_after_s: float = 0.0
    refuses: Exception | None = None
    """The error that the gate raises, in place of a shard."""
    appends_after_s: float = 0.0
    append_fails: Exception | None = None
    verdict: Verdict | None = APPLIED
    resident: int = 0
    is_observer: bool = False
    shard: ChosenShard = field(default_factory=lambda: ChosenShard(PLACE))
    verdicts: VerdictWaits = field(default_factory=lambda: VerdictWaits(0))
    appended: list[tuple[int, bytes, float]] = field(default_factory=list)

    async def writer(self, **settings: int) -> EventWriter:
        budget = Budget(MemorySettings(alert_bytes=80, limit_bytes=100), self.measure)
        budget.look()
        return EventWriter(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self,
            budget,
            WriteSettings(**settings),
            is_observer=self.is_observer,
        )

    def measure(self) -> MemoryUsage:
        return MemoryUsage(self.resident, 1_000)

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        await asyncio.sleep(self.appends_after_s)
        if self.append_fails is not None:
            raise self.append_fails
        self.appended.append((partition, value, timeout_s))
        offset = len(self.appended) - 1
        if self.verdict is not None:
            entry = Entry(offset, offset + 1, self.verdict)
            entries = () if self.verdict == APPLIED else (entry,)
            report = Report(PLACE, offset, offset + 1, True, Tally(), 0, entries)
            self.verdicts.take_report(report, [(offset, value)])
        return offset

    def follower(self, partition: int) -> Around:
        assert partition == PLACE
        return self

    def place_of(self, partition: Any) -> int:
        if self.connects_after_s > asyncio.get_running_loop().time():
            msg = "not connected"
            raise NotReady(msg)
        return PLACE

    def is_assigned(self, partition: Any) -> bool:
        return self.assignment.covers(partition, self.place_of(partition))

    async def wait_assigned(self) -> None:
        await asyncio.sleep(self.connects_after_s)

    async def wait_open(self, partition: Any) -> None:
        await asyncio.sleep(self.opens_after_s)

    def admit(self, partition: Any) -> ChosenShard:
        if self.refuses is not None:
            raise self.refuses
        if self.opens_after_s > asyncio.get_running_loop().time():
            msg = "not open"
            raise NotReady(msg)
        return self.shard


def counts(writer: EventWriter) -> dict[str, int]:
    stands: WriterStatistics = writer.statistics()
    named = {name: getattr(stands, name) for name in WriterStatistics.__slots__}
    del named["durations"]
    return {name: count for name, count in named.items() if count}


# ------------------------------------------------------------------------------------- refusals


async def test_f51_f53_refusals_then_come_in_order_of_what_would_have_to_change() -> None:
    """The refusals come in the order event, rights, memory, readiness, state."""
    around = Around(is_observer=True, resident=100, refuses=NotAssigned("elsewhere"))
    for way in ("write", "store"):
        with pytest.raises(NotPublishable):
            await getattr(await around.writer(), way)(JUNK)
    with pytest.raises(NotWritable):
        await (await around.writer()).write(finished("a"))
    around.is_observer = False
    with pytest.raises(OverBudget):
        await (await around.writer()).write(finished("a"))
    around.resident = 0
    with pytest.raises(NotAssigned):
        await (await around.writer()).write(finished("a"))
    around.refuses = None
    with pytest.raises(EventRejected):
        await (await around.writer()).write(finished("a"))
    assert not around.appended


async def test_write_then_appends_kafkas_bytes_once() -> None:
    """A write appends one record in the form of brokers to the partition's metadata partition."""
    around = Around()
    writer = await around.writer(timeout_ms=5_000)
    assert await writer.write(started("a")) == WrittenEvent(PLACE, 0, APPLIED)
    ((place, value, timeout_s),) = around.appended
    assert (place, value) == (PLACE, encode(started("a")))
    assert 4.9 < timeout_s <= 5
    assert counts(writer) == {"applied": 1}


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (
            Rejected(RejectReason.UNKNOWN_SEGMENT, None, SegmentState.COPY_SEGMENT_FINISHED),
            RejectReason.UNKNOWN_SEGMENT,
        ),
        (Undecodable(UndecodableReason.OVERSIZED), "undecodable"),
    ],
    ids=["rejected", "undecodable"],
)
async def test_f51_verdict_on_a_stored_event_has_its_place(verdict: Verdict, reason: str) -> None:
    """The error of a stored event without effect names its place."""
    around = Around(verdict=verdict)
    writer = await around.writer()
    with pytest.raises(EventRejected) as caught:
        await writer.write(started("a"))
    assert (caught.value.reason, caught.value.stored_at) == (reason, (PLACE, 0))
    assert counts(writer) == {"rejected_after": 1}


# ---------------------------------------------------------------------------------- how it ends


@pytest.mark.parametrize(
    ("around", "error", "counted"),
    [
        (Around(verdict=None), OutcomeUnknown, "unknown"),
        (Around(append_fails=AppendUncertain("?")), AppendUncertain, "unknown"),
        (Around(append_fails=AppendRefused("no")), AppendRefused, "failed"),
        (Around(refuses=NotReady("not yet")), NotReady, "failed"),
        (Around(refuses=Stopped("over")), Stopped, "failed"),
    ],
    ids=["not-heard", "uncertain", "refused", "not-ready", "stopped-before"],
)
async def test_f50_f54_end_then_is_counted_by_what_is_known_of_the_event(
    around: Around, error: type[Exception], counted: str
) -> None:
    """Perhaps stored and surely not stored are never mixed up."""
    around.verdicts = VerdictWaits(0)
    writer = await around.writer()
    with pytest.raises(error):
        await writer.write(started("a"))
    assert counts(writer) == {counted: 1}
    assert around.verdicts.listening == 0


async def test_f52_repeat_then_is_counted_as_one() -> None:
    """A repeat counts as a success of its own kind."""
    around = Around(verdict=DUPLICATE)
    writer = await around.writer()
    assert (await writer.write(started("a"))).verdict == DUPLICATE
    assert counts(writer) == {"duplicate": 1}


async def test_f90_write_when_cancelled_then_leaves_no_listener_behind() -> None:
    """A cancelled write leaves no listener, at admission, during the append, or while it waits."""
    for around, outcome in (
        (Around(opens_after_s=60), "failed"),  # nothing was handed to the log
        (Around(appends_after_s=60), "unknown"),
        (Around(verdict=None), "unknown"),
    ):
        writer = await around.writer()
        writing = asyncio.create_task(writer.write(started("a")))
        await asyncio.sleep(1)
        assert counts(writer) == {"pending": 1}
        writing.cancel()
        await asyncio.wait([writing])
        assert writing.cancelled()
        assert around.verdicts.listening == 0
        assert counts(writer) == {outcome: 1}


# ------------------------------------------------------------------------------------ deadlines


@pytest.mark.parametrize("way", ["write", "store"])
@pytest.mark.parametrize(
    "around",
    [
        Around(opens_after_s=4, appends_after_s=3, verdict=None),
        Around(connects_after_s=4, appends_after_s=3, verdict=None),
        Around(verdict=None),
    ],
    ids=["opening", "connecting", "listening"],
)
async def test_f50_write_then_ends_by_its_deadline(around: Around, way: str) -> None:
    """One deadline bounds all waits of a write."""
    around.verdicts, around.appended = VerdictWaits(0), []
    writer = await around.writer()
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    around.connects_after_s += begun_s
    around.opens_after_s += begun_s
    with pytest.raises((OutcomeUnknown, NotReady)):
        await getattr(writer, way)(started("a"), timeout_s=10)
    assert loop.time() - begun_s <= 10.01
    assert all(timeout_s <= 10 for _, _, timeout_s in around.appended)


async def test_f50_store_when_not_assigned_then_gives_the_log_what_time_is_left() -> None:
    """The append gets the time that the wait for the topic has left."""
    around = Around(Assignment.nothing(), connects_after_s=4)
    writer = await around.writer()
    event = started(segment_id("a", tp("elsewhere")))
    assert await writer.store(event, timeout_s=10) == StoredNotAssigned(PLACE, 0)
    assert around.appended[0][2] == pytest.approx(6)
    assert counts(writer) == {"stored_not_assigned": 1}


@pytest.mark.parametrize(
    ("duration_s", "bound"),
    [(0.0, "0.001"), (0.001, "0.001"), (0.0011, "0.0025"), (30.0, "30"), (30.1, "+Inf")],
)
def test_duration_when_added_then_counts_from_its_bound_on(duration_s: float, bound: str) -> None:
    """A bound holds all that took no longer, itself included."""
    durations = Durations()
    durations.add(duration_s)
    up_to = durations.statistics().up_to()
    assert next(name for name, count in up_to.items() if count) == bound


def test_durations_when_many_are_added_then_add_up() -> None:
    """Each bound counts all durations below it, and the last one counts all."""
    durations = Durations()
    for bound in (*BOUNDS_S, 1_000.0):
        durations.add(bound)
    found = durations.statistics()
    assert found.count == len(BOUNDS_S) + 1
    assert found.sum_s == pytest.approx(sum(BOUNDS_S) + 1_000.0)
    assert list(found.up_to().values()) == list(range(1, len(BOUNDS_S) + 2))
    assert list(found.up_to())[-1] == "+Inf"
