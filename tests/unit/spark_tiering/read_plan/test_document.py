"""Plans as documents, tables and tokens, and what is new since a plan."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import TopicIdPartition, Uuid
from spark_tiering.read_plan import document, parquet, tokens
from spark_tiering.read_plan.document import (
    PlanFault,
    ReadPlanUnreadable,
    checksum_of,
    format_plan,
    parse_plan,
)
from spark_tiering.read_plan.inputs import PartitionInput
from spark_tiering.read_plan.parquet import HEAD, format_parquet, parse_parquet
from spark_tiering.read_plan.plan import GapReason, PlanSourceKind
from spark_tiering.read_plan.planner import make_plan
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import PREFIX, SUM_BYTES, PlanPosition, PlanToken, parse_token
from tests.support.tier.read_plans import (
    DELETING,
    EXAMPLE,
    ORDERS,
    STARTED,
    gaps,
    origin,
    plan_of,
    rows,
    segment,
    shard_with,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.segment import SegmentMetadata
    from tests.support.tier.read_plans import Row

    Change = Callable[[dict[str, Any]], None]
    Gap = tuple[int, int | None, GapReason]


def resealed(change: Change) -> bytes:
    said = json.loads(format_plan(EXAMPLE))
    change(said)
    said["checksum"] = checksum_of(said)
    return json.dumps(said).encode()


def test_document_when_it_is_written_then_has_rows_on_lines_of_their_own() -> None:
    """The document has one line for each row, for text comparison."""
    content = format_plan(EXAMPLE)
    said = json.loads(content)
    assert said["format"] == "rlmm-frozen-plan"
    assert content.count(b'\n  {"topic"') == len(said["segments"]) + len(said["partitions"])
    assert list(said)[:3] == ["format", "version", "token"]
    assert said["segments"][0]["read_first_offset"] >= 2
    assert parse_plan(content) == EXAMPLE
    assert parse_plan(json.dumps(said, indent=3).encode()) == EXAMPLE  # however it is laid out


def test_table_when_it_is_written_then_any_reader_finds_columns_and_head() -> None:
    """The table has readable rows and columns, with the plan's head in the file metadata."""
    content = format_parquet(EXAMPLE)
    table = pq.read_table(BytesIO(content))
    rows = json.loads(format_plan(EXAMPLE))["segments"]
    assert table.num_rows == len(rows)
    assert table.column("read_last_offset").to_pylist() == [one["read_last_offset"] for one in rows]
    assert set(table.column("token").to_pylist()) == {EXAMPLE.token}
    head = json.loads(pq.read_metadata(BytesIO(content)).metadata[HEAD])
    assert head["partitions"][0]["gaps"]
    assert parse_parquet(content) == EXAMPLE
    assert format_parquet(EXAMPLE) == content


def assert_refused(found: object, fault: PlanFault) -> None:
    assert isinstance(found, ReadPlanUnreadable)
    assert found.fault is fault, found
    assert str(found).startswith("it is no frozen plan (")


def _set(path: str, value: Any) -> Change:
    def change(said: dict[str, Any]) -> None:
        *way, last = path.split(".")
        at: Any = said
        for name in way:
            at = at[int(name) if name.isdigit() else name]
        at[int(last) if last.isdigit() else last] = value

    return change


