"""Verification of clusters with failed copies, rolls and retention gives notes at most."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.findings.finding import Severity
from rlmm.inspection.cluster_facts import PartitionOffsets
from rlmm.inspection.verify import broken_rules, verify_partition
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentState
from tests.support.builders import delete_finished, delete_started, finished, started, tp
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from rlmm.findings.finding import Finding
    from rlmm.metadata.events import Event
    from rlmm.metadata.segment import SegmentMetadata

BROKERS = 3


@dataclass
class Healthy:
    shard: ChosenShard = field(default_factory=lambda: ChosenShard(0))
    end: int = 0
    log_start: int = 0
    leader: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    rolled: list[list[int]] = field(default_factory=lambda: [[0] for _ in range(BROKERS)])
    events: list[Event] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    # ----------------------------------------------------------------------- what happens

    def write(self, count: int) -> None:
        self.end += count
        for broker, begins in enumerate(self.rolled):
            at = self.end - (count * (broker + 1)) % 5
            if count % (broker + 2) == 0 and begins[-1] < at:
                begins.append(at)

    def change_leader(self, number: int) -> None:
        self.leader = number % BROKERS
        epoch = self.epochs[-1][0] + 1
        self.epochs = [one for one in self.epochs if one[1] < self.end] + [(epoch, self.end)]

    def copy(self, number: int) -> None:
        begins = self.rolled[self.leader]
        at = bisect_right(begins, max(self._copied() + 1, self.log_start)) - 1
        if at + 1 >= len(begins):
            return  # the active one
        base, last = begins[at], begins[at + 1] - 1
        outcome = number % 6
        if outcome == 0:
            self._start(base, last)
        elif outcome == 1:
            copy = self._start(base, last)
            self._add(delete_started(copy, event_timestamp_ms=self._now))
            self._add(delete_finished(copy, event_timestamp_ms=self._now))
        else:
            for _ in range(2 if outcome == 2 else 1):
                self._add(finished(self._start(base, last), event_timestamp_ms=self._now))

    def delete_records(self, number: int) -> None:
        self._begin_at(self.log_start + number % (self.end - self.log_start + 1))

    def retain(self, number: int) -> None:
        due: list[SegmentMetadata] = []
        breached, log_start = number % 4, self.log_start
        for epoch, _ in self.epochs:
            for one in self.shard.segments_of_epoch(tp(), epoch):
                if one in due:
                    continue
                if one.last_offset >= self.log_start:
                    is_kept = one.state is not SegmentState.COPY_SEGMENT_FINISHED
                    if is_kept or not breached or one.last_offset > self._copied():
                        break
                    breached -= 1
                    log_start = max(log_start, one.last_offset + 1)
                due.append(one)
            else:
                continue
            break
        due += self._of_epochs_that_are_gone(due)
        self._begin_at(log_start)
        for count, one in enumerate(due):
            self._add(delete_started(one.id, event_timestamp_ms=self._now))
            if number % 5 == 0 and count == number % 3:
                return
            self._add(delete_finished(one.id, event_timestamp_ms=self._now))

    def _of_epochs_that_are_gone(self, due: list[SegmentMetadata]) -> list[SegmentMetadata]:
        first = self.epochs[0][0]
        return [
            one
            for one in self.shard.segments(tp())
            if all(epoch < first for epoch, _ in one.epochs) and one not in due
        ]

    # ------------------------------------------------------------------------------ helpers

    @property
    def _now(self) -> int:
        return len(self.events)

    def _copied(self) -> int:
        behind = self.end
        for epoch, first in reversed(self.epochs):
            highest = self.shard.highest_offset(tp(), epoch)
            if highest is not None:
                return min(highest, behind - 1)
            behind = first
        return -1

    def _begin_at(self, log_start: int) -> None:
        self.log_start = max(self.log_start, log_start)
        at = bisect_right([first for _, first in self.epochs], self.log_start) - 1
        epoch, first = self.epochs[at]
        self.epochs[: at + 1] = [(epoch, max(first, self.log_start))]

    def _start(self, base: int, last: int) -> SegmentId:
        behind = [(epoch, first) for epoch, first in self.epochs if first <= last]
        at = max(bisect_right([first for _, first in behind], base) - 1, 0)
        epochs = {epoch: max(first, base) for epoch, first in behind[at:]}
        copy = SegmentId(tp(), Uuid.of(7, len(self.events)))
        self._add(
            started(copy, base, last, epochs, broker_id=self.leader, event_timestamp_ms=self._now)
        )
        return copy

    def _add(self, event: Event) -> None:
        self.shard.apply_event(event, len(self.events))
        self.events.append(event)
        self.look()

    def look(self) -> None:
        local = max(self.log_start, min(self._copied() + 1, self.end))
        ends = PartitionOffsets(earliest=self.log_start, earliest_local=local, latest=self.end)
        found = verify_partition(self.shard, tp(), ends)
        if not self._has_leftovers():
            found += verify_partition(self.shard, tp(), None)
        self.seen |= {one.kind.code for one in found}
        assert worse_than_notes(found) == [], (self.log_start, self.end, self.epochs)

    def _has_leftovers(self) -> bool:
        return any(one.last_offset < self.log_start for one in self.shard.segments(tp()))


def worse_than_notes(found: list[Finding]) -> list[str]:
    return [
        f"{one.kind.code} {one.detail}" for one in found if one.kind.severity > Severity.NOTE
    ]  # fmt: skip


ACTIONS = {
    "write": Healthy.write,
    "copy": Healthy.copy,
    "lead": Healthy.change_leader,
    "delete": Healthy.delete_records,
    "retain": Healthy.retain,
}
OFTEN = ["write"] * 5 + ["copy"] * 5 + ["lead"] * 2 + ["retain"] * 2 + ["delete"]


def played(steps: list[tuple[str, int]]) -> Healthy:
    cluster = Healthy()
    for name, number in steps:
        ACTIONS[name](cluster, number)
    return cluster


@given(
    st.lists(st.tuples(st.sampled_from(OFTEN), st.integers(1, 60)), min_size=20, max_size=120)
)  # fmt: skip
def test_verify_of_a_healthy_history_has_notes_at_most(steps: list[tuple[str, int]]) -> None:
    """The verification has only notes after every event."""
    assert broken_rules(played(steps).shard) == []


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        # A new leader's segment holds all of the old one's last, and begins before it.
        ([("write", 36), ("copy", 3), ("write", 36), ("copy", 3), ("lead", 1), ("write", 30),
          ("write", 30), ("copy", 3)], "OVERLAP"),
        # Records are deleted inside a segment that is copied afterwards.
        ([("write", 12), ("copy", 3), ("write", 11), ("delete", 15), ("write", 30),
          ("copy", 3)], "BEGINS-LATE"),
    ],
    ids=["change-of-leaders", "deleted-records"],
)  # fmt: skip
def test_verify_of_a_healthy_cluster_gives_a_note(steps: list[tuple[str, int]], code: str) -> None:
    """Verify reports no fault in a healthy history, at most a note."""
    assert code in played(steps).seen
