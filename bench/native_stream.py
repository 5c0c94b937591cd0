"""
The one history that every contender of `bench native` gets: record sets of about a megabyte in log
order, in a file that Python and Java read, with the user partitions and the questions beside it.

Sets end at each of the given numbers of events, so that a shorter history is the beginning of the
same file. Partial sets are rare: fifty at each of these numbers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, BinaryIO

from bench.history import METADATA_PARTITIONS, batches_of, history_partitions, written_events
from rlmm.metadata.segment import SegmentState
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.python_shard import PythonShard

EVENTS_PER_SET = {500: 9_500, 1: 6_000}
"""By the records of a batch: about a megabyte."""
NOT_FOUND = 2**40
"""An offset that no segment reaches."""
_FOUND = 0.9
_SET = struct.Struct(">iii")
_PARTITION = struct.Struct(">16siH")
_QUESTION = struct.Struct(">iiq")


@dataclass(frozen=True, slots=True)
class Question:
    user: int
    """Its place among the user partitions."""
    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Stream:
    folder: Path
    user_partitions: int
    topics: int

    def sets_file(self, per_batch: int) -> Path:
        return self.folder / f"sets-{per_batch}"

    @property
    def partitions_file(self) -> Path:
        return self.folder / "partitions"

    @property
    def questions_file(self) -> Path:
        return self.folder / "questions"

    def write(self, per_batch: int, marks: Sequence[int]) -> None:
        """Write the sets, unless a run before has written as many; end sets at each of *marks*."""
        path = self.sets_file(per_batch)
        done = path.with_suffix(".done")
        if done.is_file() and set(marks) <= set(map(int, done.read_text().split())):
            return
        done.unlink(missing_ok=True)
        events = written_events(self.user_partitions, topics=self.topics)
        waiting: list[list[bytes]] = [[] for _ in range(METADATA_PARTITIONS)]
        ends = [0] * METADATA_PARTITIONS
        written = 0
        with path.open("wb") as file:
            for mark in sorted(marks):
                for partition, value in islice(events, mark - written):
                    values = waiting[partition]
                    values.append(value)
                    if len(values) == EVENTS_PER_SET[per_batch]:
                        _write_set(file, partition, values, ends, per_batch)
                for partition, values in enumerate(waiting):
                    if values:
                        _write_set(file, partition, values, ends, per_batch)
                written = mark
        done.write_text(" ".join(map(str, sorted(marks))))

    def partitions(self) -> list[TopicIdPartition]:
        made = history_partitions(self.user_partitions, topics=self.topics)
        return [each.id for each in made]

    def sets(self, per_batch: int, events: int) -> Iterator[RecordSet]:
        """Yield the sets of the first *events* events, one of the marks."""
        found = 0
        with self.sets_file(per_batch).open("rb") as file:
            while found < events:
                partition, count, size = _SET.unpack(file.read(_SET.size))
                found += count
                yield RecordSet(partition, file.read(size))
        assert found == events, f"{events:,} events are no end of a set"

    def write_questions(self, shards: Sequence[PythonShard], count: int) -> None:
        """Write questions at random over all segments, of which nine of ten are answered."""
        rng = Random(7)
        made = history_partitions(self.user_partitions, topics=self.topics)
        of_each = -(-count // len(made))
        found: list[Question] = []
        for user, known in enumerate(made):
            segments = [
                one
                for one in shards[known.metadata_partition].segments(known.id)
                if one.state is SegmentState.COPY_SEGMENT_FINISHED
            ]
            for segment in rng.choices(segments, k=of_each) if segments else ():
                epoch, first = segment.epochs[-1]
                offset = rng.randint(first, segment.last_offset)
                found.append(Question(user, epoch, offset if rng.random() < _FOUND else NOT_FOUND))
        rng.shuffle(found)
        packed = (_QUESTION.pack(one.user, one.epoch, one.offset) for one in found[:count])
        self.questions_file.write_bytes(b"".join(packed))

    def questions(self) -> list[Question]:
        return [Question(*each) for each in _QUESTION.iter_unpack(self.questions_file.read_bytes())]


def write_partitions(path: Path, partitions: Sequence[TopicIdPartition]) -> None:
    with path.open("wb") as file:
        for each in partitions:
            name = each.topic.encode()
            file.write(_PARTITION.pack(each.topic_id, each.partition, len(name)) + name)


def _write_set(
    file: BinaryIO, partition: int, values: list[bytes], ends: list[int], per_batch: int
) -> None:
    data = batches_of(values, ends[partition], per_batch)
    file.write(_SET.pack(partition, len(values), len(data)) + data)
    ends[partition] += len(values)
    values.clear()