CONTRADICTION, WRONG = PlanFault.CONTRADICTION, PlanFault.FIELD_WRONG
CHANGED = PlanFault.CHANGED
REFUSED: dict[str, tuple[Change, PlanFault]] = {
    "read outside itself": (_set("segments.0.read_last_offset", 10**6), CONTRADICTION),
    "ranges and gaps": (_set("segments.0.read_first_offset", 9), CONTRADICTION),
    "is not asked": (_set("partitions.0.asked", [[0, 1]]), CONTRADICTION),
    "a gap is gone": (_set("partitions.0.gaps", []), CONTRADICTION),
    "an end in the middle": (_set("partitions.0.gaps.0.next_offset", None), CONTRADICTION),
    "twice": (lambda said: said["partitions"].append(said["partitions"][0]), CONTRADICTION),
    "nobody's": (
        lambda said: said["segments"].append(said["segments"][0] | {"topic": "b"}), CONTRADICTION,
    ),
    "token": (_set("token", "rlmm-plan-1.AAAA"), WRONG),
    "positions": (_set("positions", [[1, 1], [0, 1]]), WRONG),
    "positions of text": (_set("positions", [["a", 1]]), WRONG),
    "id in another form": (_set("segments.0.segment_id", "A" * 21 + "B"), WRONG),
    "long key": (_set("segments.0.log_key", "k" * 9_999), WRONG),
    "reason": (_set("partitions.0.gaps.0.reason", "lost"), WRONG),
    "a row is none": (_set("segments.0", 7), WRONG),
    "pattern": (_set("question.pattern", "("), WRONG),
    "assigned": (_set("question.assigned", [["orders", "0"]]), WRONG),
    "log starts": (_set("facts.log_starts", [["orders"]]), WRONG),
    "sums": (_set("sums.segments", 99), CHANGED),
    "another plan's token": (_set("token", plan_of(shard_with()).token), CHANGED),
    "a key that is changed": (_set("segments.0.log_key", "elsewhere"), CHANGED),
}  # fmt: skip


@pytest.mark.parametrize(("change", "fault"), REFUSED.values(), ids=REFUSED)
def test_document_when_wrong_or_contradicting_is_refused(change: Change, fault: PlanFault) -> None:
    """A wrong field, or a contradiction, under a right checksum is refused with its fault."""
    assert_refused(parse_plan(resealed(change)), fault)


def test_document_when_it_was_changed_then_its_checksum_tells() -> None:
    """A plan with one changed digit is refused by its checksum."""
    content = format_plan(EXAMPLE).replace(b'"size_bytes": 1004', b'"size_bytes": 1003')
    assert_refused(parse_plan(content), PlanFault.CHANGED)
    said = json.loads(format_plan(EXAMPLE)) | {"checksum": "0" * 64}
    assert parse_plan(json.dumps(said).encode()) == ReadPlanUnreadable(
        PlanFault.CHANGED, "its checksum is not that of its content"
    )


def test_document_when_too_large_is_not_written_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document beyond the limit is neither written nor parsed."""
    content = format_plan(EXAMPLE)
    monkeypatch.setattr(document, "VALUES_MAX", 100)
    assert_refused(parse_plan(content), PlanFault.TOO_LARGE)
    monkeypatch.setattr(document, "DOCUMENT_BYTES_MAX", 100)
    with pytest.raises(InvalidArgument, match="Parquet"):
        format_plan(EXAMPLE)


def _table(**changes: Any) -> bytes:
    content = format_parquet(EXAMPLE)
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
    count = pq.read_table(BytesIO(format_parquet(EXAMPLE))).num_rows
    keys = pa.array(["elsewhere"] * count)
    cases = {
        PlanFault.CHANGED: _table(log_key=keys),
        PlanFault.CONTRADICTION: _table(token=keys),
        PlanFault.OTHER_FORMAT: _table(partition=pa.array([0.0] * count)),
    }
    for fault, content in cases.items():
        assert_refused(parse_parquet(content), fault)


def test_table_when_it_is_another_then_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no table, another program's table, or one of too many rows is refused."""
    out = BytesIO()
    pq.write_table(pa.table({"a": [1]}), out)
    assert parse_parquet(out.getvalue()).fault is PlanFault.OTHER_FORMAT  # type: ignore[union-attr]
    for content in (b"", b"PAR1", b"PAR1" + bytes(50) + b"PAR1", format_plan(EXAMPLE)):
        assert_refused(parse_parquet(content), PlanFault.NOT_PARQUET)
    monkeypatch.setattr(parquet, "ROWS_MAX", 1)
    assert_refused(parse_parquet(format_parquet(EXAMPLE)), PlanFault.TOO_LARGE)


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


def test_token_when_partitions_are_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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


OTHER_ID = Uuid(bytes(range(100, 116)))


