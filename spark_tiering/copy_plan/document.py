"""
A plan as a document: JSON that people review, and that the same plan always becomes. Pure.

At the top stand sums by topic; each copy is one line. `fingerprint` is the SHA-256 of all other
fields, written without spaces: two plans with the same one do the same.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from spark_tiering.copy_plan.totals import PlanTotals, sums_by_topic, total_sums

if TYPE_CHECKING:
    from spark_tiering.copy_plan.plan import (
        CopyPlan,
        PartitionCopyPlan,
        PlannedCopy,
        PlannedEnd,
    )
    from spark_tiering.copy_plan.rules import Cost, PlanRules

FORMAT = "rlmm-copy-plan"
VERSION = 1
DOCUMENT_BYTES_MAX = 64 * 2**20
"""Some 100,000 copies; longer documents are neither written nor read."""

_LINE_CHARACTERS = 100


def format_plan(plan: CopyPlan) -> bytes:
    """The document; raises `InvalidArgument` for one that would be too long to be read."""
    content = (_laid_out(fields_of(plan)) + "\n").encode()
    if len(content) > DOCUMENT_BYTES_MAX:
        msg = f"a plan of {len(content)} bytes, at most {DOCUMENT_BYTES_MAX}: plan less at once"
        raise InvalidArgument(msg)
    return content


def fingerprint(plan: CopyPlan) -> str:
    """Equal for plans that do the same, by the same metadata and rules, and for no others."""
    found: str = fields_of(plan)["fingerprint"]
    return found


def fields_of(plan: CopyPlan) -> dict[str, Any]:
    """The document as objects of JSON."""
    said: dict[str, Any] = {
        "mode": plan.rules.mode.value,
        "madeAtMs": plan.rules.now_ms,
        "sums": {
            **_sums_fields(total_sums(plan)),
            "topics": [
                {"topic": topic, "topicId": topic_id, **_sums_fields(sums)}
                for (topic, topic_id), sums in sums_by_topic(plan).items()
            ],
        },
        "rules": _rules_fields(plan.rules),
        "metadata": {
            "clusterId": plan.cluster_id,
            "topicId": str(plan.metadata_topic_id),
            "partitions": plan.partition_count,
            "positions": [list(pair) for pair in sorted(plan.positions.items())],
        },
        "partitions": [_partition_fields(one) for one in plan.partitions],
    }
    head = {"format": FORMAT, "version": VERSION}
    digest = hashlib.sha256(_compact({**head, **said}).encode()).hexdigest()
    return {**head, "fingerprint": digest, **said}


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


def _rules_fields(rules: PlanRules) -> dict[str, Any]:
    filters, budgets, costs = rules.filters, rules.budgets, rules.costs
    return {
        "brokerId": rules.broker_id,
        "prefix": rules.prefix,
        "topics": list(filters.topics),
        "withoutTopics": list(filters.without_topics),
        "ageMsMin": filters.age_ms_min,
        "keptLocalBytes": filters.kept_local_bytes,
        "withCompacted": filters.with_compacted,
        "bytesMax": budgets.bytes_max,
        "objectsMax": budgets.objects_max,
        "requestsMax": budgets.requests_max,
        "multipartAboveBytes": costs.multipart_above_bytes,
        "partBytes": costs.part_bytes,
        "checksOfObject": costs.checks_of_object,
    }


def _partition_fields(one: PartitionCopyPlan) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "topicId": str(one.partition.topic_id),
        "partition": one.partition.partition,
        "metadataPartition": one.metadata_partition,
        "imageDigest": one.image_digest,
        "isTiered": one.is_tiered,
        "logStart": one.log_start,
        "ends": [_end_fields(end) for end in one.ends],
        "copies": [_copy_fields(copy) for copy in one.copies],
        "leftOpen": [
            {
                "id": str(found.uuid),
                "start": found.start_offset,
                "last": found.last_offset,
                "state": found.state.name,
                "brokerId": found.broker_id,
                "reason": found.reason.value,
            }
            for found in one.left_open
        ],
        "leftOut": [
            {
                "first": run.first_offset,
                "next": run.next_offset,
                "segments": run.segments,
                "bytes": run.size_bytes,
                "reason": run.reason.value,
                "detail": run.detail,
            }
            for run in one.left_out
        ],
        "gaps": [
            {"first": gap.first_offset, "next": gap.next_offset, "isLost": gap.is_lost}
            for gap in one.gaps
        ],
    }


def _end_fields(end: PlannedEnd) -> dict[str, Any]:
    return {
        "id": str(end.uuid),
        "start": end.start_offset,
        "last": end.last_offset,
        "state": end.state.name,
        "reason": end.reason.value,
        "customMetadata": None if end.custom_metadata is None else end.custom_metadata.hex(),
        **_cost_fields(end.cost),
    }


def _copy_fields(copy: PlannedCopy) -> dict[str, Any]:
    return {
        "turn": copy.turn,
        "action": copy.action.value,
        "start": copy.start_offset,
        "last": copy.last_offset,
        "id": str(copy.uuid),
        "logBytes": copy.size_bytes,
        "indexesBytes": copy.indexes_bytes,
        "maxTimestampMs": copy.max_timestamp_ms,
        "expiresAtMs": copy.expires_at_ms,
        "txnIndexEmpty": copy.txn_index_empty,
        "epochs": [list(pair) for pair in copy.epochs],
        "lacking": [list(span) for span in copy.lacking],
        **_cost_fields(copy.cost),
    }


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _laid_out(value: object, indent: str = "", *, is_row: bool = False) -> str:
    """What is short, or a row of a list, on one line; else each item on a line of its own."""
    line = json.dumps(value, ensure_ascii=False)
    inner = f"{indent} "
    if not value or not isinstance(value, dict | list):
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
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)
