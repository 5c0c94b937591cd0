"""Questions to a loaded set of shards, and their speed: look-ups, sizes, listings, state images."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.history import RECORDS_PER_SET, record_sets
from bench.measure import cpu_ns
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.ids import TopicIdPartition

_SAMPLED_PARTITIONS = 1000
_SAMPLED_SEGMENTS = 20
_HOT_KEYS = 200
_HOT_ROUNDS = 100
_EVENTS_PER_LIVE_SEGMENT = 2.45
_BILLION = 1_000_000_000

Question = tuple[PythonShard, "TopicIdPartition", int, int]
"""Shard, user partition, leader epoch, offset."""


def ask(shards: list[PythonShard]) -> list[Figure]:
    rng = Random(7)
    random = _questions(shards, rng)
    hot = rng.sample(random, min(_HOT_KEYS, len(random))) * _HOT_ROUNDS
    missing = [(shard, user, epoch, 2**62) for shard, user, epoch, _ in random]
    costs = {
        "segment_for, at random": _cost(random, _segment_for, found=True),
        f"segment_for, {_HOT_KEYS} hot keys": _cost(hot, _segment_for, found=True),
        "segment_for, nothing there": _cost(missing, _segment_for, found=False),
        "highest_offset, at random": _cost(random, _highest_offset, found=True),
        "size_of_epoch, at random": _cost(random, _size_of_epoch, found=True),
    }
    found: list[Figure] = []
    for name, cost in costs.items():
        found += Figure(name, _BILLION / cost, "per s"), Figure(name, cost, "ns")
    return found


def _questions(shards: list[PythonShard], rng: Random) -> list[Question]:
    users = [(shard, user) for shard in shards for user in shard.partitions()]
    found: list[Question] = []
    for shard, user in rng.sample(users, min(_SAMPLED_PARTITIONS, len(users))):
        segments = shard.segments(user)
        for segment in rng.sample(segments, min(_SAMPLED_SEGMENTS, len(segments))):
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
                epoch, first = segment.epochs[-1]
                found.append((shard, user, epoch, rng.randint(first, segment.last_offset)))
    rng.shuffle(found)
    return found


def _segment_for(question: Question) -> object:
    shard, user, epoch, offset = question
    return shard.segment_for(user, epoch, offset)


def _highest_offset(question: Question) -> object:
    shard, user, epoch, _ = question
    return shard.highest_offset(user, epoch)


def _size_of_epoch(question: Question) -> object:
    shard, user, epoch, _ = question
    return shard.size_of_epoch(user, epoch)


def _cost(questions: list[Question], answer: Callable[[Question], object], *, found: bool) -> float:
    """Return nanoseconds per question, of which the call of *answer* is about a twentieth."""
    begin = cpu_ns()
    answers = [answer(question) for question in questions]
    spent = cpu_ns() - begin
    wrong = sum((each is not None) != found for each in answers)
    assert wrong == 0, f"{wrong} of {len(answers)} answers are wrong"
    return spent / len(questions)


def list_large_partition(segment_count: int) -> list[Figure]:
    shard = PythonShard(0)
    sets = int(segment_count * _EVENTS_PER_LIVE_SEGMENT / RECORDS_PER_SET) + 1
    for record_set in islice(record_sets(1, metadata_partitions=1), sets):
        shard.apply(record_set)
    user = next(shard.partitions())
    begin = cpu_ns()
    segments = shard.segments(user)
    spent = cpu_ns() - begin
    assert len(segments) >= segment_count, len(segments)
    return [
        Figure("segments listed", len(segments), "segments"),
        Figure("the whole listing", spent / 1e6, "ms"),
        Figure("listing", spent / len(segments), "ns/segment"),
    ]


def export_and_import(shards: list[PythonShard]) -> list[Figure]:
    live = sum(sum(shard.segment_counts()) for shard in shards)
    begin = cpu_ns()
    images = [shard.image() for shard in shards]
    exported = cpu_ns() - begin
    imported = 0
    for shard, image in zip(shards, images, strict=True):
        begin = cpu_ns()
        restored = PythonShard.from_image(image)
        imported += cpu_ns() - begin
        assert restored.position == shard.position
    return [
        Figure("state images, export", exported / live / 1000, "s/million segments"),
        Figure("state images, import", imported / live / 1000, "s/million segments"),
        Figure("state images, size", sum(map(len, images)) / live, "B/live segment"),
    ]
