"""The form of every answer, as JSON Schema: what the OpenAPI document says of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.gate.state import GateState
from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from rlmm.metadata.segment import PartitionDeleteState, SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.views.values import View

TEXT: Final[View] = {"type": "string"}
FLAG: Final[View] = {"type": "boolean"}
COUNT: Final[View] = {"type": "integer", "minimum": 0}
NUMBER: Final[View] = {"type": "number"}
INT32: Final[View] = {"type": "integer", "minimum": INT32_MIN, "maximum": INT32_MAX}
INT64: Final[View] = {
    "type": "integer", "format": "int64", "minimum": INT64_MIN, "maximum": INT64_MAX,
}  # fmt: skip
UUID: Final[View] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{22}$"}
TIME: Final[View] = {"type": ["string", "null"], "description": "ISO 8601, in UTC."}
ANY_OBJECT: Final[View] = {"type": "object"}


def nullable(schema: View) -> View:
    kind = schema.get("type")
    if isinstance(kind, str):
        return {**schema, "type": [kind, "null"]}
    return {"oneOf": [schema, {"type": "null"}]}


def array(of: View) -> View:
    return {"type": "array", "items": of}


def words(known: Iterable[str]) -> View:
    return {"enum": list(known)}


def counts() -> View:
    return {"type": "object", "additionalProperties": COUNT}


def shape(**fields: View) -> View:
    """An object of exactly these fields."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def ref(name: str) -> View:
    return {"$ref": f"#/components/schemas/{name}"}


_PARTITION: Final = {"topic_id": UUID, "topic": TEXT, "partition": INT32}
_EPOCH: Final = shape(epoch=INT32, start_offset=INT64)
_SEGMENT: Final = shape(
    **_PARTITION,
    segment_id=UUID,
    state=words(state.name for state in list(SegmentState)[:3]),
    start_offset=INT64,
    last_offset={**INT64, "description": "Inclusive."},
    epochs=array(_EPOCH),
    size_bytes=INT32,
    broker_id=INT32,
    max_timestamp_ms=INT64,
    max_timestamp=TIME,
    event_timestamp_ms=INT64,
    event_timestamp=TIME,
    custom_metadata={"type": ["string", "null"], "contentEncoding": "base64"},
    custom_metadata_bytes=nullable(COUNT),
    txn_index_empty=FLAG,
)
_ERROR: Final = shape(
    code={**TEXT, "description": "Stable; see docs/errors.md."},
    message=TEXT,
    retriable=FLAG,
    fields={**ANY_OBJECT, "description": "What the error says beyond its message."},
)
_STATES: Final = words(state.value for state in GateState)
_PLACE_STANDING: Final = shape(
    metadata_partition=COUNT,
    state=_STATES,
    why=nullable(TEXT),
    detail=TEXT,
    position=nullable(INT64),
    target=nullable(INT64),
    records_left=nullable(COUNT),
    lag_records=nullable(COUNT),
)
_READINESS: Final = shape(
    status=words(("ready", "not-ready", "starting", "stopping", "failed")),
    is_ready=FLAG,
    detail=TEXT,
    clusters=array(
        shape(
            cluster=TEXT,
            cluster_id=nullable(TEXT),
            is_ready=FLAG,
            reason=nullable(TEXT),
            detail=TEXT,
            assigned=nullable(COUNT),
            open=COUNT,
            metadata_partitions=array(_PLACE_STANDING),
        )
    ),
)
_PLACE: Final = shape(
    metadata_partition=COUNT,
    state=_STATES,
    why=nullable(TEXT),
    detail=TEXT,
    position=INT64,
    target=nullable(INT64),
    log_start=nullable(INT64),
    log_end=nullable(INT64),
    lag_records=nullable(COUNT),
    end_age_s=nullable(NUMBER),
    heard_age_s=nullable(NUMBER),
    beginnings=COUNT,
    failures=COUNT,
    last_failure=TEXT,
    user_partitions=nullable(COUNT),
    segments=nullable(counts()),
    size_bytes=nullable(COUNT),
    oldest_started_ms=nullable(INT64),
    oldest_started=TIME,
    offsets=counts(),
    rejected=counts(),
    undecodable=counts(),
    history=ANY_OBJECT,
    snapshot=nullable(
        shape(
            position=INT64, size_bytes=COUNT, written_ms=INT64, written=TIME, age_s=nullable(NUMBER)
        )
    ),
)
_TOTALS: Final = shape(
    metadata_partitions=COUNT,
    open=COUNT,
    user_partitions=COUNT,
    segments=counts(),
    size_bytes=COUNT,
    lag_records=nullable(COUNT),
    offsets=counts(),
    rejected=counts(),
    undecodable=counts(),
    remarked=counts(),
)
_SNAPSHOTS: Final = shape(
    written=COUNT,
    written_bytes=COUNT,
    failures=COUNT,
    refused=COUNT,
    last_success_ms=nullable(INT64),
    last_success=TIME,
    last_failure_ms=nullable(INT64),
    last_failure=nullable(TEXT),
    free_bytes=nullable(COUNT),
    free_bytes_min=COUNT,
    oldest_age_s=nullable(NUMBER),
    restored=nullable(COUNT),
    refused_at_start=nullable(counts()),
)
_CLUSTER: Final = shape(
    cluster=TEXT,
    cluster_id=nullable(TEXT),
    topic_id=nullable(UUID),
    partition_count=nullable(COUNT),
    is_connected=FLAG,
    connect_attempts=COUNT,
    last_trouble=TEXT,
    recreations=COUNT,
    assignment=TEXT,
    is_assignment_known=FLAG,
    generation=COUNT,
    heartbeat_age_s=nullable(NUMBER),
    not_open=array(COUNT),
    read_token=ref("Offsets"),
    metadata_partitions=array(_PLACE),
    totals=_TOTALS,
    reads=ANY_OBJECT,
    writes=counts(),
    write_times=shape(count=COUNT, sum_s=NUMBER, up_to_s=counts()),
    barrier=counts(),
    memory=ANY_OBJECT,
    snapshots=nullable(_SNAPSHOTS),
    log={"type": "object", "properties": {"kind": TEXT}, "required": ["kind"]},
)
_BROKER_PARTITIONS: Final = shape(
    folders=array(
        shape(
            folder=TEXT,
            node_id={**nullable(INT32), "description": "Of the broker, as its folder tells it."},
            cluster_id=nullable(TEXT),
        )
    ),
    partitions=array(
        shape(
            folder=TEXT,
            **_PARTITION,
            high_watermark={**nullable(INT64), "description": "As its broker noted it last."},
        )
    ),
    unusable=array(shape(place=TEXT, why=TEXT)),
)
_BROKER_FILES: Final = shape(
    last_stable_offset={**nullable(INT64), "description": "As the cluster tells it."},
    why={**nullable(TEXT), "description": "Why there is none: then no file is readable."},
    files=array(
        shape(
            name=TEXT,
            size_bytes=COUNT,
            modified_ms=INT64,
            is_readable=FLAG,
            why={**nullable(TEXT), "description": "Why it is not."},
        )
    ),
)

