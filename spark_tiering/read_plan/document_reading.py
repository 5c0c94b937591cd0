"""
A plan out of its document. Pure.

Beyond fields, what makes a plan a plan is held: ranges rise, lie in their segments and in what was
asked, and with the gaps they are that exactly; checksum, sums and token are those of the content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT64_MIN, TopicIdPartition
from spark_tiering.read_plan.document import DOCUMENT_BYTES_MAX, checksum_of
from spark_tiering.read_plan.fields import FORMAT, VERSION, digest_of, sums_of
from spark_tiering.read_plan.json_values import JsonObject, PlanFault, ReadPlanFault, load, refuse
from spark_tiering.read_plan.plan import (
    FrozenPartition,
    FrozenPlan,
    FrozenSegment,
    GapReason,
    LeftOutReason,
    LeftOutSegment,
    PlanGap,
    PlanSourceKind,
)
from spark_tiering.read_plan.planner import partition_order
from spark_tiering.read_plan.question_reading import facts_of, question_of
from spark_tiering.read_plan.tokens import DIGEST_BYTES, TOKEN_CHARACTERS_MAX, parse_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOP = _names(
    "format version token source cluster_id metadata_topic_id metadata_partitions positions "
    "question facts since warnings sums partitions segments checksum"
)
_PARTITION = _names(
    "topic topic_id partition metadata_partition asked tier_first_offset tier_next_offset "
    "tiered_until_ms next_offset epochs gaps left_out"
)
_SEGMENT = _names(
    "topic topic_id partition segment_id start_offset last_offset read_first_offset "
    "read_last_offset size_bytes max_timestamp_ms expires_at_ms txn_index_empty epochs log_key "
    "indexes_key manifest_key"
)
_GAP = ("first_offset", "next_offset", "reason")
_LEFT_OUT = ("segment_id", "start_offset", "last_offset", "size_bytes", "reason")
_KEY_CHARACTERS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class ReadPlanUnreadable:
    """Why something is no plan; *detail* says where, what is, and what should be."""

    fault: PlanFault
    detail: str

    def __str__(self) -> str:
        return f"it is no frozen plan ({self.fault}): {self.detail}"


def parse_plan(content: bytes) -> FrozenPlan | ReadPlanUnreadable:
    """The plan that a document is, however it is laid out; whatever the bytes are."""
    try:
        return plan_of_document(load(content, DOCUMENT_BYTES_MAX))
    except ReadPlanFault as refused:
        return ReadPlanUnreadable(refused.fault, str(refused))


def plan_of_document(loaded: Any) -> FrozenPlan:
    """The plan that objects of JSON are; raises `ReadPlanFault`."""
    # Another version may have other fields: it is named before they are looked at.
    head = JsonObject(loaded, "plan")
    if head.fields.get("format") != FORMAT or head.fields.get("version") != VERSION:
        refuse(PlanFault.OTHER_FORMAT, f"expected {FORMAT} of version {VERSION}")
    fields = JsonObject(loaded, "plan", _TOP)
    try:
        if fields.text("checksum") != checksum_of(loaded):
            refuse(PlanFault.CHANGED, "its checksum is not that of its content")
        plan = _plan(fields)
        _check(plan)
        if loaded["sums"] != sums_of(plan):
            refuse(PlanFault.CHANGED, "its sums are not those of its content")
        _check_token(plan)
    except (InvalidArgument, UnicodeEncodeError, RecursionError) as error:
        raise ReadPlanFault(PlanFault.FIELD_WRONG, str(error)[:600]) from error
    return plan


def _plan(fields: JsonObject) -> FrozenPlan:
    rows: dict[TopicIdPartition, list[FrozenSegment]] = {}
    order: list[TopicIdPartition] = []
    for one in fields.objects("segments", _SEGMENT):
        segment = _segment(one)
        if not order or order[-1] != segment.partition:
            order.append(segment.partition)
        rows.setdefault(segment.partition, []).append(segment)
    partitions = tuple(_partition(one, rows) for one in fields.objects("partitions", _PARTITION))
    if order != [one.partition for one in partitions if one.segments]:
        refuse(PlanFault.CONTRADICTION, "segments are not in the order of their partitions")
    topic_id = fields.value("metadata_topic_id")
    return FrozenPlan(
        fields.text("token", TOKEN_CHARACTERS_MAX),
        fields.member("source", PlanSourceKind),
        fields.text("cluster_id"),
        None if topic_id is None else fields.uuid("metadata_topic_id"),
        fields.number_or_none("metadata_partitions", 0, INT32_MAX),
        dict(fields.pairs("positions", INT32_MAX)),
        question_of(fields.inner("question")),
        facts_of(fields.inner("facts")),
        partitions,
        fields.texts("warnings"),
        fields.text("since", TOKEN_CHARACTERS_MAX),
    )


def _partition(
    fields: JsonObject, rows: dict[TopicIdPartition, list[FrozenSegment]]
) -> FrozenPartition:
    partition = _identity(fields)
    return FrozenPartition(
        partition,
        fields.number_or_none("metadata_partition", 0, INT32_MAX),
        fields.pairs("asked"),
        fields.number_or_none("tier_first_offset"),
        fields.number_or_none("tier_next_offset"),
        fields.number_or_none("tiered_until_ms", INT64_MIN),
        fields.number_or_none("next_offset"),
        fields.pairs("epochs", INT32_MAX, INT64_MIN),
        tuple(rows.get(partition, ())),
        tuple(
            PlanGap(
                one.number("first_offset"),
                one.number_or_none("next_offset"),
                one.member("reason", GapReason),
            )
            for one in fields.objects("gaps", _GAP)
        ),
        tuple(
            LeftOutSegment(
                one.uuid("segment_id"),
                one.number("start_offset"),
                one.number("last_offset"),
                one.number("size_bytes", -(2**31), INT32_MAX),
                one.member("reason", LeftOutReason),
            )
            for one in fields.objects("left_out", _LEFT_OUT)
        ),
    )


def _identity(fields: JsonObject) -> TopicIdPartition:
    return TopicIdPartition(
        fields.uuid("topic_id"), fields.text("topic"), fields.number("partition", 0, INT32_MAX)
    )


def _segment(fields: JsonObject) -> FrozenSegment:
    epochs = tuple(
        (one.number("epoch", -(2**31), INT32_MAX), one.number("first_offset", INT64_MIN))
        for one in fields.objects("epochs", ("epoch", "first_offset"))
    )
    found = FrozenSegment(
        _identity(fields),
        fields.uuid("segment_id"),
        fields.number("start_offset"),
        fields.number("last_offset"),
        fields.number("read_first_offset"),
        fields.number("read_last_offset"),
        fields.number("size_bytes", -(2**31), INT32_MAX),
        fields.number("max_timestamp_ms", INT64_MIN),
        epochs,
        fields.flag("txn_index_empty"),
        fields.text("log_key", _KEY_CHARACTERS_MAX),
        fields.text("indexes_key", _KEY_CHARACTERS_MAX),
        fields.text("manifest_key", _KEY_CHARACTERS_MAX),
        fields.number_or_none("expires_at_ms"),
    )
    if not epochs or list(epochs) != sorted(dict(epochs).items()):
        refuse(PlanFault.FIELD_WRONG, f"{found.id}: leader epochs that do not rise")
    return found


def _check(plan: FrozenPlan) -> None:
    partitions = [one.partition for one in plan.partitions]
    _require(len(set(partitions)) == len(partitions), "a partition stands twice")
    _require(partitions == sorted(partitions, key=partition_order), "partitions are not in order")
    for one in plan.partitions:
        for segment in one.segments:
            _require(
                segment.start_offset
                <= segment.read_first
                <= segment.read_last
                <= segment.last_offset,
                f"{segment.id}: read outside itself",
            )
        read = [(segment.read_first, segment.read_last + 1) for segment in one.segments]
        closed = [
            (gap.first_offset, gap.next_offset) for gap in one.gaps if gap.next_offset is not None
        ]
        is_last = all(gap.next_offset is not None for gap in one.gaps[:-1])
        _require(is_last, f"{one.partition}: a gap without an end that is not the last")
        _require(
            _filled([*read, *closed]) == _filled(one.asked),
            f"{one.partition}: ranges and gaps are not what was asked for",
        )


def _filled(ranges: Iterable[tuple[int, int]]) -> Sequence[tuple[int, int]] | None:
    """All of them joined, rising; None where they overlap or are empty."""
    joined: list[tuple[int, int]] = []
    for first, behind in sorted(ranges):
        if first >= behind or (joined and first < joined[-1][1]):
            return None
        if joined and first == joined[-1][1]:
            joined[-1] = (joined[-1][0], behind)
        else:
            joined.append((first, behind))
    return joined


def _check_token(plan: FrozenPlan) -> None:
    token = parse_token(plan.token)
    _require(
        token.content_digest == digest_of(plan)[:DIGEST_BYTES],
        "its token is another plan's",
        PlanFault.CHANGED,
    )


def _require(is_so: bool, otherwise: str, fault: PlanFault = PlanFault.CONTRADICTION) -> None:
    if not is_so:
        refuse(fault, otherwise)
