"""The native engine against the pure-Python one: equal bytes in, equal reports and answers out."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ImageCorrupt
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.report import Tally
from tests.support.engine.changes_between import ChangesBetween, applied_in_slices
from tests.support.engine.chosen import needs_native
from tests.support.engine.shards import values_of
from tests.support.records.histories import (
    EPOCHS,
    OFFSETS,
    PARTITIONS,
    UUIDS,
    DenseHistory,
    odd_form,
)
from tests.support.records.odd_record_sets import odd_record_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.events import Event
    from rlmm.metadata.report import Report
    from rlmm.metadata.shard import Shard
    from rlmm.records.record_set import RecordSet

pytestmark = needs_native


class SideBySide(ChangesBetween):
    """Both engines, given the same calls; every outcome is compared."""

    def __init__(self, seed: int) -> None:
        from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - may not be built

        super().__init__()
        self.rng = random.Random(seed)
        self.make: tuple[type[PythonShard], type[PythonShard]] = (NativeShard, PythonShard)
        self.both: tuple[PythonShard, PythonShard] = (NativeShard(3), PythonShard(3))
        for shard in self.both:
            shard.place_among(5)
        self.history = DenseHistory(self.rng)
        self.events = 0
        self.last: RecordSet | None = None

    def same(self, ask: Callable[[Shard], Any]) -> Any:
        native, expected = (ask(shard) for shard in self.both)
        assert native == expected
        return expected

    # ------------------------------------------------------------------------------- applying

    def go_on(self) -> None:
        rng = self.rng
        given = self.last if self.last is not None and rng.random() < 0.05 else self.record_set()
        self.last = given
        for _ in range(1_000):
            report = self.apply(given)
            if report.damage is not None:
                self.pass_damage(report, given)
            if report.complete:
                break
        self.same(lambda shard: shard.statistics())

    def apply(self, given: RecordSet) -> Report:
        if self.rng.random() < 0.2:
            return self.apply_ahead(given)
        passed: tuple[list[Any], list[Any]] = ([], [])
        if self.rng.random() < 0.2:
            return self.apply_in_slices(given, passed)
        limit = self.rng.choice((None, None, 1, 7, 100))
        native, expected = (
            shard.apply(given, limit, passed=into)
            for shard, into in zip(self.both, passed, strict=True)
        )
        assert passed[0] == passed[1]
        if not expected.complete and expected.damage is None:
            # In a run of small batches the reference has found later ones than it applied.
            assert native.next_offset == expected.next_offset
            native, expected = (
                type(one)(**{**_fields(one), "last_batch": None}) for one in (native, expected)
            )
        assert native == expected
        return expected

    def apply_in_slices(self, given: RecordSet, passed: tuple[list[Any], list[Any]]) -> Report:
        """Let the time of each engine be over at other moments: the whole is the same."""
        is_over = [random.Random(self.rng.random()) for _ in self.both]
        native, expected = (
            applied_in_slices(shard, given, lambda rng=rng: rng.random() < 0.5, into)  # type: ignore[misc]
            for shard, rng, into in zip(self.both, is_over, passed, strict=True)
        )
        assert passed[0] == passed[1]
        assert native == expected
        return expected

    def apply_ahead(self, given: RecordSet) -> Report:
        """Let the core do what it offers to a thread; its pieces make one report."""
        native, expected = self.both
        passed: tuple[list[Any], list[Any]] = ([], [])
        reports: list[Report] = []
        while not reports or not (reports[-1].complete or reports[-1].damage):
            work = native.work_ahead(given, keeps_passed=True)
            position, tally = native.position, native.statistics().tally
            if work is not None:
                work()
                assert (native.position, native.statistics().tally) == (position, tally)
            reports.append(native.apply(given, passed=passed[0]))
        report = expected.apply(given, passed=passed[1])
        whole, tally = reports[-1], Tally()
        for piece in reports:
            tally.add(piece.tally)
        assert passed[0] == passed[1]
        assert report == replace(
            whole,
            from_offset=reports[0].from_offset,
            tally=tally,
            redelivered=sum(piece.redelivered for piece in reports),
            entries=tuple(entry for piece in reports for entry in piece.entries),
            deleted=tuple(one for piece in reports for one in piece.deleted),
        )
        return report

    def pass_damage(self, report: Report, given: RecordSet) -> None:
        assert report.damage is not None
        damage, position = report.damage, self.both[1].position
        next_offset = max(position + 1, min(report.damage.next_offset or 0, position + 40))
        self.same(lambda shard: shard.set_aside(damage, given.data, next_offset))

    def record_set(self) -> RecordSet:
        at = self.both[1].position
        made, count = odd_record_set(self.rng, 3, at, lambda: values_of([self.value()])[0])
        self.events += count
        return made

    def value(self) -> Event | bytes | None:
        kind = self.rng.random()
        if kind < 0.01:
            return None
        if kind < 0.02:
            return self.rng.randbytes(self.rng.randint(0, 60))
        event = self.history.event()
        return odd_form(event) if kind < 0.06 else event

    # -------------------------------------------------------------------------------- answers

    def ask(self) -> None:
        rng = self.rng
        partition, epoch = rng.choice(PARTITIONS), rng.choice(EPOCHS)
        offset, uuid = rng.choice(OFFSETS), rng.choice(UUIDS)
        lookups = [(partition, epoch, one) for one in rng.choices(OFFSETS, k=3)]
        asked: tuple[Callable[[Shard], Any], ...] = (
            lambda shard: shard.segment_for(partition, epoch, offset),
            lambda shard: shard.next_segment_with_txn_index(partition, epoch, max(offset, 0)),
            lambda shard: shard.highest_offset(partition, epoch),
            lambda shard: shard.row_for(partition, epoch, offset),
            lambda shard: shard.rows_for(lookups),
            lambda shard: shard.segments(partition),
            lambda shard: shard.segments_of_epoch(partition, epoch),
            lambda shard: shard.size(partition),
            lambda shard: shard.size_of_epoch(partition, epoch),
            lambda shard: shard.segment_counts_of(partition),
            lambda shard: shard.partition_delete(partition),
            lambda shard: shard.epoch_view(partition, epoch),
            lambda shard: shard.knows(partition),
            lambda shard: shard.page(partition, rng_epoch, limit=3),
            lambda shard: shard.segment(SegmentId(partition, uuid)),
            lambda shard: shard.admit(event),
            lambda shard: sorted(shard.watermarks(), key=str),
            lambda shard: {one.key for one in shard.partitions()},
            lambda shard: dict(shard.misplaced),
            lambda shard: shard.user_partitions,
            lambda shard: shard.listing(partition, rng_epoch).take(4),
            lambda shard: shard.statistics(),
        )
        rng_epoch, event = rng.choice((None, epoch)), DenseHistory(rng).event()
        for one in asked:
            self.same(one)

    def exchange_images(self) -> None:
        """Let each engine go on from the image of the other."""
        image = self.same(lambda shard: shard.image())
        self.both = self.make[0].from_image(image), self.make[1].from_image(image)
        for shard in self.both:
            shard.place_among(5)
        self.last = None

    def refuse_images(self) -> None:
        images = [part() for part in self.both[1].image_parts()]
        for image in images:
            place = self.rng.randrange(len(image))
            damaged = bytes((image[place] ^ 1 << self.rng.randrange(8),))
            odd = image[:place] + damaged + image[place + 1 :]
            outcomes: list[bytes | str] = []
            for make in self.make:
                shard = make(3)
                try:
                    shard.import_partition(odd)
                    outcomes.append(shard.image())
                except ImageCorrupt as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1]


def _fields(report: Report) -> dict[str, Any]:
    return {name: getattr(report, name) for name in type(report).__slots__}


def run_events(seed: int, count: int) -> None:
    world = SideBySide(seed)
    while world.events < count:
        world.go_on()
        if world.rng.random() < 0.2:
            world.ask()
        if world.rng.random() < 0.1:
            world.change()
        if world.rng.random() < 0.01:
            world.exchange_images()
            world.refuse_images()
    assert world.both[0].validate() == []
    world.exchange_images()


@pytest.fixture(autouse=True)
def every_record_set_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the core offer work for a thread also of the small record sets here."""
    monkeypatch.setattr("rlmm.metadata.native_shard._AHEAD_BYTES_MIN", 0)


@pytest.mark.parametrize("seed", range(20))
def test_native_engine_when_given_the_same_bytes_then_says_the_same(seed: int) -> None:
    """Random, damaged and cut record sets give equal reports, statistics, answers and images."""
    run_events(seed, 10_000)


@pytest.mark.long
@pytest.mark.timeout(3 * 3_600)
@pytest.mark.parametrize("seed", range(100, 300))
def test_native_engine_when_given_ten_million_events_then_says_the_same(seed: int) -> None:
    """The same, in its long form."""
    run_events(seed, 50_000)