SCHEMAS: Final[Mapping[str, View]] = {
    "Segment": _SEGMENT,
    "SegmentOrNone": shape(segment=nullable(ref("Segment"))),
    "Segments": array({"oneOf": [ref("Segment"), ref("Refused")]}),
    "SegmentLine": {
        "oneOf": [ref("Segment"), ref("Refused"), shape(end=shape(segments=COUNT))],
    },
    "Lookups": shape(
        lookups=array(shape(topic_id=UUID, topic=TEXT, partition=INT32, epoch=INT32, offset=INT64))
    ),
    "Answers": shape(answers=array({"oneOf": [ref("SegmentOrNone"), ref("Refused")]})),
    "HighestOffset": shape(highest_offset=nullable(INT64)),
    "Size": shape(size_bytes=COUNT),
    "PartitionDeleteOrNone": shape(
        partition_delete=nullable(
            shape(
                **_PARTITION,
                state=words(state.name for state in PartitionDeleteState),
                broker_id=INT32,
                event_timestamp_ms=INT64,
                event_timestamp=TIME,
            )
        )
    ),
    "Ready": shape(is_ready=FLAG),
    "Offsets": {
        "type": "object",
        "description": "Offsets by metadata partition.",
        "additionalProperties": {**INT64, "minimum": -1},
    },
    "ReadToken": shape(
        read_token=ref("Offsets"),
        at_least={**TEXT, "description": "The same, as a question takes it."},
    ),
    "Status": {
        "type": "object",
        "properties": {"is_ready": FLAG, "clusters": array(_CLUSTER), "process": ANY_OBJECT},
        "required": ["is_ready", "clusters"],
        "additionalProperties": False,
    },
    "BrokerPartitions": _BROKER_PARTITIONS,
    "BrokerFiles": _BROKER_FILES,
    "Bytes": {"description": "Bytes as they are in the file."},
    "Readiness": _READINESS,
    "Liveness": shape(
        status=words(("alive", "stuck", "failed")),
        is_alive=FLAG,
        detail=TEXT,
        heartbeat_age_s={"type": "object", "additionalProperties": nullable(NUMBER)},
    ),
    "Refused": shape(error=_ERROR),
    "Text": TEXT,
    "Document": ANY_OBJECT,
}
"""By name."""
