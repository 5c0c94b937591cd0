"""Question and facts as they stand in a plan's document and, shorter, in its token. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX, TopicIdPartition, Uuid
from spark_tiering.layout.strict_json import (
    Count32,
    Count64,
    JsonFault,
    load_json,
    plain_values,
    typed_value,
)
from spark_tiering.read_plan.plan import Pair, ReadPlanRow, Text
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import QUESTION_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping


class BoundsFields(ReadPlanRow, frozen=True):
    from_offset: Count64 | None
    to_offset: Count64 | None
    from_time_ms: Count64 | None
    to_time_ms: Count64 | None


class PartitionBoundsFields(ReadPlanRow, frozen=True):
    topic: Text
    partition: Count64
    from_offset: Count64 | None
    to_offset: Count64 | None
    from_time_ms: Count64 | None
    to_time_ms: Count64 | None


class QuestionFields(ReadPlanRow, frozen=True):
    topics: tuple[str, ...]
    without_topics: tuple[str, ...]
    pattern: Text
    assigned: tuple[tuple[str, tuple[Count32, ...]], ...]
    bounds: BoundsFields
    bounds_of: tuple[PartitionBoundsFields, ...]
    prefix: Text
    location: Text

    @classmethod
    def of(cls, question: Question) -> QuestionFields:
        return cls(
            question.topics,
            question.without_topics,
            question.pattern,
            question.assigned,
            BoundsFields(*_bounds(question.bounds)),
            tuple(
                PartitionBoundsFields(topic, partition, *_bounds(bounds))
                for (topic, partition), bounds in sorted(question.bounds_of.items())
            ),
            question.prefix,
            question.location,
        )

    def question(self) -> Question:
        return Question(
            self.topics,
            self.without_topics,
            self.pattern,
            self.assigned,
            RecordBounds(*msgspec.structs.astuple(self.bounds)),
            {
                (topic, partition): RecordBounds(*bounds)
                for topic, partition, *bounds in map(msgspec.structs.astuple, self.bounds_of)
            },
            self.prefix,
            self.location,
        )


class FactsFields(ReadPlanRow, frozen=True):
    retention_ms: dict[str, Annotated[int, msgspec.Meta(ge=-1, le=INT64_MAX)]]
    log_starts: tuple[tuple[Text, Uuid, Count32, Annotated[int, msgspec.Meta(ge=0)]], ...]
    histories: tuple[tuple[Text, Uuid, Count32, tuple[Pair, ...]], ...]

    @classmethod
    def of(cls, facts: QuestionFacts) -> FactsFields:
        return cls(
            dict(sorted(facts.retention_ms.items())),
            tuple(
                (one.topic, one.topic_id, one.partition, offset)
                for one, offset in sorted(facts.log_starts.items(), key=lambda pair: pair[0].key)
            ),
            tuple(
                (one.topic, one.topic_id, one.partition, history)
                for one, history in sorted(facts.histories.items(), key=lambda pair: pair[0].key)
            ),
        )

    def facts(self) -> QuestionFacts:
        return QuestionFacts(
            self.retention_ms,
            {TopicIdPartition(of, topic, number): at for topic, of, number, at in self.log_starts},
            {TopicIdPartition(of, topic, number): at for topic, of, number, at in self.histories},
        )


def _bounds(bounds: RecordBounds) -> tuple[int | None, ...]:
    return bounds.from_offset, bounds.to_offset, bounds.from_time_ms, bounds.to_time_ms


_QUESTION: dict[str, Any] = plain_values(QuestionFields.of(Question()))
_FACTS: dict[str, Any] = plain_values(FactsFields.of(QuestionFacts()))
"""Every field with the value that stands for it where a token leaves it out."""


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def asked_content(question: Question, facts: QuestionFacts, since: str) -> bytes:
    """Return question and facts in canonical form: maps sorted, fields without a value left out."""
    fields = [plain_values(QuestionFields.of(question)), plain_values(FactsFields.of(facts))]
    asked: dict[str, Any] = {**_without_empty(fields[0]), **_without_empty(fields[1])}
    if since:
        asked["since"] = hashlib.sha256(since.encode()).hexdigest()
    return compact(asked)


def asked_of_content(content: bytes) -> tuple[Question, QuestionFacts, str]:
    """Return question, facts, digest of the earlier token; raises `InvalidArgument`."""
    try:
        asked = load_json(content, bytes_max=QUESTION_BYTES_MAX)
        since = typed_value(asked, _Since, "question").since
        _require_known(asked, {*_QUESTION, *_FACTS, "since"})
        question = {**_QUESTION, **{name: asked[name] for name in _QUESTION if name in asked}}
        if isinstance(question["bounds"], dict):
            question["bounds"] = {**_QUESTION["bounds"], **question["bounds"]}
        facts = {**_FACTS, **{name: asked[name] for name in _FACTS if name in asked}}
        return (
            typed_value(question, QuestionFields, "question").question(),
            typed_value(facts, FactsFields, "facts").facts(),
            since,
        )
    except (JsonFault, InvalidArgument) as error:
        msg = f"what the token says was asked: {error}"
        raise InvalidArgument(msg) from error


class _Since(msgspec.Struct):
    since: Text = ""


def _require_known(fields: Mapping[str, Any], known: set[str]) -> None:
    if not set(fields) <= known:
        msg = f"unknown: {sorted(set(fields) - known)}"
        raise InvalidArgument(msg[:600])


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    inner = {k: _without_empty(one) if isinstance(one, dict) else one for k, one in fields.items()}
    return {key: one for key, one in inner.items() if one not in (None, "", (), {})}
