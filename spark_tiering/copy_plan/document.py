"""
A copy plan as a JSON document, of which the same plan always has the same bytes. Pure.
`fingerprint` is the SHA-256 of all other fields, written without spaces; the reader computes it
anew, and sums and costs.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.plan import (
    CopyPlan,
    OpenCopy,
    PartitionCopyPlan,
    PlannedCopy,
    PlannedEnd,
    PlanTotals,
    partition_order,
    sums_by_topic,
    total_sums,
)
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import Budgets, Cost, PlanRules, RequestCosts, SegmentSelection
from spark_tiering.layout.object_names import main_key
from spark_tiering.layout.strict_json import (
    Count32,
    Count64,
    Int32,
    Int64,
    JsonFault,
    load_json,
    plain_values,
    typed_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT = "rlmm-copy-plan"
VERSION = 1
DOCUMENT_BYTES_MAX = 64 * 2**20
"""Some 100,000 copies; longer documents are neither written nor read."""
VALUES_MAX = 6_000_000
"""Most commas, colons and opening brackets; each value can take some hundred bytes of memory."""
TEXT_CHARACTERS_MAX = 1000

_LINE_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class CopyPlanUnreadable:
    """Tells why a document is no plan; *detail* says where, the value, and the expected value."""

    detail: str

    def __str__(self) -> str:
        return f"it is no plan: {self.detail}"


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class _Rules(_Part, frozen=True):
    broker_id: Int32
    prefix: str
    topics: tuple[str, ...]
    without_topics: tuple[str, ...]
    age_ms_min: Count64
    kept_local_bytes: Count64
    with_compacted: bool
    bytes_max: Count64 | None
    objects_max: Count64
    requests_max: Count64 | None
    multipart_above_bytes: Count64
    part_bytes: Count64
    checks_of_object: Count64


class _Metadata(_Part, frozen=True):
    cluster_id: str
    topic_id: Uuid
    partitions: Count32
    positions: tuple[tuple[Int64, Int64], ...]


class _Document(_Part, frozen=True):
    format: str
    version: int
    fingerprint: str
    mode: CopyMode
    made_at_ms: Count64
    sums: dict[str, Any]
    rules: _Rules
    metadata: _Metadata
    partitions: tuple[PartitionCopyPlan, ...]


# ------------------------------------------------------------------------------------- writing


def format_plan(plan: CopyPlan) -> bytes:
    """Return the document. Raise `InvalidArgument` for one that would be too long to be read."""
    content = (_laid_out(fields_of(plan)) + "\n").encode()
    if len(content) > DOCUMENT_BYTES_MAX:
        msg = f"a plan of {len(content)} bytes, at most {DOCUMENT_BYTES_MAX}: plan less at once"
        raise InvalidArgument(msg)
    return content


def fingerprint(plan: CopyPlan) -> str:
    found: str = fields_of(plan)["fingerprint"]
    return found


def fields_of(plan: CopyPlan) -> dict[str, Any]:
    rules = plan.rules
    limits = (*astuple(rules.filters), *astuple(rules.budgets), *astuple(rules.costs))
    topics = [
        {"topic": topic, "topicId": topic_id, **_sums_fields(sums)}
        for (topic, topic_id), sums in sums_by_topic(plan).items()
    ]
    document = _Document(
        FORMAT,
        VERSION,
        "",
        rules.mode,
        rules.now_ms,
        {**_sums_fields(total_sums(plan)), "topics": topics},
        _Rules(rules.broker_id, rules.prefix, *limits),
        _Metadata(
            plan.cluster_id,
            plan.metadata_topic_id,
            plan.partition_count,
            tuple(sorted(plan.positions.items())),
        ),
        plan.partitions,
    )
    fields: dict[str, Any] = plain_values(document)
    rest = {name: value for name, value in fields.items() if name != "fingerprint"}
    compact = json.dumps(rest, separators=(",", ":"), ensure_ascii=False)
    fields["fingerprint"] = hashlib.sha256(compact.encode()).hexdigest()
    return fields


def _sums_fields(sums: PlanTotals) -> dict[str, Any]:
    return {
        "partitions": sums.partitions,
        **{action.value: count for action, count in sums.by_action.items()},
        "end": sums.ends,
        **_cost_fields(sums.cost),
        "leftOpen": sums.left_open,
        "missingOffsets": sums.missing_offsets,
        "leftOut": {
            reason.value: {"segments": segments, "bytes": size_bytes}
            for reason, (segments, size_bytes) in sorted(sums.left_out.items())
        },
    }


def _cost_fields(cost: Cost) -> dict[str, int]:
    return {"bytes": cost.bytes, "objects": cost.objects, "requests": cost.requests}


def _laid_out(value: object, indent: str = "", *, is_row: bool = False) -> str:
    """Write short values and rows of a list on one line each."""
    line = json.dumps(value, ensure_ascii=False)
    inner = f"{indent} "
    if not value or not isinstance(value, dict | list | tuple):
        return line
    if isinstance(value, dict):
        is_flat = not any(isinstance(one, dict) or _has_rows(one) for one in value.values())
        if is_flat and (is_row or len(line) <= _LINE_CHARACTERS):
            return line
        items = [f"{inner}{json.dumps(key)}: {_laid_out(one, inner)}" for key, one in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}" + "}"
    if not _has_rows(value):
        return line
    rows = [inner + _laid_out(one, inner, is_row=True) for one in value]
    return "[\n" + ",\n".join(rows) + f"\n{indent}]"


def _has_rows(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(one, dict) for one in value)


# ------------------------------------------------------------------------------------- reading


def parse_plan(content: bytes) -> CopyPlan | CopyPlanUnreadable:
    try:
        loaded = load_json(content, bytes_max=DOCUMENT_BYTES_MAX, values_max=VALUES_MAX)
        # Another version may have other fields: the version is judged first.
        if not isinstance(loaded, dict):
            return CopyPlanUnreadable("plan: expected an object")
        if (loaded.get("format"), loaded.get("version")) != (FORMAT, VERSION):
            return CopyPlanUnreadable(f"expected {FORMAT} of version {VERSION}")
        plan = _plan(typed_value(loaded, _Document, "plan"), loaded)
        expected = fields_of(plan)
        if loaded["fingerprint"] != expected["fingerprint"]:
            return CopyPlanUnreadable(
                f"its content has the fingerprint {expected['fingerprint']}: it was changed"
            )
        if json.dumps(loaded, sort_keys=True) != json.dumps(expected, sort_keys=True):
            return CopyPlanUnreadable("its sums are not those of its content")
    except (JsonFault, InvalidArgument, RecursionError) as error:
        return CopyPlanUnreadable(str(error)[:600])
    return plan


def _plan(document: _Document, loaded: dict[str, Any]) -> CopyPlan:
    _check_texts(loaded, "plan")
    rules, metadata = document.rules, document.metadata
    limits: Any = msgspec.structs.astuple(rules)[2:]
    for partition in document.partitions:
        _check_partition(partition)
    plan = CopyPlan(
        PlanRules(
            document.mode,
            document.made_at_ms,
            rules.broker_id,
            rules.prefix,
            SegmentSelection(*limits[:5]),
            Budgets(*limits[5:8]),
            RequestCosts(*limits[8:]),
        ),
        metadata.cluster_id,
        metadata.topic_id,
        metadata.partitions,
        dict(metadata.positions),
        document.partitions,
    )
    _check_whole(plan)
    return plan


def _check_texts(value: object, path: str) -> None:
    """Refuse long texts, and texts that a terminal could take for a command; not those of bytes."""
    if isinstance(value, str):
        is_line = len(value) <= TEXT_CHARACTERS_MAX and value.isprintable()
        _require(is_line, f"{path}: {value[:80]!r}, expected one line of text")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            _check_texts(item, f"{path}[{at}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            if name != "customMetadata":
                _check_texts(item, f"{path}.{name}")


def _check_partition(found: PartitionCopyPlan) -> None:
    main_key(SegmentId(found.partition, found.partition.topic_id), 0)
    opened: tuple[PlannedEnd | OpenCopy, ...] = (*found.ends, *found.left_open)
    everything: tuple[PlannedEnd | PlannedCopy | OpenCopy, ...] = (*opened, *found.copies)
    _require(
        all(one.state_name in SegmentState.__members__ for one in opened),
        f"{found.partition}: a segment in a state that is none",
    )
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
    for copy in found.copies:
        _require(
            bool(copy.epochs) and copy.epochs[0][1] <= copy.start_offset,
            f"{found.partition}: a copy whose leader epochs begin above it",
        )
        _require(
            all(
                below[0] < above[0] and below[1] < above[1]
                for below, above in pairwise(copy.epochs)
            ),
            f"{found.partition}: a copy whose leader epochs do not rise",
        )
    is_known = found.image_digest is not None and found.metadata_partition is not None
    _require(
        is_known or not (found.copies or found.ends),
        f"{found.partition}: without its metadata nothing is done",
    )


def _check_whole(plan: CopyPlan) -> None:
    _require(plan.partition_count > 0, "a metadata topic without partitions")
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
        raise InvalidArgument(otherwise)
