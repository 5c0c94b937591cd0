"""
A plan as plain values, in the one order and form in which it is written. Pure.

Names are those of columns: JSON and Parquet have the same. What stands in a map is sorted, so that
equal plans become equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_tiering.read_plan.plan import (
        FrozenPartition,
        FrozenPlan,
        FrozenSegment,
    )
    from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds

FORMAT = "rlmm-frozen-plan"
VERSION = 1
_BOUNDS = ("from_offset", "to_offset", "from_time_ms", "to_time_ms")


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def content_of(plan: FrozenPlan) -> dict[str, Any]:
    """All of a plan but its token and its segments: what its digest is of, together with these."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "source": plan.kind.value,
        "cluster_id": plan.cluster_id,
        "metadata_topic_id": _text(plan.metadata_topic_id),
        "metadata_partitions": plan.partition_count,
        "positions": [list(pair) for pair in sorted(plan.positions.items())],
        "question": question_fields(plan.question),
        "facts": facts_fields(plan.facts),
        "since": plan.since,
        "warnings": list(plan.warnings),
        "sums": sums_of(plan),
        "partitions": [partition_fields(one) for one in plan.partitions],
    }


def digest_of(plan: FrozenPlan) -> bytes:
    """Of all that a plan is, whatever its token says."""
    sha = hashlib.sha256(compact(content_of(plan)))
    for segment in plan.segments:
        sha.update(compact(segment_fields(segment)))
    return sha.digest()


def asked_content(question: Question, facts: QuestionFacts, since: str) -> bytes:
    """What was asked, and what was known, in canonical form; what was not said is left out."""
    said: dict[str, Any] = {**_said(question_fields(question)), **_said(facts_fields(facts))}
    if since:
        said["since"] = hashlib.sha256(since.encode()).hexdigest()
    return compact(said)


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    inner = {key: _said(one) if isinstance(one, dict) else one for key, one in fields.items()}
    return {key: one for key, one in inner.items() if one not in (None, "", [], {})}


def question_fields(question: Question) -> dict[str, Any]:
    return {
        "topics": list(question.topics),
        "without_topics": list(question.without_topics),
        "pattern": question.pattern,
        "assigned": [[topic, list(numbers)] for topic, numbers in question.assigned],
        "bounds": bounds_fields(question.bounds),
        "bounds_of": [
            {"topic": topic, "partition": partition, **bounds_fields(bounds)}
            for (topic, partition), bounds in sorted(question.bounds_of.items())
        ],
        "prefix": question.prefix,
        "location": question.location,
    }


def bounds_fields(bounds: RecordBounds) -> dict[str, int | None]:
    return {name: getattr(bounds, name) for name in _BOUNDS}


def facts_fields(facts: QuestionFacts) -> dict[str, Any]:
    """What was known of the cluster."""
    return {
        "retention_ms": dict(sorted(facts.retention_ms.items())),
        "log_starts": [
            [one.topic, str(one.topic_id), one.partition, offset]
            for one, offset in sorted(facts.log_starts.items(), key=lambda pair: pair[0].key)
        ],
        "histories": [
            [one.topic, str(one.topic_id), one.partition, [list(pair) for pair in history]]
            for one, history in sorted(facts.histories.items(), key=lambda pair: pair[0].key)
        ],
    }


def sums_of(plan: FrozenPlan) -> dict[str, int]:
    """
    What reading all of it comes to. Bytes are those of whole segments: what part of one a range is
    only its index tells. Requests: manifest and log of each, and its indexes where they are needed.
    """
    unique = {one.id: one for one in plan.segments}
    rows = list(plan.segments)
    return {
        "partitions": len(plan.partitions),
        "segments": len(unique),
        "ranges": len(rows),
        "bytes": sum(one.size_bytes for one in unique.values()),
        "offsets": sum(one.read_last - one.read_first + 1 for one in rows),
        "gaps": sum(1 for _ in plan.gaps),
        "missing_offsets": sum(gap.offsets or 0 for _, gap in plan.gaps),
        "left_out": sum(len(one.left_out) for one in plan.partitions),
        "requests": sum(2 + (not one.is_whole or not one.txn_index_empty) for one in rows),
    }


def partition_fields(one: FrozenPartition) -> dict[str, Any]:
    """One partition, without its segments."""
    return {
        "topic": one.partition.topic,
        "topic_id": str(one.partition.topic_id),
        "partition": one.partition.partition,
        "metadata_partition": one.metadata_partition,
        "asked": [list(pair) for pair in one.asked],
        "tier_first_offset": one.tier_first,
        "tier_next_offset": one.tier_next,
        "tiered_until_ms": one.tiered_until_ms,
        "next_offset": one.next_offset,
        "epochs": [list(pair) for pair in one.epochs],
        "gaps": [
            {"first_offset": gap.first_offset, "next_offset": gap.next_offset,
             "reason": gap.reason.value}
            for gap in one.gaps
        ],
        "left_out": [
            {"segment_id": str(left.uuid), "start_offset": left.start_offset,
             "last_offset": left.last_offset, "size_bytes": left.size_bytes,
             "reason": left.reason.value}
            for left in one.left_out
        ],
    }  # fmt: skip


def segment_fields(one: FrozenSegment) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "topic_id": str(one.partition.topic_id),
        "partition": one.partition.partition,
        "segment_id": str(one.uuid),
        "start_offset": one.start_offset,
        "last_offset": one.last_offset,
        "read_first_offset": one.read_first,
        "read_last_offset": one.read_last,
        "size_bytes": one.size_bytes,
        "max_timestamp_ms": one.max_timestamp_ms,
        "expires_at_ms": one.expires_at_ms,
        "txn_index_empty": one.txn_index_empty,
        "epochs": [{"epoch": epoch, "first_offset": first} for epoch, first in one.epochs],
        "log_key": one.log_key,
        "indexes_key": one.indexes_key,
        "manifest_key": one.manifest_key,
    }


def _text(value: object | None) -> str | None:
    return None if value is None else str(value)
