"""Question and facts, out of a plan's document or out of its token. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import TopicIdPartition
from spark_tiering.read_plan.fields import facts_fields, question_fields
from spark_tiering.read_plan.json_values import (
    JsonObject,
    PlanFault,
    ReadPlanFault,
    is_int32,
    load,
    refuse,
)
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import QUESTION_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

_QUESTION, _FACTS = question_fields(Question()), facts_fields(QuestionFacts())
"""With nothing said: all names there are, and what they stand for when they are left out."""
_BOUNDS = ("from_offset", "to_offset", "from_time_ms", "to_time_ms")
_RETENTION_LEAST = -1


def asked_of_content(content: bytes) -> tuple[Question, QuestionFacts, str]:
    """
    Question, facts, and the digest of the token behind which it begins, empty where it begins by
    itself: out of the canonical form. Raises `InvalidArgument`.
    """
    try:
        said = load(content, QUESTION_BYTES_MAX)
        fields = JsonObject(said, "question")
        since = fields.text("since") if "since" in said else ""
        known = {*_QUESTION, *_FACTS, "since"}
        if not set(said) <= known:
            refuse(PlanFault.FIELD_WRONG, f"unknown: {sorted(set(said) - known)}")
        question = {**_QUESTION, **_of(said, _QUESTION)}
        question["bounds"] = {**_QUESTION["bounds"], **_mapping(question["bounds"])}
        facts = {**_FACTS, **_of(said, _FACTS)}
        return (
            question_of(JsonObject(question, "question")),
            facts_of(JsonObject(facts, "facts")),
            since,
        )
    except ReadPlanFault as refused:
        msg = f"what the token says was asked: {refused}"
        raise InvalidArgument(msg) from refused


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse(PlanFault.FIELD_WRONG, "bounds: an object")
    found: dict[str, Any] = value
    return found


def _of(said: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: said[name] for name in names if name in said}


def question_of(fields: JsonObject) -> Question:
    fields = JsonObject(fields.fields, "question", _QUESTION)
    names = ("topic", "partition", *_BOUNDS)
    bounds_of = {}
    for one in fields.objects("bounds_of", names):
        bounds_of[one.text("topic"), one.number("partition")] = _bounds(one)
    assigned = []
    for row in fields.rows("assigned"):
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], str):
            refuse(PlanFault.FIELD_WRONG, "question.assigned: a topic and its partitions")
        if not isinstance(row[1], list) or not all(map(is_int32, row[1])):
            refuse(PlanFault.FIELD_WRONG, "question.assigned: partitions")
        assigned.append((row[0], tuple(row[1])))
    return _made(
        lambda: Question(
            fields.texts("topics"),
            fields.texts("without_topics"),
            fields.text("pattern"),
            tuple(assigned),
            _bounds(fields.inner("bounds", _BOUNDS)),
            bounds_of,
            fields.text("prefix"),
            fields.text("location"),
        )
    )


def _bounds(fields: JsonObject) -> RecordBounds:
    return _made(lambda: RecordBounds(*(fields.number_or_none(name) for name in _BOUNDS)))


def facts_of(fields: JsonObject) -> QuestionFacts:
    fields = JsonObject(fields.fields, "facts", _FACTS)
    retention = fields.inner("retention_ms")
    log_starts, histories = {}, {}
    for row in fields.rows("log_starts"):
        partition, start = _of_partition(row)
        if type(start) is not int or start < 0:
            refuse(PlanFault.FIELD_WRONG, "facts.log_starts: a whole number")
        log_starts[partition] = start
    for row in fields.rows("histories"):
        partition, pairs = _of_partition(row)
        histories[partition] = JsonObject({"epochs": pairs}, "facts.histories").pairs("epochs")
    return _made(
        lambda: QuestionFacts(
            {name: retention.number(name, _RETENTION_LEAST) for name in retention.fields},
            log_starts,
            histories,
        )
    )


def _of_partition(row: Any) -> tuple[TopicIdPartition, Any]:
    if not isinstance(row, list) or len(row) != 4 or not is_int32(row[2]):
        refuse(PlanFault.FIELD_WRONG, "facts: topic, topic id, partition and what is known of it")
    topic, topic_id, number, value = row
    fields = JsonObject({"topic": topic, "topic_id": topic_id}, "facts")
    return TopicIdPartition(fields.uuid("topic_id"), fields.text("topic"), number), value


def _made(make: Callable[[], T]) -> T:
    """What *make* makes; what it refuses is a field that is wrong."""
    try:
        return make()
    except InvalidArgument as error:
        raise ReadPlanFault(PlanFault.FIELD_WRONG, str(error)[:600]) from error
