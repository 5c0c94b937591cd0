"""Calls to two shards between their record sets, after which both must be the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlmm.metadata.ids import SegmentId
from rlmm.metadata.report import Entry, Report, Tally
from tests.support.builders import started
from tests.support.records.histories import EPOCHS, PARTITIONS, UUIDS, DenseHistory

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.paging import PageKey
    from rlmm.metadata.python_shard import PythonShard
    from rlmm.metadata.shard import Shard
    from rlmm.records.record_set import RecordSet


class ChangesBetween:
    """Two shards that get the same calls; `same` compares what they answer."""

    rng: Random
    both: tuple[PythonShard, PythonShard]
    history: DenseHistory

    def __init__(self) -> None:
        self._listings: dict[tuple[TopicIdPartition, int | None], PageKey | None] = {}
        self._older: dict[TopicIdPartition, bytes] = {}
        self._frozen: list[tuple[Callable[[], bytes], Callable[[], bytes]]] = []

    def same(self, ask: Callable[[Shard], Any]) -> Any:
        raise NotImplementedError

    def change(self) -> None:
        """Do one of the changes; each is as likely."""
        changes = (self.trim, self.single_event, self.many_epochs, self.freeze, self.take_over)
        self.rng.choice((*changes, self.go_on_listing, self.go_on_listing, self.lose_holes))()

    def trim(self) -> None:
        log_start = self.both[1].position + self.rng.choice((1, 1, 30))
        self.same(lambda shard: shard.pass_trimmed(log_start))

    def lose_holes(self) -> None:
        is_damage = self.rng.random() < 0.3
        for shard in self.both:
            shard.holes_are_damage = is_damage

    def single_event(self) -> None:
        event = self.rng.choice((None, self.history.event(), self.history.event()))
        offset = self.both[1].position + self.rng.choice((0, 0, 3))
        self.same(lambda shard: shard.apply_event(event, offset))

    def many_epochs(self) -> None:
        segment = SegmentId(self.rng.choice(PARTITIONS), self.rng.choice(UUIDS))
        epochs = {number * 3: number for number in range(self.rng.choice((20, 70, 300)))}
        event = started(segment, 0, 400, epochs)
        self.same(lambda shard: shard.apply_event(event))

    def freeze(self) -> None:
        """Freeze all, or make the images that were frozen before the latest changes."""
        if self._frozen:
            for native, expected in self._frozen:
                assert native() == expected()
            self._frozen = []
            return
        partition = self.rng.choice((None, *PARTITIONS))
        steps = [[one for one in shard.freezing(partition) if one] for shard in self.both]
        self._frozen = list(zip(*steps, strict=True))

    def take_over(self) -> None:
        """Replace a user partition by an image of it from some time ago."""
        partition = self.rng.choice(PARTITIONS)
        image = self._older.pop(partition, None)
        if image is None:
            found = self.same(lambda shard: shard.partition_image(partition))
            if found is not None:
                self._older[partition] = found
        else:
            self.same(lambda shard: shard.import_partition(image))

    def go_on_listing(self) -> None:
        """Give the next page of a listing that was begun before the latest changes."""
        partition, epoch = self.rng.choice(PARTITIONS[:2]), self.rng.choice((None, *EPOCHS))
        after = self._listings.get((partition, epoch))
        limit = self.rng.choice((1, 2, 5))
        page = self.same(lambda shard: shard.page(partition, epoch, after=after, limit=limit))
        self._listings[partition, epoch] = None if page.is_last else page.after


def applied_in_slices(
    shard: Shard, given: RecordSet, is_over: Callable[[], bool], passed: list[Any]
) -> Report:
    """Apply *given* until it is used up or damaged; return one report of all slices."""
    tally, redelivered, from_offset = Tally(), 0, shard.position
    entries: list[Entry] = []
    deleted: list[TopicIdPartition] = []
    while True:
        report = shard.apply(given, is_over=is_over, passed=passed)
        tally.add(report.tally)
        entries += report.entries
        deleted += report.deleted
        redelivered += report.redelivered
        if report.complete or report.damage is not None:
            return Report(
                report.partition,
                from_offset,
                report.next_offset,
                report.complete,
                tally,
                redelivered,
                tuple(entries),
                tuple(deleted),
                report.damage,
                report.last_batch,
            )
