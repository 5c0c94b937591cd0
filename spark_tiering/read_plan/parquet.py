"""
A plan as a Parquet table, a row for each range, for engines that read tables. The file's metadata
holds the fields of the whole plan under `rlmm.plan`; each row has the token, so rows of several
plans may lie in one folder.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_tiering.read_plan.document import (
    PlanFault,
    ReadPlanFault,
    ReadPlanUnreadable,
    checksum_of,
    document_of,
    load_fields,
    plan_of_document,
    refuse,
)
from spark_tiering.read_plan.question_document import compact
from spark_tiering.read_plan.tokens import TOKEN_CHARACTERS_MAX

if TYPE_CHECKING:
    from spark_tiering.read_plan.plan import FrozenPlan

HEAD = b"rlmm.plan"
MAGIC = b"PAR1"
FILE_BYTES_MAX = 512 * 2**20
ROWS_MAX = 1_000_000
_INFLATED_BYTES_MAX = 4 * 2**30
_ROWS_AT_ONCE = 10_000

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("segment_id", pa.string(), nullable=False),
        pa.field("start_offset", pa.int64(), nullable=False),
        pa.field("last_offset", pa.int64(), nullable=False),
        pa.field("read_first_offset", pa.int64(), nullable=False),
        pa.field("read_last_offset", pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("max_timestamp_ms", pa.int64(), nullable=False),
        pa.field("expires_at_ms", pa.int64()),
        pa.field("txn_index_empty", pa.bool_(), nullable=False),
        pa.field(
            "epochs",
            pa.list_(pa.struct([("epoch", pa.int32()), ("first_offset", pa.int64())])),
            nullable=False,
        ),
        pa.field("log_key", pa.string(), nullable=False),
        pa.field("indexes_key", pa.string(), nullable=False),
        pa.field("manifest_key", pa.string(), nullable=False),
        pa.field("token", pa.string(), nullable=False),
    ]
)
_SUMMED = [name for name in SCHEMA.names if name not in {"token", "epochs"}]


def format_parquet(plan: FrozenPlan) -> bytes:
    head = document_of(plan)
    head["checksum"] = checksum_of(head)
    rows = head.pop("segments")
    out = BytesIO()
    with pq.ParquetWriter(
        out,
        SCHEMA,
        compression="snappy",
        store_schema=False,
        write_statistics=_SUMMED,
        dictionary_pagesize_limit=2 * TOKEN_CHARACTERS_MAX,
    ) as writer:
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            part = [{**row, "token": plan.token} for row in rows[first : first + _ROWS_AT_ONCE]]
            writer.write_table(pa.Table.from_pylist(part, schema=SCHEMA))
        writer.add_key_value_metadata({HEAD: compact(head)})
    return out.getvalue()


def parse_parquet(content: bytes) -> FrozenPlan | ReadPlanUnreadable:
    try:
        return plan_of_document(_document(content))
    except ReadPlanFault as refused:
        return ReadPlanUnreadable(refused.fault, str(refused))
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        return ReadPlanUnreadable(PlanFault.NOT_PARQUET, " ".join(str(error).split())[:400])


def _document(content: bytes) -> dict[str, Any]:
    if len(content) > FILE_BYTES_MAX:
        refuse(PlanFault.TOO_LARGE, f"{len(content)} bytes, at most {FILE_BYTES_MAX} are read")
    file = pq.ParquetFile(BytesIO(content))
    facts = file.metadata
    inflated = sum(facts.row_group(at).total_byte_size for at in range(facts.num_row_groups))
    if facts.num_rows > ROWS_MAX or inflated > _INFLATED_BYTES_MAX:
        detail = f"{facts.num_rows} rows of {inflated} bytes, at most {ROWS_MAX} are read"
        refuse(PlanFault.TOO_LARGE, detail)
    packed = (facts.metadata or {}).get(HEAD)
    if packed is None:
        refuse(PlanFault.OTHER_FORMAT, f"a table without {HEAD.decode()} in its metadata")
    if not file.schema_arrow.equals(_as_read(), check_metadata=False):
        refuse(PlanFault.OTHER_FORMAT, f"other columns: {', '.join(file.schema_arrow.names)}")
    document = load_fields(packed)
    rows: list[dict[str, Any]] = []
    token = document.get("token")
    for batch in file.iter_batches(_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            if row.pop("token") != token:
                refuse(PlanFault.CONTRADICTION, "rows of several plans are in one table")
            rows.append(row)
    checksum = document.pop("checksum", None)
    return {**document, "segments": rows, "checksum": checksum}


def _as_read() -> pa.Schema:
    out = BytesIO()
    pq.write_table(SCHEMA.empty_table(), out, store_schema=False)
    return pq.ParquetFile(out).schema_arrow