def test_since_when_segments_came_then_only_these_are_new() -> None:
    """Segments copied since, also into earlier gaps, are new; those copied again are not."""
    copied = (segment(1, 0, 99), segment(3, 200, 249))
    first = plan_of(shard_with(*copied, segment(2, 100, 199, state=STARTED)))
    late = (segment(2, 100, 199), segment(4, 0, 120), segment(5, 240, 299))
    after = shard_with(*copied, *late)
    new = plan_of(after, since=parse_token(first.token))
    assert rows(new) == [(2, 100, 199), (5, 250, 299)]
    assert new.since == first.token
    assert new.partitions[0].asked == ((100, 200), (250, 300))
    nothing = plan_of(after, since=parse_token(new.token))
    assert rows(nothing) == []
    assert gaps(nothing) == []


FIRST, ANEW = segment(1, 0, 99), replace(ORDERS, topic_id=OTHER_ID)
BESIDE = segment(2, 0, 9, of=replace(ORDERS, partition=1))
SINCE: dict[str, tuple[list[SegmentMetadata], list[Row], list[Gap], tuple[str, ...]]] = {
    "expired unread": (
        [segment(3, 200, 299)], [(3, 200, 299)], [(100, 200, GapReason.BELOW_TIER)], (),
    ),
    "all gone": (
        [segment(1, 0, 99, state=DELETING)], [], [],
        ("orders-0: the tier has nothing of it any more; it was planned up to 99",),
    ),
    "topic made anew": (
        [segment(2, 0, 49, of=ANEW)], [(2, 0, 49)], [],
        (f"orders-0: topic id {ORDERS.topic_id} is not there any more; the topic was made anew: "
         f"{OTHER_ID}",),
    ),
    "partition new": ([FIRST, BESIDE], [(2, 0, 9)], [], ()),
}  # fmt: skip


@pytest.mark.parametrize(("later", "read", "missing", "warnings"), SINCE.values(), ids=SINCE)
def test_since_when_the_tier_has_changed_then_what_is_new_or_gone_is_named(
    later: list[SegmentMetadata], read: list[Row], missing: list[Gap], warnings: tuple[str, ...]
) -> None:
    """What expired unread is a gap, a gone partition or topic a warning, and the rest is new."""
    found = plan_of(shard_with(*later), since=parse_token(plan_of(shard_with(FIRST)).token))
    assert (rows(found), gaps(found), found.warnings) == (read, missing, warnings)


def test_since_when_offsets_were_lacking_before_then_they_are_no_new_gap() -> None:
    """A gap is new once, and still missing in later plans; a gone partition may come back."""
    later = shard_with(segment(3, 200, 299))
    second = plan_of(later, since=parse_token(plan_of(shard_with(FIRST)).token))
    third = plan_of(later, since=parse_token(second.token))
    assert gaps(third) == []
    assert third.warnings == (
        "orders-0: 100 offsets that the plan before lacked are still not there",
    )
    gone = plan_of(
        shard_with(segment(1, 0, 99, state=DELETING)),
        since=parse_token(plan_of(shard_with(FIRST)).token),
    )
    back = plan_of(shard_with(segment(9, 300, 399)), since=parse_token(gone.token))
    assert gaps(back) == [(100, 300, GapReason.BELOW_TIER)]


def test_since_when_an_older_segment_is_tiered_later_then_it_is_new() -> None:
    """An older segment tiered later is new behind a plan that began at the tier's start."""
    later = shard_with(segment(2, 50, 99), segment(3, 100, 149), segment(1, 20, 49))
    open_begin = plan_of(shard_with(segment(2, 50, 99)))
    assert rows(plan_of(later, since=parse_token(open_begin.token))) == [(1, 20, 49), (3, 100, 149)]
    question = Question(bounds=RecordBounds(from_offset=50))
    told = plan_of(shard_with(segment(2, 50, 99)), question)
    assert rows(plan_of(later, question, since=parse_token(told.token))) == [(3, 100, 149)]


def test_since_when_the_token_is_of_other_metadata_then_is_refused() -> None:
    """A token of other metadata is refused, because its offsets mean nothing here."""
    plan = plan_of(shard_with(segment(1, 0, 99)))
    inputs = [PartitionInput(ORDERS, shard_with, 0)]
    for changed in ({"cluster_id": "another"}, {"metadata_topic_id": OTHER_ID}):
        other = replace(origin(), **changed)
        with pytest.raises(InvalidArgument, match="and this is"):
            make_plan(Question(), inputs, other, QuestionFacts(), parse_token(plan.token))
