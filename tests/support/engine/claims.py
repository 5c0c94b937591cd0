"""
Claims: the acknowledgements and answers of an engine, compared with its log. A claim is one line of
text, for a pipe. Each event carries its own number as its time: `stamp`. The log is replayed event
by event, and each claim compared with the state at its position.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import UnknownPartition
from rlmm.gate.admission import require_known
from rlmm.metadata.decoding import decode
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.verdicts import Applied, Undecodable
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.gate.reads import PartitionQueries
    from rlmm.metadata.events import Event
    from rlmm.metadata.shard import Shard

Stored = dict[int, list[tuple[int, bytes]]]
"""Metadata partition to its records, offset and value, in order."""


class Question(NamedTuple):
    kind: str
    writer: int
    generation: int
    epoch: int = 0
    offset: int = 0


class Wrote(NamedTuple):
    place: int
    offset: int
    stamp: int
    verdict: str


class Answered(NamedTuple):
    """The answer at *position*; *floor* is the lowest position allowed."""

    place: int
    position: int
    floor: int
    digest: str
    question: Question


def user_partition(writer: int, generation: int) -> TopicIdPartition:
    return TopicIdPartition(Uuid.of(1 + writer, generation), f"topic-{writer}", writer)


def digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=12).hexdigest()


def answer_from(source: PartitionQueries | Shard, question: Question) -> str:
    partition = user_partition(question.writer, question.generation)
    try:
        if isinstance(source, ChosenShard) and question.kind != "partition_delete":
            require_known(source, partition)
        return digest(_ask(source, question, partition))
    except UnknownPartition as error:
        return digest(type(error).__name__)


def _ask(
    source: PartitionQueries | Shard, question: Question, partition: TopicIdPartition
) -> object:
    match question.kind:
        case "segments":
            return source.segments(partition)
        case "segments_of_epoch":
            return source.segments_of_epoch(partition, question.epoch)
        case "segment_for":
            return source.segment_for(partition, question.epoch, question.offset)
        case "highest_offset":
            return source.highest_offset(partition, question.epoch)
        case "size":
            return source.size(partition)
        case _:
            if isinstance(source, ChosenShard) and not source.knows(partition):
                raise UnknownPartition(str(partition))
            return source.partition_delete(partition)


KINDS = (
    "segments",
    "segments_of_epoch",
    "segment_for",
    "highest_offset",
    "size",
    "partition_delete",
)


def line_of(claim: Wrote | Answered) -> str:
    words: list[object] = ["wrote" if isinstance(claim, Wrote) else "answered"]
    for part in claim:
        words.extend(part if isinstance(part, Question) else (part,))
    return " ".join(map(str, words))


def parse(line: str) -> Wrote | Answered:
    kind, *words = line.split()
    if kind == "wrote":
        place, offset, stamp = map(int, words[:3])
        return Wrote(place, offset, stamp, words[3])
    place, position, floor = map(int, words[:3])
    return Answered(place, position, floor, words[3], Question(words[4], *map(int, words[5:])))


@dataclass(slots=True)
class Claims:
    wrote: list[Wrote] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    tops: Counter[int] = field(default_factory=Counter)
    """Metadata partition -> the offset behind the last acknowledged event."""

    def add(self, claim: Wrote | Answered) -> None:
        """Add a claim. An answer is never older than an event that was acknowledged before."""
        if isinstance(claim, Wrote):
            self.wrote.append(claim)
            self.tops[claim.place] = max(self.tops[claim.place], claim.offset + 1)
        else:
            self.answered.append(claim)

    def add_own(self, claim: Wrote | Answered) -> None:
        if isinstance(claim, Answered):
            claim = claim._replace(floor=max(claim.floor, self.tops[claim.place]))
        self.add(claim)


@dataclass(frozen=True, slots=True)
class Judgement:
    shards: Mapping[int, ChosenShard]
    verdicts: Mapping[tuple[int, int], str]
    stamps: Mapping[int, Sequence[tuple[int, int]]]
    """Stamp of an event -> where it is stored."""
    events: int
    false_answers: Sequence[Answered]


def verdict_name(verdict: object) -> str:
    return type(verdict).__name__.lower()


def judge(stored: Stored, answered: Iterable[Answered]) -> Judgement:
    """Replay the stored records, and compare each answer with the state at its position."""
    asked: dict[int, dict[int, list[Answered]]] = defaultdict(lambda: defaultdict(list))
    for claim in answered:
        asked[claim.place][claim.position].append(claim)
    shards: dict[int, ChosenShard] = {}
    verdicts: dict[tuple[int, int], str] = {}
    stamps: dict[int, list[tuple[int, int]]] = defaultdict(list)
    wrong: list[Answered] = []
    for place, records in stored.items():
        shard = shards[place] = ChosenShard(place)
        wrong += _false(shard, asked[place].pop(0, []))
        for offset, value in records:
            event = decode(value)
            assert not isinstance(event, Undecodable), (place, offset, event)
            verdicts[place, offset] = verdict_name(shard.apply_event(event, offset))
            stamps[stamp_of(event)].append((place, offset))
            wrong += _false(shard, asked[place].pop(offset + 1, []))
        # An answer from a position that the log never came to is false, whatever it says.
        wrong += [claim for claims in asked[place].values() for claim in claims]
    return Judgement(shards, verdicts, stamps, len(verdicts), wrong)


def stamp_of(event: Event) -> int:
    return event.event_timestamp_ms


def _false(shard: ChosenShard, claims: Iterable[Answered]) -> list[Answered]:
    return [
        claim
        for claim in claims
        if claim.position < claim.floor or claim.digest != answer_from(shard, claim.question)
    ]


def check(claims: Claims, judgement: Judgement, *, repeats_max: int) -> None:
    """Acknowledged events are stored, applied once with that verdict, and answers are true."""
    lost = [
        claim
        for claim in claims.wrote
        if (claim.place, claim.offset) not in judgement.stamps.get(claim.stamp, ())
    ]
    assert not lost, f"{len(lost)} acknowledged events are lost: {lost[:5]}"
    wrong = [
        claim
        for claim in claims.wrote
        if judgement.verdicts[claim.place, claim.offset] != claim.verdict
    ]
    assert not wrong, f"{len(wrong)} verdicts are wrong: {wrong[:5]}"
    places = Counter((claim.place, claim.offset) for claim in claims.wrote)
    twice = [place for place, times in places.items() if times > 1]
    assert not twice, f"{len(twice)} offsets were acknowledged twice: {twice[:5]}"
    applied = verdict_name(Applied())
    for stamp, found in judgement.stamps.items():
        times = sum(judgement.verdicts[place] == applied for place in found)
        assert times <= 1, f"event {stamp} is applied {times} times: {found}"
        assert len(found) <= repeats_max, f"event {stamp} is stored at {found}"
    assert not judgement.false_answers, (
        f"{len(judgement.false_answers)} answers are false: {judgement.false_answers[:5]}"
    )
