"""Waves: how many copies begin together, and how concurrent copies end."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import EventRejected
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.execution import WaveSize
from spark_tiering.copy_job.publishing import CopyEventPublisher, PublishFailure, PublishRefusal
from spark_tiering.copy_job.request import ClusterAccess, JobRequest
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.builders import segment_id, started, tp
from tests.support.tier.copy_plans import SIZE_BYTES, cut, source
from tests.support.tier.job_parts import HeldMetadata
from tests.support.tier.simulated_jobs import Killed, World, WorldHands, WorldPublisher, fates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlmm.errors import RlmmError
    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.values import WriteAnswer
    from spark_tiering.copy_plan.plan import PlannedCopy

pytestmark = pytest.mark.slow

CS, CF, DS, DF = SegmentState
ORDERS, LOGS = tp("orders", 0), tp("logs", 1)
SIDE_BY_SIDE = WaveSize(units=8, bytes=10**9, at_once=8)
SMALL = WaveSize(units=2, bytes=10**9, small_units=8, small_bytes=10**6, at_once=8)
GIB = 2**30
FINISHING = range(20, 22)
"""Steps at which a driver that makes four small copies has said of some that they are finished."""


def world(waves: WaveSize) -> World:
    sources = [
        source(cut(*range(0, 50, 10), is_active=True), partition=partition)
        for partition in (ORDERS, LOGS)
    ]
    return World(sources, waves=waves)


@pytest.mark.parametrize(
    ("waves", "most"),
    [
        pytest.param(WaveSize(2, 10**9), 2, id="by number"),
        pytest.param(WaveSize(5, 3 * SIZE_BYTES), 3, id="by bytes"),
        pytest.param(WaveSize(5, 1), 1, id="one that is too large alone"),
        pytest.param(WaveSize(2, 10**9, 6, 10**6), 6, id="more where they are small"),
        pytest.param(WaveSize(2, 10**9, 100, 5 * SIZE_BYTES), 5, id="until they are large"),
        pytest.param(WaveSize(4, 10**9, 100, SIZE_BYTES), 4, id="not small at all"),
        pytest.param(WaveSize(2, 3 * SIZE_BYTES, 100, 10**6), 3, id="small, and bound by bytes"),
    ],
)
def test_waves_when_copies_are_small_then_have_more_of_them(waves: WaveSize, most: int) -> None:
    """Waves of small copies hold more copies, up to their limits."""
    found, seen = world(waves), 0

    def count(_: object) -> None:
        nonlocal seen
        seen = max(seen, sum(one.state is CS for one in found.segments.values()))

    found.on_copy = count
    carried = found.carry_out()
    assert seen == most
    assert fates(carried) + fates(carried, LOGS) == ["finished"] * 8


@pytest.mark.parametrize(
    ("mode", "wave_units", "expected"),
    [
        pytest.param(
            CopyMode.ARCHIVE, None, WaveSize(12, 64 * GIB, 768, 3 * GIB // 2, 64), id="archive"
        ),
        pytest.param(CopyMode.ARCHIVE, 5, WaveSize(5, 64 * GIB), id="as it is said"),
        pytest.param(CopyMode.ADOPT, None, WaveSize(12, 64 * GIB), id="brokers look at each"),
    ],
)
def test_waves_follow_the_slots(mode: CopyMode, wave_units: int | None, expected: WaveSize) -> None:
    """The default wave follows from the slots; where brokers adopt, few copies are open."""
    request = JobRequest(
        mode,
        LogDirSettings(("/logs",)),
        EmbeddedAccess(folder=Path("log")),
        LocalSettings(Path("tier")),
        cluster=ClusterAccess("broker:9092"),
        wave_units=wave_units,
    )
    assert request.wave_size(3) == expected


def test_start_when_one_of_several_is_not_stored_then_what_lies_below_is_finished() -> None:
    """When one of several starts is not stored, copies below it are finished, none above."""
    found = world(SIDE_BY_SIDE)
    found.failures[10, CS] = PublishFailure.NOT_STORED
    found.sources = found.sources[:1]
    carried = found.carry_out()
    assert fates(carried) == ["finished", "not-begun", "left-open", "left-open"]
    assert len(found.objects) == 1
    found.failures.clear()
    assert set(fates(found.carry_out())) == {"finished"}
    assert set(found.finished_starts()) == {0, 10, 20, 30}
    found.check()


def test_topic_when_lost_during_starts_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that loses a topic while copies begin publishes no event about it."""
    answers = iter(["", "", "lost"])
    monkeypatch.setattr(WorldHands, "why_not_ours", lambda *_: next(answers, "lost"))
    found = world(SIDE_BY_SIDE)
    found.sources = found.sources[:1]
    carried = found.carry_out()
    assert carried.stopped == "lost"
    assert found.events == []
    assert fates(carried) == ["not-begun"] * 4


