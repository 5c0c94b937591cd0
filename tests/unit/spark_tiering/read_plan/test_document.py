"""Plans as documents and as tables: written the same each time, and believed only whole."""

from __future__ import annotations

import base64
import hashlib
import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import TopicIdPartition
from spark_tiering.read_plan import document, parquet, tokens
from spark_tiering.read_plan.document import (
    PlanFault,
    ReadPlanUnreadable,
    checksum_of,
    format_plan,
    parse_plan,
)
from spark_tiering.read_plan.parquet import HEAD, format_parquet, parse_parquet
from spark_tiering.read_plan.plan import PlanSourceKind
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import PREFIX, SUM_BYTES, PlanPosition, PlanToken, parse_token
from tests.support.tier.read_plans import (
    DELETING,
    ORDERS,
    STARTED,
    plan_of,
    segment,
    shard_with,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.read_plan.plan import FrozenPlan

    Change = Callable[[dict[str, Any]], None]


def example() -> FrozenPlan:
    before = plan_of(shard_with(segment(1, 0, 9)))
    shard = shard_with(
        segment(1, 0, 9, newest_ms=10),
        segment(2, 20, 29, newest_ms=20, epochs=((0, 20), (3, 25))),
        segment(3, 30, 39, state=STARTED),
        segment(4, 40, 49, newest_ms=30, epochs=((3, 40),)),
        segment(5, 45, 46, state=DELETING),
    )
    question = Question(
        assigned=(("orders", (0, 1)),),
        bounds=RecordBounds(to_time_ms=90),
        bounds_of={("orders", 1): RecordBounds(7, 9)},
        prefix="tier/",
        location="s3://bucket/",
    )
    facts = QuestionFacts({"orders": 1_000}, {ORDERS: 2}, {ORDERS: ((0, 0), (3, 25))})
    return plan_of(shard, question, facts, parse_token(before.token))


def resealed(change: Change) -> bytes:
    said = json.loads(format_plan(example()))
    change(said)
    said["checksum"] = checksum_of(said)
    return json.dumps(said).encode()


def test_document_when_it_is_written_then_has_rows_on_lines_of_their_own() -> None:
    """The document has one line for each row, for text comparison."""
    content = format_plan(example())
    said = json.loads(content)
    assert said["format"] == "rlmm-frozen-plan"
    assert content.count(b'\n  {"topic"') == len(said["segments"]) + len(said["partitions"])
    assert list(said)[:3] == ["format", "version", "token"]
    assert said["segments"][0]["read_first_offset"] >= 2
    assert parse_plan(content) == example()
    assert parse_plan(json.dumps(said, indent=3).encode()) == example()  # however it is laid out


def test_table_when_it_is_written_then_any_reader_finds_columns_and_head() -> None:
    """The table has readable rows and columns, with the plan's head in the file metadata."""
    content = format_parquet(example())
    table = pq.read_table(BytesIO(content))
    rows = json.loads(format_plan(example()))["segments"]
    assert table.num_rows == len(rows)
    assert table.column("read_last_offset").to_pylist() == [one["read_last_offset"] for one in rows]
    assert set(table.column("token").to_pylist()) == {example().token}
    head = json.loads(pq.read_metadata(BytesIO(content)).metadata[HEAD])
    assert head["partitions"][0]["gaps"]
    assert parse_parquet(content) == example()
    assert format_parquet(example()) == content


def _set(path: str, value: Any) -> Change:
    def change(said: dict[str, Any]) -> None:
        *way, last = path.split(".")
        at: Any = said
        for name in way:
            at = at[int(name) if name.isdigit() else name]
        at[int(last) if last.isdigit() else last] = value

    return change


CONTRADICTIONS = {
    "read outside itself": _set("segments.0.read_last_offset", 10**6),
    "ranges and gaps": _set("segments.0.read_first_offset", 9),
    "is not asked": _set("partitions.0.asked", [[0, 1]]),
    "a gap is gone": _set("partitions.0.gaps", []),
    "an end in the middle": _set("partitions.0.gaps.0.next_offset", None),
    "twice": lambda said: said["partitions"].append(said["partitions"][0]),
    "nobody's": lambda said: said["segments"].append(said["segments"][0] | {"topic": "b"}),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_document_when_it_contradicts_itself_then_says_so(name: str) -> None:
    """A contradicting document is refused: a reader would read offsets twice or never."""
    found = parse_plan(resealed(CONTRADICTIONS[name]))
    assert isinstance(found, ReadPlanUnreadable)
    assert found.fault is PlanFault.CONTRADICTION, found


WRONG = {
    "format": (_set("format", "rlmm-copy-plan"), PlanFault.OTHER_FORMAT),
    "version": (_set("version", 2), PlanFault.OTHER_FORMAT),
    "version as truth": (_set("version", None), PlanFault.OTHER_FORMAT),
    "token": (_set("token", "rlmm-plan-1.AAAA"), PlanFault.FIELD_WRONG),
    "source": (_set("source", "nowhere"), PlanFault.FIELD_WRONG),
    "positions": (_set("positions", [[1, 1], [0, 1]]), PlanFault.FIELD_WRONG),
    "positions of text": (_set("positions", [["a", 1]]), PlanFault.FIELD_WRONG),
    "topic id": (_set("segments.0.topic_id", "x"), PlanFault.FIELD_WRONG),
    "id in another form": (_set("segments.0.segment_id", "A" * 21 + "B"), PlanFault.FIELD_WRONG),
    "offset as text": (_set("segments.0.start_offset", "0"), PlanFault.FIELD_WRONG),
    "offset as fraction": (_set("segments.0.start_offset", 0.0), PlanFault.FIELD_WRONG),
    "offset too large": (_set("segments.0.last_offset", 2**63), PlanFault.FIELD_WRONG),
    "flag": (_set("segments.0.txn_index_empty", 1), PlanFault.FIELD_WRONG),
    "no epochs": (_set("segments.0.epochs", []), PlanFault.FIELD_WRONG),
    "long key": (_set("segments.0.log_key", "k" * 9_999), PlanFault.FIELD_WRONG),
    "field too many": (_set("segments.0.more", 1), PlanFault.FIELD_WRONG),
    "reason": (_set("partitions.0.gaps.0.reason", "lost"), PlanFault.FIELD_WRONG),
    "segments are none": (_set("segments", {}), PlanFault.FIELD_WRONG),
    "a row is none": (_set("segments.0", 7), PlanFault.FIELD_WRONG),
    "pattern": (_set("question.pattern", "("), PlanFault.FIELD_WRONG),
    "bounds": (_set("question.bounds.from_offset", -1), PlanFault.FIELD_WRONG),
    "assigned": (_set("question.assigned", [["orders", "0"]]), PlanFault.FIELD_WRONG),
    "log starts": (_set("facts.log_starts", [["orders"]]), PlanFault.FIELD_WRONG),
    "half a surrogate": (_set("question.prefix", "\ud800"), PlanFault.FIELD_WRONG),
    "sums": (_set("sums.segments", 99), PlanFault.CHANGED),
    "another plan's token": (
        _set("token", plan_of(shard_with()).token), PlanFault.CHANGED,
    ),
    "a key that is changed": (_set("segments.0.log_key", "elsewhere"), PlanFault.CHANGED),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_document_when_a_field_is_wrong_then_the_field_is_named(name: str) -> None:
    """A wrong field under a right checksum is named, and no other plan is read."""
    change, fault = WRONG[name]
    if name == "half a surrogate":
        said = json.loads(format_plan(example()))
        change(said)
        content = json.dumps(said).encode()
    else:
        content = resealed(change)
    found = parse_plan(content)
    assert isinstance(found, ReadPlanUnreadable)
    assert found.fault is fault, found
    assert str(found).startswith("it is no frozen plan (")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", PlanFault.NOT_JSON),
        (b"\xff\xfe", PlanFault.NOT_JSON),
        (b"[" * 100_000, PlanFault.NOT_JSON),
        (b'{"format": NaN}', PlanFault.NOT_JSON),
        (b'{"format": 1, "format": 1}', PlanFault.NOT_JSON),
        (b"9" * 5_000, PlanFault.NOT_JSON),
        (b"[]", PlanFault.FIELD_WRONG),
        (b"{}", PlanFault.OTHER_FORMAT),
        (b'{"format": "rlmm-frozen-plan", "version": 1}', PlanFault.FIELD_WRONG),
    ],
)
def test_document_when_it_is_no_plan_at_all_then_says_what_it_is(
    content: bytes, fault: PlanFault
) -> None:
    """A file that is no plan is refused with a description of its content."""
    found = parse_plan(content)
    assert isinstance(found, ReadPlanUnreadable)
    assert found.fault is fault, found


def test_document_when_it_was_changed_then_its_checksum_tells() -> None:
    """A plan with one changed digit is refused by its checksum."""
    content = format_plan(example()).replace(b'"size_bytes": 1004', b'"size_bytes": 1003')
    found = parse_plan(content)
    assert isinstance(found, ReadPlanUnreadable)
    assert found.fault is PlanFault.CHANGED
    said = json.loads(format_plan(example())) | {"checksum": "0" * 64}
    assert parse_plan(json.dumps(said).encode()) == ReadPlanUnreadable(
        PlanFault.CHANGED, "its checksum is not that of its content"
    )


def test_document_when_it_is_too_large_then_is_neither_written_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A document beyond the limit is neither written nor parsed."""
    content = format_plan(example())
    monkeypatch.setattr(document, "VALUES_MAX", 100)
    found = parse_plan(content)
    assert isinstance(found, ReadPlanUnreadable)
    assert found.fault is PlanFault.TOO_LARGE
    monkeypatch.setattr(document, "DOCUMENT_BYTES_MAX", 100)
    with pytest.raises(InvalidArgument, match="Parquet"):
        format_plan(example())


# --------------------------------------------------------------------------------------- tables


def _table(**changes: Any) -> bytes:
    content = format_parquet(example())
    table = pq.read_table(BytesIO(content))
    for name, values in changes.items():
        at = table.column_names.index(name)
        field = pa.field(name, values.type, nullable=False)
        table = table.set_column(at, field, values)
    head = pq.read_metadata(BytesIO(content)).metadata[HEAD]
    out = BytesIO()
    with pq.ParquetWriter(out, table.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata({HEAD: head})
    return out.getvalue()


def test_table_when_its_rows_were_changed_then_is_refused() -> None:
    """A table with changed rows is refused by checksum, token or columns."""
    count = pq.read_table(BytesIO(format_parquet(example()))).num_rows
    keys = pa.array(["elsewhere"] * count)
    cases = {
        PlanFault.CHANGED: _table(log_key=keys),
        PlanFault.CONTRADICTION: _table(token=keys),
        PlanFault.OTHER_FORMAT: _table(partition=pa.array([0.0] * count)),
    }
    for fault, content in cases.items():
        found = parse_parquet(content)
        assert isinstance(found, ReadPlanUnreadable)
        assert found.fault is fault, found


def test_table_when_it_is_another_then_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no table, another program's table, or one of too many rows is refused."""
    out = BytesIO()
    pq.write_table(pa.table({"a": [1]}), out)
    assert parse_parquet(out.getvalue()).fault is PlanFault.OTHER_FORMAT  # type: ignore[union-attr]
    for content in (b"", b"PAR1", b"PAR1" + bytes(50) + b"PAR1", format_plan(example())):
        found = parse_parquet(content)
        assert isinstance(found, ReadPlanUnreadable)
        assert found.fault is PlanFault.NOT_PARQUET
    monkeypatch.setattr(parquet, "ROWS_MAX", 1)
    found = parse_parquet(format_parquet(example()))
    assert isinstance(found, ReadPlanUnreadable)
    assert found.fault is PlanFault.TOO_LARGE


# --------------------------------------------------------------------------------------- tokens


def test_token_when_it_is_read_then_says_what_its_plan_stands_on() -> None:
    """A token shows its plan's positions, and is the same text when written again."""
    plan = plan_of(
        shard_with(segment(1, 5, 9), segment(2, 20, 29)), Question(("orders",), prefix="tier/")
    )
    token = parse_token(f"  {plan.token}\n")
    assert token.kind is PlanSourceKind.METADATA
    assert token.positions == {0: 1}
    assert token.reached == {ORDERS: PlanPosition(30, ((10, 20),), 5)}
    assert str(token) == plan.token
    assert len(plan.token) < 300


def sealed(values: Any) -> str:
    """Return a token of *values* with a correct checksum."""
    packed = msgpack.packb(values)
    content = packed + hashlib.sha256(packed).digest()[:SUM_BYTES]
    return PREFIX + base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def test_token_when_it_is_none_then_is_refused() -> None:
    """A cut, changed, foreign or made-up token is refused."""
    good = plan_of(shard_with(segment(1, 0, 9))).token
    values: Any = msgpack.unpackb(
        base64.urlsafe_b64decode(good.removeprefix(PREFIX) + "==")[:-SUM_BYTES]
    )
    cases: list[str] = [
        "", "rlmm-plan-2.AAAA", PREFIX, good[:-4], good[:40] + good[44:], good + "A", good + "!",
        f"{PREFIX}{'A' * 2_000_000}", sealed(7), sealed([]), sealed(values[:-1]),
    ]  # fmt: skip
    odd_values: tuple[tuple[int, Any], ...] = (
        (0, 9), (0, True), (1, 7), (2, b"short"), (3, -1), (4, [[0, -1]]), (4, [[0]]), (5, b""),
        (6, "text"), (7, b"12"), (8, [["orders", bytes(16), [[0, 5, None, [7, 9]]]]]),
        (8, [["orders", bytes(16), [[0, 9, None, [7, 5]]]]]), (8, [["orders", bytes(3), [[0, 9]]]]),
        (8, [["orders", bytes(16), [[0, 9, 10, []]]]]), (8, {"a": 1}),
        (8, [["orders", bytes(16), [[-1, 9, 0, []]]]]),
    )  # fmt: skip
    cases += [sealed([*values[:at], odd, *values[at + 1 :]]) for at, odd in odd_values]
    for text in cases:
        with pytest.raises(InvalidArgument, match="no token"):
            parse_token(text)
    with pytest.raises(InvalidArgument, match="its sum differs"):
        parse_token(good[:40] + ("A" if good[40] != "A" else "B") + good[41:])
    in_parts = [["orders", bytes(16), [[number, 9, 0, []]]] for number in range(2)]
    with pytest.raises(InvalidArgument, match="not in the form"):
        parse_token(sealed([*values[:8], in_parts]))


def test_token_when_a_plan_has_too_many_partitions_then_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan with too many partitions for a token of some 2 KiB is refused with a remedy."""
    monkeypatch.setattr(tokens, "TOKEN_CHARACTERS_MAX", 300)
    many = {TopicIdPartition(ORDERS.topic_id, "orders", n): PlanPosition(n) for n in range(100)}
    token = PlanToken(PlanSourceKind.METADATA, "", None, None, {}, bytes(8), None, bytes(8), many)
    with pytest.raises(InvalidArgument, match="fewer topics"):
        str(token)
    monkeypatch.undo()
    bounds_of = {("orders", number): RecordBounds(number) for number in range(200)}
    long = plan_of(shard_with(segment(1, 0, 9)), Question(bounds_of=bounds_of))
    assert parse_token(long.token).asked is None
