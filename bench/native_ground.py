"""What the sections of `bench native` share: sizes, the history, Kafka's classes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.native_engines import apply_all, empty_shards
from bench.native_jvm import KafkaClasses, kafka_classes
from bench.native_stream import write_partitions
from rlmm.base.native_core import ShardEngine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.figures import Run
    from bench.native_engines import Cost
    from bench.native_stream import Stream

ENGINES = (ShardEngine.PYTHON, ShardEngine.NATIVE)
BATCHES = (500, 1)
"""Records of a batch."""


@dataclass(frozen=True, slots=True)
class Sizes:
    events: int
    """Of the history that leaves a million live segments."""
    grown: int
    """Of the same history when it has left twice as many."""
    few: int
    many: int
    """What an event costs is compared at these two."""
    start_events: int
    """Behind the start with ten times the segments, in a log of its own; 0 for none."""
    user_partitions: int
    topics: int
    questions: int
    hot: int
    followed: int
    """Events of the topic that a service and others read from a broker; 0 for no broker."""
    heap_mb: int
    """Of Kafka's classes while memory is measured."""
    rounds: int
    passes: int
    pass_ms: int
    idle_s: float

    def shorter(self, share: float) -> Sizes:
        names = "events", "grown", "many", "start_events", "user_partitions", "followed"
        return replace(self, **{name: int(getattr(self, name) * share) for name in names})


FULL = Sizes(
    events=2_444_444, grown=4_888_888, few=100_000, many=10_000_000, start_events=24_444_444,
    user_partitions=5_000, topics=500, questions=200_000, hot=2_048, followed=5_000_000,
    heap_mb=2_048, rounds=3, passes=5, pass_ms=2_000, idle_s=2.0,
)  # fmt: skip
QUICK = Sizes(
    events=8_000, grown=16_000, few=2_000, many=16_000, start_events=0, user_partitions=40,
    topics=4, questions=500, hot=64, followed=0, heap_mb=128, rounds=1, passes=1, pass_ms=60,
    idle_s=0.1,
)  # fmt: skip


@dataclass
class Ground:
    run: Run
    sizes: Sizes
    place: Path
    stream: Stream
    without_jvm: str = ""
    """Why Kafka's classes are not there; empty where they are."""
    _jvm: KafkaClasses | None = field(default=None, repr=False)

    @property
    def jvm(self) -> KafkaClasses | None:
        if self._jvm is None and not self.without_jvm:
            self._jvm, self.without_jvm = kafka_classes()
        if self._jvm is None:
            self.run.note(f"without Kafka's classes: {self.without_jvm}")
        return self._jvm

    def with_sets(self, per_batch: int) -> Stream:
        sizes = self.sizes
        marks = [sizes.events]
        if per_batch != 1:
            marks += [sizes.few, sizes.grown, sizes.many]
            marks += [sizes.start_events] * bool(sizes.start_events)
        self.stream.write(per_batch, sorted(set(marks)))
        write_partitions(self.stream.partitions_file, self.stream.partitions())
        return self.stream

    def with_questions(self) -> Stream:
        stream = self.with_sets(BATCHES[0])
        if not stream.questions_file.is_file():
            self.run.apart(write_questions, stream, self.sizes.events, self.sizes.questions)
        return stream

    def rates(self, name: str, costs: Sequence[Cost]) -> float:
        """State what *costs* come to, by thread and by process; return the best by thread."""
        for kind in ("thread", "process"):
            found = sorted(one.events / one.seconds(kind) / 1e6 for one in costs)
            unit = f"M/{kind} CPU s"
            self.run.add(Figure(f"{name}, best", found[-1], unit))
            self.run.add(Figure(f"{name}, median", statistics.median(found), unit))
        return best(costs, "thread")


def best(costs: Sequence[Cost], kind: str) -> float:
    """Return the events a second of the best round: other work only ever slows one down."""
    return max(one.events / one.seconds(kind) for one in costs)


def write_questions(stream: Stream, events: int, count: int) -> None:
    shards = empty_shards(ShardEngine.AUTO)
    apply_all(shards, stream.sets(BATCHES[0], events))
    stream.write_questions(shards, count)