@pytest.mark.parametrize("waves", [SMALL, SIDE_BY_SIDE], ids=["small", "side by side"])
@pytest.mark.parametrize("dies_at", range(1, 50))
def test_driver_when_it_dies_then_the_next_job_ends_clean(dies_at: int, waves: WaveSize) -> None:
    """After a driver's death at any step the next job copies everything once."""
    found = world(waves)
    found.dies_at = dies_at
    try:
        found.carry_out()
    except Killed:
        found.check()
    found.dies_at = None
    found.carry_out()
    found.check()
    assert sorted(found.finished_starts()) == sorted([0, 10, 20, 30] * 2)
    assert {one.state for one in found.segments.values()} == {CF}


def stored_in_any_order(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A log that stores concurrent events in any order and fails in the middle of them."""
    shuffled = random.Random(seed)

    def told(
        publish: Callable[[Any], WriteAnswer | PublishRefusal], events: Sequence[Any]
    ) -> list[Any]:
        order = shuffled.sample(range(len(events)), len(events))
        found = {at: publish(events[at]) for at in order}
        return [found[at] for at in range(len(events))]

    def start_all(self: WorldPublisher, segments: Sequence[Any]) -> list[Any]:
        return told(self.start, segments)

    def move_all(self: WorldPublisher, partition: Any, state: Any, moves: Sequence[Any]) -> Any:
        return told(lambda one: self.move(partition, one[0], state, one[1]), moves)

    monkeypatch.setattr(WorldPublisher, "start_all", start_all)
    monkeypatch.setattr(WorldPublisher, "move_all", move_all)


@pytest.mark.parametrize("has_lost", [False, True], ids=["source whole", "source has lost some"])
@pytest.mark.parametrize("dies_at", range(2, 52, 2))
def test_archive_when_events_are_stored_in_any_order_and_the_driver_dies_then_nothing_is_lost(
    dies_at: int, has_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an archive a copy is finished only with its objects, even above an open one."""
    above_open = 0
    for seed in range(4):
        stored_in_any_order(monkeypatch, seed)
        found = world(SMALL)
        found.sources = found.sources[:1]
        found.dies_at = dies_at
        with suppress(Killed):
            found.carry_out()
        found.check()
        finished = found.finished_starts()
        above_open += finished != [0, 10, 20, 30][: len(finished)]
        whole = {
            one.start_offset
            for one in found.segments.values()
            if found.objects.get(one.id.uuid) is StoredObjects.WHOLE
        }
        found.dies_at = None
        if has_lost:
            found.sources = [source(cut(20, 30, 40, is_active=True), partition=ORDERS)]
        found.carry_out()
        found.check()
        still_there = {20, 30} if has_lost else {0, 10, 20, 30}
        assert set(found.finished_starts()) == whole | still_there
        assert len(found.finished_starts()) == len(whole | still_there)
    assert dies_at not in FINISHING or above_open, "no order tried that matters"


def test_finishes_of_small_copies_go_several_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wave of small copies publishes several finishes at a time, one of few each alone."""
    sizes: list[int] = []
    move_all = WorldPublisher.move_all

    def counting(*args: Any) -> Any:
        sizes.append(len(args[3]))
        return move_all(*args)

    monkeypatch.setattr(WorldPublisher, "move_all", counting)
    copy = WorldHands.copy
    monkeypatch.setattr(WorldHands, "copy", lambda *args: copy(args[0], args[1][::-1], args[2]))
    for waves, expected in ((SMALL, [4, 4]), (WaveSize(2, 10**9), [1] * 8)):
        sizes.clear()
        world(waves).carry_out()
        assert sizes == expected


@pytest.mark.parametrize("waves", [SMALL, SIDE_BY_SIDE], ids=["small", "side by side"])
def test_finish_when_one_of_several_is_not_stored_then_stays_open(waves: WaveSize) -> None:
    """When one of several finishes is not stored, the others count and it is finished later."""
    found = world(waves)
    found.failures[10, CF] = PublishFailure.NOT_STORED
    found.sources = found.sources[:1]
    carried = found.carry_out()
    assert fates(carried) == ["finished", "left-open", "finished", "finished"]
    assert carried.runs[0].why_stopped == "finish-not-stored"
    found.check()
    found.failures.clear()
    again = found.carry_out()
    assert [(one.start_offset, one.fate.value) for one in again.receipts()] == [(10, "finished")]
    assert sorted(found.finished_starts()) == [0, 10, 20, 30]


@pytest.mark.parametrize("gone", [True, False], ids=["deleted", "being deleted"])
def test_f120_finish_when_one_is_deleted_then_none_above_it_is_finished(gone: bool) -> None:
    """When one of several copies is deleted, those below are finished, those above stay open."""
    found = world(SMALL)
    found.sources = found.sources[:1]

    def delete(copy: PlannedCopy) -> None:
        if copy.start_offset != 10:
            return
        (known,) = [one for one in found.segments.values() if one.id.uuid == copy.uuid]
        del found.segments[known.id]
        if not gone:
            found.segments[known.id] = replace(known, state=DS)

    found.on_copy = delete
    carried = found.carry_out()
    assert fates(carried) == ["finished", "vanished", "left-open", "left-open"]
    found.check()


def test_finish_when_somebody_has_said_it_already_then_all_of_them_are_finished() -> None:
    """A finish that was already stored, from an event of unknown outcome, counts as finished."""
    found = world(SMALL)
    found.sources = found.sources[:1]

    def finish(copy: PlannedCopy) -> None:
        if copy.start_offset == 10:
            (known,) = [one for one in found.segments.values() if one.id.uuid == copy.uuid]
            found.segments[known.id] = replace(known, state=CF)

    found.on_copy = finish
    assert fates(found.carry_out()) == ["finished"] * 4


class Recording(HeldMetadata):
    """Metadata that records which events came together and rejects the one at offset 10."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[int] = []

    def publish(self, event: SegmentMetadata | SegmentUpdate, timeout_s: float) -> WriteAnswer:
        if getattr(event, "start_offset", None) == 10:
            raise EventRejected("it is there already", current=None, requested="", stored_at=None)
        return super().publish(event, timeout_s)

    def publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[WriteAnswer | RlmmError]:
        self.together.append(len(events))
        return super().publish_all(events, timeout_s)


def test_events_when_there_are_several_then_go_together_and_are_told_in_their_order() -> None:
    """Several events go together, with outcomes in order and a rejected one as a value."""
    metadata = Recording()
    publisher = CopyEventPublisher(metadata, 1, lambda: 0, 30.0)
    segments = [started(segment_id(start), start, start + 9) for start in (0, 10, 20, 30)]
    told = publisher.start_all(segments)
    assert [told[at][1] for at in (0, 2, 3)] == [0, 1, 2]
    assert isinstance(told[1], PublishRefusal)
    assert told[1].failure is PublishFailure.REJECTED
    moves = [(one.id.uuid, b"custom") for one in segments[2:]]
    assert [one[1] for one in publisher.move_all(tp(), CF, moves)] == [3, 4]
    assert publisher.start_all([]) == publisher.move_all(tp(), CF, []) == []
    assert publisher.start_all(segments[:1]) == [(0, 5, "applied")]
    assert metadata.together == [4, 2, 0, 0, 1]
