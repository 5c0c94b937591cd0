"""
A plan from its document. Pure.

Nothing of a document is believed that could be wrong: sums, costs of the whole and fingerprint are
computed anew, and what differs is refused. So a plan that was edited is none, and neither is one
that would finish copies out of order, or over each other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MIN, SegmentId, TopicIdPartition
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.coverage import EpochSpan
from spark_tiering.copy_plan.document import FORMAT, VERSION, fields_of
from spark_tiering.copy_plan.fields import NotThisForm, PlanFields, load
from spark_tiering.copy_plan.plan import (
    CopyPlan,
    LeftOutRun,
    OpenCopy,
    PartitionCopyPlan,
    PlannedCopy,
    PlannedEnd,
    SourceGap,
    partition_order,
)
from spark_tiering.copy_plan.reasons import (
    CopyMode,
    EndReason,
    LeftOpen,
    NotCopiedReason,
    SegmentAction,
)
from spark_tiering.copy_plan.rules import Budgets, Cost, PlanRules, RequestCosts, SegmentSelection
from spark_tiering.layout.object_names import main_key

if TYPE_CHECKING:
    from collections.abc import Iterable


def _names(text: str, *others: Iterable[str]) -> frozenset[str]:
    return frozenset(text.split()).union(*others)


_TOP = _names("format version fingerprint mode madeAtMs sums rules metadata partitions")
_RULES = _names(
    "brokerId prefix topics withoutTopics ageMsMin keptLocalBytes withCompacted "
    "bytesMax objectsMax requestsMax multipartAboveBytes partBytes checksOfObject"
)
_METADATA = _names("clusterId topicId partitions positions")
_PARTITION = _names(
    "topic topicId partition metadataPartition imageDigest isTiered logStart "
    "ends copies leftOpen leftOut gaps"
)
_COSTS = ("bytes", "objects", "requests")
_COPY = _names(
    "turn action start last id logBytes indexesBytes maxTimestampMs expiresAtMs txnIndexEmpty "
    "epochs lacking",
    _COSTS,
)
_END = _names("id start last state reason customMetadata", _COSTS)
_OPEN = _names("id start last state brokerId reason")
_LEFT_OUT = _names("first next segments bytes reason detail")
_GAP = _names("first next isLost")


@dataclass(frozen=True, slots=True)
class CopyPlanUnreadable:
    """Why a document is no plan; *detail* says where, what is, and what should be."""

    detail: str

    def __str__(self) -> str:
        return f"it is no plan: {self.detail}"


def parse_plan(content: bytes) -> CopyPlan | CopyPlanUnreadable:
    """The plan that a document is, however it is laid out; whatever the bytes are."""
    try:
        loaded = load(content)
        plan = _plan(loaded)
        expected = fields_of(plan)
        if loaded["fingerprint"] != expected["fingerprint"]:
            return CopyPlanUnreadable(
                f"its content has the fingerprint {expected['fingerprint']}: it was changed"
            )
        if json.dumps(loaded, sort_keys=True) != json.dumps(expected, sort_keys=True):
            return CopyPlanUnreadable("its sums are not those of its content")
    except (NotThisForm, InvalidArgument, RecursionError) as error:
        return CopyPlanUnreadable(str(error)[:600])
    return plan


def _plan(loaded: object) -> CopyPlan:
    # Another version may have other fields: it is named before they are looked at.
    head = PlanFields(loaded, "plan")
    if head.value("format") != FORMAT or head.number("version") != VERSION:
        msg = f"expected {FORMAT} of version {VERSION}"
        raise NotThisForm(msg)
    fields = PlanFields(loaded, "plan", _TOP)
    fields.text("fingerprint")
    metadata = fields.inner("metadata", _METADATA)
    positions = metadata.numbers("positions", 2)
    partitions = tuple(_partition(one) for one in fields.rows("partitions", _PARTITION))
    plan = CopyPlan(
        _rules(fields, fields.inner("rules", _RULES)),
        metadata.text("clusterId"),
        metadata.uuid("topicId"),
        metadata.number("partitions", 1, INT32_MAX),
        {row[0]: row[1] for row in positions},
        partitions,
    )
    _check_whole(plan)
    return plan


def _rules(fields: PlanFields, rules: PlanFields) -> PlanRules:
    return PlanRules(
        fields.member("mode", CopyMode),
        fields.number("madeAtMs"),
        rules.number("brokerId", INT32_MIN, INT32_MAX),
        rules.text("prefix"),
        SegmentSelection(
            rules.texts("topics"),
            rules.texts("withoutTopics"),
            rules.number("ageMsMin"),
            rules.number("keptLocalBytes"),
            rules.flag("withCompacted"),
        ),
        Budgets(
            rules.number_or_none("bytesMax"),
            rules.number("objectsMax"),
            rules.number_or_none("requestsMax"),
        ),
        RequestCosts(
            rules.number("multipartAboveBytes"),
            rules.number("partBytes"),
            rules.number("checksOfObject"),
        ),
    )


def _partition(fields: PlanFields) -> PartitionCopyPlan:
    digest = fields.value("imageDigest")
    found = PartitionCopyPlan(
        TopicIdPartition(
            fields.uuid("topicId"), fields.text("topic"), fields.number("partition", 0, INT32_MAX)
        ),
        fields.number_or_none("metadataPartition", INT32_MAX),
        None if digest is None else fields.text("imageDigest"),
        fields.flag("isTiered"),
        fields.number_or_none("logStart"),
        tuple(_end(one) for one in fields.rows("ends", _END)),
        tuple(_copy(one) for one in fields.rows("copies", _COPY)),
        tuple(_open(one) for one in fields.rows("leftOpen", _OPEN)),
        tuple(_left_out(one) for one in fields.rows("leftOut", _LEFT_OUT)),
        tuple(
            SourceGap(one.number("first"), one.number("next"), one.flag("isLost"))
            for one in fields.rows("gaps", _GAP)
        ),
    )
    _check_partition(found)
    return found


def _copy(fields: PlanFields) -> PlannedCopy:
    return PlannedCopy(
        fields.number("turn"),
        fields.member("action", SegmentAction),
        fields.uuid("id"),
        fields.number("start"),
        fields.number("last"),
        fields.epochs("epochs"),
        fields.number("maxTimestampMs", INT64_MIN),
        fields.number("logBytes", 0, INT32_MAX),
        fields.number("indexesBytes"),
        fields.flag("txnIndexEmpty"),
        tuple(EpochSpan(*row) for row in fields.numbers("lacking", 3)),
        _cost(fields),
        None if fields.value("expiresAtMs") is None else fields.number("expiresAtMs"),
    )


def _cost(fields: PlanFields) -> Cost:
    return Cost(*(fields.number(name) for name in _COSTS))


def _end(fields: PlanFields) -> PlannedEnd:
    return PlannedEnd(
        fields.uuid("id"),
        fields.number("start"),
        fields.number("last"),
        fields.member("state", SegmentState),
        fields.member("reason", EndReason),
        fields.bytes_or_none("customMetadata"),
        _cost(fields),
    )


def _open(fields: PlanFields) -> OpenCopy:
    return OpenCopy(
        fields.uuid("id"),
        fields.number("start"),
        fields.number("last"),
        fields.member("state", SegmentState),
        fields.number("brokerId", INT32_MIN, INT32_MAX),
        fields.member("reason", LeftOpen),
    )


def _left_out(fields: PlanFields) -> LeftOutRun:
    return LeftOutRun(
        fields.number("first"),
        fields.number_or_none("next"),
        fields.number("segments", 1),
        fields.number("bytes"),
        fields.member("reason", NotCopiedReason),
        fields.text("detail"),
    )


def _check_partition(found: PartitionCopyPlan) -> None:
    main_key(SegmentId(found.partition, found.partition.topic_id), 0)
    everything: tuple[PlannedEnd | PlannedCopy | OpenCopy, ...]
    everything = (*found.ends, *found.copies, *found.left_open)
    _require(
        all(one.start_offset <= one.last_offset for one in everything),
        f"{found.partition}: something ends before it begins",
    )
    _require(
        all(
            below.last_offset < above.start_offset and below.turn < above.turn
            for below, above in pairwise(found.copies)
        ),
        f"{found.partition}: copies do not rise",
    )
    tops = [one.start_offset for one in found.ends]
    _require(tops == sorted(tops, reverse=True), f"{found.partition}: ends do not come top down")
    _require(
        all(copy.epochs and copy.epochs[0][1] <= copy.start_offset for copy in found.copies),
        f"{found.partition}: a copy whose leader epochs begin above it",
    )
    is_known = found.image_digest is not None and found.metadata_partition is not None
    _require(
        is_known or not (found.copies or found.ends),
        f"{found.partition}: without its metadata nothing is done",
    )


def _check_whole(plan: CopyPlan) -> None:
    partitions = [one.partition for one in plan.partitions]
    _require(len(set(partitions)) == len(partitions), "a partition stands twice")
    _require(partitions == sorted(partitions, key=partition_order), "partitions are not in order")
    _require(all(at >= 0 <= position for at, position in plan.positions.items()), "positions")
    turns = [copy.turn for _, copy in plan.in_turn()]
    _require(turns == list(range(len(turns))), "turns are not 0, 1, 2, ...")
    costs = plan.rules.costs
    _require(
        all(
            copy.cost == costs.copy_cost(copy.action, copy.size_bytes, copy.indexes_bytes)
            for part in plan.partitions
            for copy in part.copies
        )
        and all(end.cost == costs.end_cost for part in plan.partitions for end in part.ends),
        "something costs what it cannot",
    )
    ids = [copy.uuid for part in plan.partitions for copy in part.copies]
    ids += [end.uuid for part in plan.partitions for end in part.ends]
    _require(len(set(ids)) == len(ids), "two copies have one id")
    _require(
        all(
            one.metadata_partition is None or one.metadata_partition in plan.positions
            for one in plan.partitions
        ),
        "a metadata partition without a position",
    )
    budgets, cost = plan.rules.budgets, plan.cost
    limits: Iterable[int | None] = (budgets.bytes_max, budgets.objects_max, budgets.requests_max)
    _require(
        all(most is None or spent <= most for most, spent in zip(limits, cost, strict=True)),
        "it costs more than its budgets",
    )


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise NotThisForm(otherwise)
