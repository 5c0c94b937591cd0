"""
Two metadata managers compared: equal answers, or a named rule of Kafka's cache for each difference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.outcomes import JAVA_CLASSES, KafkaError, Level
from rlmm.metadata.segment import SegmentMetadata
from rlmm_conformance.answers import ErrorKind, agrees, error_answer
from rlmm_conformance.corpus import Scenario, ScenarioStep
from rlmm_conformance.model import KAFKA
from rlmm_conformance.rules import ConformanceRule, ordered
from rlmm_conformance.runner import model_answers
from rlmm_conformance.steps import (
    AddStep,
    EpochQuery,
    OffsetQuery,
    PartitionCall,
    SegmentFields,
    StepOperation,
    UpdateFields,
    UpdateStep,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from random import Random

    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_conformance.fields import Json
    from rlmm_conformance.rules import Rules
    from rlmm_conformance.steps import Operation
    from tests.kafka.stock_manager import StockPeer

TP = "tp"
PEER_OPS = {
    StepOperation.GET: "lookup",
    StepOperation.NEXT_TXN: "next_with_txn_index",
    StepOperation.HIGHEST: "highest",
    StepOperation.LIST: "list",
    StepOperation.LIST_EPOCH: "list",
    StepOperation.SIZE: "size",
}
KINDS = {JAVA_CLASSES[KafkaError.NOT_FOUND]: ErrorKind.NOT_FOUND}


class Question(NamedTuple):
    op: StepOperation
    epoch: int | None = None
    offset: int | None = None

    def of_peer(self) -> dict[str, Json]:
        given = {"op": PEER_OPS[self.op], "epoch": self.epoch, "offset": self.offset}
        return {name: value for name, value in given.items() if value is not None}

    def of_model(self) -> Operation:
        if self.epoch is None:
            return PartitionCall(self.op, TP)
        if self.offset is None:
            return EpochQuery(self.op, TP, self.epoch)
        return OffsetQuery(self.op, TP, self.epoch, self.offset)


def questions_about(epochs: Iterable[int], last: int, count: int, chance: Random) -> list[Question]:
    asked = [Question(StepOperation.LIST)]
    known = list(epochs)
    for epoch in known:
        asked += [
            Question(op, epoch)
            for op in (StepOperation.LIST_EPOCH, StepOperation.SIZE, StepOperation.HIGHEST)
        ]
    for op in (StepOperation.GET, StepOperation.NEXT_TXN):
        asked += [
            Question(op, chance.choice(known), chance.randrange(last + 1)) for _ in range(count)
        ]
    return asked


@dataclass(slots=True)
class Comparison:
    questions: int = 0
    proved: Counter[str] = field(default_factory=Counter)
    unproved: list[tuple[Question, Json, Json]] = field(default_factory=list)
    latencies_us: list[int] = field(default_factory=list)

    def latency_ms(self, share: float) -> float:
        return sorted(self.latencies_us)[int(share * (len(self.latencies_us) - 1))] / 1_000


def compare(
    stock: StockPeer,
    ours: StockPeer,
    partition: TopicIdPartition,
    events: Collection[Event],
    questions: Sequence[Question],
    found: Comparison,
) -> None:
    asked = [question.of_peer() for question in questions]
    theirs, _ = stock.ask_all(partition, asked)
    own, latencies = ours.ask_all(partition, asked)
    require_same_segments(theirs, own)
    found.questions += len(questions)
    found.latencies_us += [
        spent
        for question, spent in zip(questions, latencies, strict=True)
        if question.op is StepOperation.GET
    ]
    differing = [
        (question, answer_of(question, one), answer_of(question, other))
        for question, one, other in zip(questions, theirs, own, strict=True)
        if one != other
    ]
    if differing:
        judge(events, differing, found)


def judge(
    events: Collection[Event], differing: Sequence[tuple[Question, Json, Json]], found: Comparison
) -> None:
    """Find the smallest set of rules with which the model answers as Kafka does."""
    history = list(operations(events))
    asked = [question.of_model() for question, _, _ in differing]
    steps = tuple(
        ScenarioStep(number, operation, None, KAFKA, None)
        for number, operation in enumerate([*history, *asked], 1)
    )
    scenario = Scenario("", "", Level.CACHE, initialized=True, steps=steps)
    open_ones = dict(enumerate(differing, len(history)))
    for rules in rule_sets():
        answers = model_answers(scenario, rules)
        for at, (question, theirs, own) in list(open_ones.items()):
            if rules == KAFKA and not says(question, answers[at], theirs):
                found.unproved.append((question, theirs, own))
                del open_ones[at]
            elif says(question, answers[at], own):
                found.proved["+".join(ordered(rules))] += 1
                del open_ones[at]
        if not open_ones:
            break
    found.unproved += open_ones.values()
    del found.proved[""]  # orders that Kafka leaves open


def rule_sets() -> Iterator[Rules]:
    """Yield every set of rules, smaller ones first."""
    for count in range(len(ConformanceRule) + 1):
        yield from map(frozenset, combinations(ConformanceRule, count))


def says(question: Question, expected: Json, told: Json) -> bool:
    """Return whether the answer is the model's; of equal start offsets any may come first."""
    if (
        question.op is StepOperation.LIST_EPOCH
        and isinstance(expected, list)
        and isinstance(told, list)
    ):
        members = [one for each in expected for one in (each if isinstance(each, list) else [each])]
        return sorted(map(str, members)) == sorted(map(str, told))
    return agrees(question.op, expected, told)


def answer_of(question: Question, told: dict[str, Json]) -> Json:
    if "error" in told:
        java_class = str(told["error"])
        assert java_class in KINDS, told
        return error_answer(KINDS[java_class])
    value = told["ok"]
    if question.op in {StepOperation.HIGHEST, StepOperation.SIZE} or value is None:
        return value
    if not isinstance(value, list):
        return label(value)
    if question.op is StepOperation.LIST_EPOCH:
        starts = [form["start"] for form in value if isinstance(form, dict)]
        assert starts == sorted(starts, key=int)  # type: ignore[arg-type]
    return [label(one) for one in value]


def label(form: Json) -> str:
    assert isinstance(form, dict)
    return str(form["segment_id"])


def require_same_segments(*answers: Iterable[dict[str, Json]]) -> None:
    known: dict[str, Json] = {}
    for told in answers:
        for answer in told:
            value = answer.get("ok")
            for form in value if isinstance(value, list) else [value]:
                if isinstance(form, dict):
                    assert known.setdefault(label(form), form) == form


def operations(events: Iterable[Event]) -> Iterator[Operation]:
    for event in events:
        if isinstance(event, SegmentMetadata):
            fields = SegmentFields(
                event.id.uuid.hex(),
                event.start_offset,
                event.last_offset,
                event.epochs,
                event.state,
                event.size_bytes,
                event.broker_id,
                event.event_timestamp_ms,
                event.max_timestamp_ms,
                event.custom_metadata,
                event.txn_index_empty,
            )
            yield AddStep(TP, fields)
        else:
            assert isinstance(event, SegmentUpdate), event
            yield UpdateStep(
                TP,
                UpdateFields(
                    event.id.uuid.hex(),
                    event.state,
                    event.broker_id,
                    event.event_timestamp_ms,
                    event.custom_metadata,
                ),
            )
