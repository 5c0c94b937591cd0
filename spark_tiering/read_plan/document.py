"""
A read plan as a JSON document: the same plan always becomes the same bytes. Pure. `checksum` is the
SHA-256 of all other fields, without spaces, in order; columns in `parquet` have the same names. The
reader also checks that ranges rise and with the gaps are the question, exactly, and that sums and
token are those of the content.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import Uuid
from spark_tiering.layout.strict_json import (
    Count32,
    Count64,
    JsonFault,
    JsonFaultKind,
    load_json,
    plain_values,
    typed_value,
)
from spark_tiering.read_plan.plan import (
    FrozenPartition,
    FrozenPlan,
    FrozenSegment,
    PartitionRow,
    PlanSourceKind,
    ReadPlanRow,
    Text,
    partition_order,
)
from spark_tiering.read_plan.question_document import FactsFields, QuestionFields, compact
from spark_tiering.read_plan.tokens import DIGEST_BYTES, TOKEN_CHARACTERS_MAX, parse_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition

FORMAT = "rlmm-frozen-plan"
VERSION = 1
DOCUMENT_BYTES_MAX = 64 * 2**20
"""Some 90,000 segments; longer documents are neither written nor read. Parquet takes more."""
VALUES_MAX = 6_000_000
"""Most commas, colons and opening brackets; each value can take some hundred bytes of memory."""
_ROWS = ("partitions", "segments")

Token = Annotated[str, msgspec.Meta(max_length=TOKEN_CHARACTERS_MAX)]


class PlanFault(StrEnum):
    TOO_LARGE = "too-large"
    NOT_JSON = "not-json"
    NOT_PARQUET = "not-parquet"
    OTHER_FORMAT = "other-format"
    """JSON or a table, and no plan, or one of a version that is not known."""
    FIELD_WRONG = "field-wrong"
    CHANGED = "changed"
    CONTRADICTION = "contradiction"
    """Ranges that overlap, or lie outside their segment or what was asked."""


class ReadPlanFault(Exception):
    """A plan is refused; readers return it as `ReadPlanUnreadable`."""

    def __init__(self, fault: PlanFault, detail: str) -> None:
        super().__init__(detail[:600])
        self.fault = fault


def refuse(fault: PlanFault, detail: str) -> NoReturn:
    raise ReadPlanFault(fault, detail)


@dataclass(frozen=True, slots=True)
class ReadPlanUnreadable:
    """Tells why a document is no plan; *detail* says where, the value, and the expected value."""

    fault: PlanFault
    detail: str

    def __str__(self) -> str:
        return f"it is no frozen plan ({self.fault}): {self.detail}"


class _Document(ReadPlanRow, frozen=True):
    format: str
    version: int
    token: Token
    source: PlanSourceKind
    cluster_id: Text
    metadata_topic_id: Uuid | None
    metadata_partitions: Count32 | None
    positions: tuple[tuple[Count32, Count64], ...]
    question: QuestionFields
    facts: FactsFields
    since: Token
    warnings: tuple[str, ...]
    sums: Any
    partitions: tuple[PartitionRow, ...]
    segments: tuple[FrozenSegment, ...]
    checksum: str


# ------------------------------------------------------------------------------------- writing


def format_plan(plan: FrozenPlan) -> bytes:
    """Return the document. Raise `InvalidArgument` for one that would be too long to be read."""
    document = document_of(plan)
    content = "".join(_lines({**document, "checksum": checksum_of(document)})).encode()
    if len(content) > DOCUMENT_BYTES_MAX:
        msg = (
            f"a plan of {len(content)} bytes, at most {DOCUMENT_BYTES_MAX}: save it as Parquet, or"
            " plan fewer topics at once"
        )
        raise InvalidArgument(msg)
    return content


def document_of(plan: FrozenPlan) -> dict[str, Any]:
    document = _Document(
        FORMAT,
        VERSION,
        plan.token,
        plan.kind,
        plan.cluster_id,
        plan.metadata_topic_id,
        plan.partition_count,
        tuple(sorted(plan.positions.items())),
        QuestionFields.of(plan.question),
        FactsFields.of(plan.facts),
        plan.since,
        plan.warnings,
        sums_of(plan),
        tuple(one.row for one in plan.partitions),
        tuple(plan.segments),
        "",
    )
    fields: dict[str, Any] = plain_values(document)
    del fields["checksum"]
    return fields


def digest_of(plan: FrozenPlan) -> bytes:
    fields = document_of(plan)
    del fields["token"]
    segments = fields.pop("segments")
    sha = hashlib.sha256(compact(fields))
    for segment in segments:
        sha.update(compact(segment))
    return sha.digest()


def checksum_of(document: dict[str, Any]) -> str:
    rest = {name: value for name, value in document.items() if name != "checksum"}
    return hashlib.sha256(compact(rest)).hexdigest()


def sums_of(plan: FrozenPlan) -> dict[str, int]:
    """Add up the costs of reading the plan. Bytes are those of whole segments."""
    unique = {(one.topic, one.topic_id, one.number, one.uuid): one for one in plan.segments}
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


def _lines(document: dict[str, Any]) -> Iterator[str]:
    mark = "{\n"
    for name, value in document.items():
        yield f"{mark} {json.dumps(name)}: "
        mark = ",\n"
        if name not in _ROWS or not value:
            yield json.dumps(value, ensure_ascii=False)
            continue
        row_mark = "[\n  "
        for row in value:
            yield row_mark + json.dumps(row, ensure_ascii=False)
            row_mark = ",\n  "
        yield "\n ]"
    yield "\n}\n"


# ------------------------------------------------------------------------------------- reading


def parse_plan(content: bytes) -> FrozenPlan | ReadPlanUnreadable:
    try:
        return plan_of_document(load_fields(content))
    except ReadPlanFault as refused:
        return ReadPlanUnreadable(refused.fault, str(refused))


def load_fields(content: bytes) -> dict[str, Any]:
    try:
        loaded = load_json(content, bytes_max=DOCUMENT_BYTES_MAX, values_max=VALUES_MAX)
        return typed_value(loaded, dict[str, Any], "plan")
    except JsonFault as fault:
        raise _translated(fault) from fault


def plan_of_document(loaded: dict[str, Any]) -> FrozenPlan:
    # Another version may have other fields: the version is judged first.
    if loaded.get("format") != FORMAT or loaded.get("version") != VERSION:
        refuse(PlanFault.OTHER_FORMAT, f"expected {FORMAT} of version {VERSION}")
    odd = set(loaded) ^ set(_Document.__struct_encode_fields__)
    if odd:
        refuse(PlanFault.FIELD_WRONG, f"fields missing or unknown: {sorted(odd)}")
    try:
        if loaded["checksum"] != checksum_of(loaded):
            refuse(PlanFault.CHANGED, "its checksum is not that of its content")
        plan = _plan(typed_value(loaded, _Document, "plan"))
        _check(plan)
        if loaded["sums"] != sums_of(plan):
            refuse(PlanFault.CHANGED, "its sums are not those of its content")
        if parse_token(plan.token).content_digest != digest_of(plan)[:DIGEST_BYTES]:
            refuse(PlanFault.CHANGED, "its token is another plan's")
    except JsonFault as fault:
        raise _translated(fault) from fault
    except (InvalidArgument, UnicodeEncodeError, RecursionError) as error:
        raise ReadPlanFault(PlanFault.FIELD_WRONG, str(error)) from error
    return plan


def _translated(fault: JsonFault) -> ReadPlanFault:
    is_field = fault.kind not in (JsonFaultKind.TOO_LARGE, JsonFaultKind.NOT_JSON)
    return ReadPlanFault(PlanFault.FIELD_WRONG if is_field else PlanFault(fault.kind), fault.detail)


def _plan(document: _Document) -> FrozenPlan:
    if not _rise(document.positions):
        refuse(PlanFault.FIELD_WRONG, "positions that do not rise")
    rows: dict[TopicIdPartition, list[FrozenSegment]] = {}
    order: list[TopicIdPartition] = []
    for segment in document.segments:
        partition, epochs = segment.partition, segment.epochs
        if not epochs or not _rise(epochs):
            refuse(PlanFault.FIELD_WRONG, f"{segment.id}: leader epochs that do not rise")
        if not order or order[-1] != partition:
            order.append(partition)
        rows.setdefault(partition, []).append(segment)
    for row in document.partitions:
        if not (_rise(row.asked) and _rise(row.epochs)):
            refuse(PlanFault.FIELD_WRONG, f"{row.partition}: pairs that do not rise")
    partitions = tuple(
        FrozenPartition(*(*msgspec.structs.astuple(row), tuple(rows.get(row.partition, ()))))
        for row in document.partitions
    )
    if order != [one.partition for one in partitions if one.segments]:
        refuse(PlanFault.CONTRADICTION, "segments are not in the order of their partitions")
    return FrozenPlan(
        document.token,
        document.source,
        document.cluster_id,
        document.metadata_topic_id,
        document.metadata_partitions,
        dict(document.positions),
        document.question.question(),
        document.facts.facts(),
        partitions,
        document.warnings,
        document.since,
    )


def _rise(pairs: Sequence[tuple[int, int]]) -> bool:
    return all(below[0] < above[0] for below, above in pairwise(pairs))


def _check(plan: FrozenPlan) -> None:
    partitions = [one.partition for one in plan.partitions]
    _require(len(set(partitions)) == len(partitions), "a partition stands twice")
    _require(partitions == sorted(partitions, key=partition_order), "partitions are not in order")
    for one in plan.partitions:
        for segment in one.segments:
            first, last = segment.read_first, segment.read_last
            if not segment.start_offset <= first <= last <= segment.last_offset:
                refuse(PlanFault.CONTRADICTION, f"{segment.id}: read outside itself")
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
    """Return all of them joined, rising; None where they overlap or are empty."""
    joined: list[tuple[int, int]] = []
    for first, behind in sorted(ranges):
        if first >= behind or (joined and first < joined[-1][1]):
            return None
        if joined and first == joined[-1][1]:
            joined[-1] = (joined[-1][0], behind)
        else:
            joined.append((first, behind))
    return joined


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        refuse(PlanFault.CONTRADICTION, otherwise)
