"""
A plan as JSON: the same plan is always the same bytes. Pure.

Each partition and each segment is one line. `checksum` is the SHA-256 of all other fields, written
without spaces in the order in which they stand.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from spark_tiering.read_plan.fields import compact, content_of, segment_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.read_plan.plan import FrozenPlan

DOCUMENT_BYTES_MAX = 64 * 2**20
"""Some 90,000 segments; longer documents are neither written nor read. Parquet takes more."""
_ROWS = ("partitions", "segments")


def format_plan(plan: FrozenPlan) -> bytes:
    """The document; raises `InvalidArgument` for one that would be too long to be read."""
    content = "".join(_lines(document_of(plan))).encode()
    if len(content) > DOCUMENT_BYTES_MAX:
        msg = (
            f"a plan of {len(content)} bytes, at most {DOCUMENT_BYTES_MAX}: save it as Parquet, or"
            " plan fewer topics at once"
        )
        raise InvalidArgument(msg)
    return content


def document_of(plan: FrozenPlan) -> dict[str, Any]:
    """The document as objects of JSON."""
    said = {**head_of(plan), "segments": [segment_fields(one) for one in plan.segments]}
    return {**said, "checksum": checksum_of(said)}


def head_of(plan: FrozenPlan) -> dict[str, Any]:
    """All but segments and checksum."""
    content = content_of(plan)
    first = {name: content.pop(name) for name in ("format", "version")}
    return {**first, "token": plan.token, **content}


def checksum_of(document: dict[str, Any]) -> str:
    """Of all that is in *document*, whatever checksum it has."""
    said = {name: value for name, value in document.items() if name != "checksum"}
    return hashlib.sha256(compact(said)).hexdigest()


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
