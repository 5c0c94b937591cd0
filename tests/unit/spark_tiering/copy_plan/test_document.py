"""A plan as a document: written for people, read back strictly."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.copy_plan import document
from spark_tiering.copy_plan.document import (
    CopyPlanUnreadable,
    fields_of,
    fingerprint,
    format_plan,
    parse_plan,
)
from spark_tiering.copy_plan.plan import CopyPlan
from spark_tiering.copy_plan.totals import total_sums
from tests.support.tier.copy_plans import example_plan

if TYPE_CHECKING:
    from collections.abc import Callable

PLAN = example_plan()
ORDERS = 1
"""Where the partition with something of everything stands."""


def rewritten(change: Callable[[dict[str, Any]], object]) -> bytes:
    loaded = json.loads(format_plan(PLAN))
    change(loaded)
    said = {name: value for name, value in loaded.items() if name != "fingerprint"}
    compact = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
    loaded["fingerprint"] = hashlib.sha256(compact.encode()).hexdigest()
    return json.dumps(loaded).encode()


def refusal(content: bytes) -> str:
    found = parse_plan(content)
    assert isinstance(found, CopyPlanUnreadable)
    assert len(str(found)) < 800
    return found.detail


def test_document_when_read_back_then_is_the_same_plan() -> None:
    """A document reads back as the same plan, in any layout, and is written again byte for byte."""
    content = format_plan(PLAN)
    assert parse_plan(content) == PLAN
    read = parse_plan(json.dumps(dict(reversed(json.loads(content).items()))).encode())
    assert isinstance(read, CopyPlan)
    assert format_plan(read) == content
    assert fingerprint(read) == fingerprint(PLAN)


def test_document_when_people_read_it_then_has_sums_at_the_top_and_a_line_for_each_copy() -> None:
    """The document puts its totals before the lines of its copies."""
    content = format_plan(PLAN)
    assert list(json.loads(content))[:6] == [
        "format",
        "version",
        "fingerprint",
        "mode",
        "madeAtMs",
        "sums",
    ]
    lines = content.decode().splitlines()
    assert sum('"turn": ' in line for line in lines) == len(PLAN.in_turn()) == 5
    assert all(line.count('"turn": ') <= 1 for line in lines)
    assert lines.index(' "sums": {') < lines.index(' "partitions": [')


def test_document_of_an_example_when_written_then_is_this_one() -> None:
    """
    The document of an example has the recorded form and order, whose change needs a new version.
    """
    assert document.VERSION == 1
    assert fingerprint(PLAN) == "5d01fd26bd51ab7ca4e8e4fca217d4f98b493ef23446f0e53ea6a52855c7bfca"


def test_sums_when_added_up_then_are_those_of_the_parts() -> None:
    """Totals by action, reason and topic equal the sums of the parts."""
    sums = total_sums(PLAN)
    assert {action.value: count for action, count in sums.by_action.items()} == {
        "copy": 4,
        "resume": 0,
        "complete": 1,
    }
    assert (sums.ends, sums.left_open, sums.missing_offsets) == (1, 1, 50)
    assert sums.cost == PLAN.cost == (4400, 12, 32)
    said = fields_of(PLAN)["sums"]
    for name in ("copy", "complete", "end", "bytes", "objects", "requests", "missingOffsets"):
        assert said[name] == sum(topic[name] for topic in said["topics"])


def test_fingerprint_when_anything_is_other_then_is_other() -> None:
    """The fingerprint differs for other rules, metadata or content."""
    others = [
        replace(PLAN, cluster_id="cluster-2"),
        replace(PLAN, rules=replace(PLAN.rules, now_ms=5)),
        replace(PLAN, positions={**PLAN.positions, 1: 11}),
        replace(PLAN, partitions=PLAN.partitions[:2]),
    ]
    assert len({fingerprint(one) for one in [PLAN, *others]}) == 5


def test_fingerprint_when_positions_were_told_in_another_order_then_is_the_same() -> None:
    """The fingerprint does not depend on the order of metadata partitions."""
    mixed = dict(sorted(PLAN.positions.items(), reverse=True))
    assert fingerprint(replace(PLAN, positions=mixed)) == fingerprint(PLAN)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(b"", "not JSON", id="nothing"),
        pytest.param(b"\xff\xfe", "not JSON", id="no UTF-8"),
        pytest.param(b"[]", "expected an object", id="list"),
        pytest.param(b"[" * 100_000, "not JSON", id="deep"),
        pytest.param(b'{"a": 1, "a": 1}', "twice", id="name twice"),
        pytest.param(b'{"format": NaN}', "no number", id="NaN"),
        pytest.param(b'{"format": 1' + b"0" * 5000 + b"}", "not JSON", id="digits"),
        pytest.param(b"{}", "expected rlmm-copy-plan", id="empty"),
        pytest.param(b'{"format": "x", "version": 1}', "expected rlmm-copy-plan", id="other"),
        pytest.param(format_plan(PLAN)[:-9], "not JSON", id="cut"),
        pytest.param(
            format_plan(PLAN).replace(b'"version": 1', b'"version": 2'), "version 1", id="version"
        ),
        pytest.param(format_plan(PLAN).replace(b"4400", b"4401"), "sums", id="sum"),
        pytest.param(
            format_plan(PLAN).replace(b'"start": 300', b'"start": 301'), "changed", id="edited"
        ),
    ],
)
def test_document_when_it_is_no_plan_then_one_line_says_why(content: bytes, text: str) -> None:
    """A document that is no plan gives one line with the reason, and none of it is used."""
    assert text in refusal(content)


def set_at(*path: str | int, value: object) -> Callable[[dict[str, Any]], object]:
    """Return a change of the value at *path*."""

    def change(loaded: dict[str, Any]) -> None:
        inner: Any = loaded
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value

    return change


COPY = ("partitions", ORDERS, "copies", 1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(set_at("more", value=1), "plan.more", id="field unknown"),
        pytest.param(lambda found: found.pop("sums"), "plan.sums", id="field missing"),
        pytest.param(set_at("mode", value="destroy"), "plan.mode", id="mode"),
        pytest.param(set_at("mode", value=["archive"]), "plan.mode", id="mode no text"),
        pytest.param(set_at("madeAtMs", value="5"), "madeAtMs", id="number as text"),
        pytest.param(set_at("madeAtMs", value=5.0), "madeAtMs", id="number with a point"),
        pytest.param(set_at("madeAtMs", value=True), "madeAtMs", id="number as flag"),
        pytest.param(set_at("madeAtMs", value=2**63), "madeAtMs", id="number too large"),
        pytest.param(set_at("rules", "topics", value=["a\x1b[2J"]), "topics", id="escape"),
        pytest.param(set_at("rules", "prefix", value="a\nb"), "prefix", id="two lines"),
        pytest.param(set_at("rules", "topics", value=["a/b"]), "no topic", id="pattern"),
        pytest.param(set_at("metadata", "positions", value=[[0]]), "positions", id="row"),
        pytest.param(set_at("metadata", "positions", value=[[0, 1]]), "position", id="no position"),
        pytest.param(set_at(*COPY, "id", value="x"), "22 characters", id="id"),
        pytest.param(
            set_at(*COPY, "id", value="AAAAAAAAAAcAAAAAAAAAAR"), "expected", id="id's spare bits"
        ),
        pytest.param(set_at(*COPY, "id", value="AAAAAAAAAAcAAAAAAAAAAg"), "one id", id="id twice"),
        pytest.param(set_at(*COPY, "action", value="delete"), "action", id="action"),
        pytest.param(set_at(*COPY, "turn", value=7), "rise", id="turn out of order"),
        pytest.param(
            set_at("partitions", 0, "copies", 1, "turn", value=9), "turns are not", id="turn"
        ),
        pytest.param(set_at(*COPY, "last", value=300), "rise", id="overlap"),
        pytest.param(set_at(*COPY, "last", value=10), "ends before", id="backwards"),
        pytest.param(set_at(*COPY, "epochs", value=[[3, 250], [0, 200]]), "epochs", id="epochs"),
        pytest.param(set_at(*COPY, "epochs", value=[[2**31, 200]]), "epochs", id="epoch"),
        pytest.param(set_at(*COPY, "epochs", value=[]), "epochs", id="no epochs"),
        pytest.param(set_at(*COPY, "epochs", value=[[0, 201]]), "epochs", id="epochs above"),
        pytest.param(set_at(*COPY, "requests", value=1), "costs", id="cheap"),
        pytest.param(set_at(*COPY, "logBytes", value=2**31), "logBytes", id="large"),
        pytest.param(set_at(*COPY[:2], "topic", value="../up"), "no broker", id="topic"),
        pytest.param(set_at(*COPY[:2], "partition", value=-1), "partition", id="partition"),
        pytest.param(set_at(*COPY[:2], "topic", value="a"), "order", id="order"),
        pytest.param(set_at(*COPY[:2], "imageDigest", value=None), "metadata", id="no digest"),
        pytest.param(
            set_at(*COPY[:2], "ends", 0, "customMetadata", value="0"), "hexadecimal", id="odd hex"
        ),
        pytest.param(set_at(*COPY[:2], "ends", 0, "requests", value=0), "costs", id="cheap end"),
        pytest.param(set_at("rules", "bytesMax", value=10), "budgets", id="over budget"),
        pytest.param(
            lambda found: found["partitions"].append(found["partitions"][0]), "twice", id="twice"
        ),
        pytest.param(set_at("sums", "copy", value=True), "changed", id="sum as flag"),
    ],
)
def test_document_when_somebody_made_it_up_then_is_refused_with_the_place(
    change: Callable[[dict[str, Any]], object], text: str
) -> None:
    """A made-up document with a right fingerprint is refused with the place of its fault."""
    assert text in refusal(rewritten(change))


def test_document_when_nothing_is_changed_then_a_rewritten_one_is_the_plan() -> None:
    """A rewritten document without a change is the same plan."""
    assert parse_plan(rewritten(lambda _: None)) == PLAN


def test_document_when_it_is_too_long_then_is_neither_written_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A document beyond the size limit is neither written nor read."""
    content = format_plan(PLAN)
    monkeypatch.setattr(document, "DOCUMENT_BYTES_MAX", 1000)
    assert "at most 1000" in refusal(content)
    monkeypatch.undo()
    monkeypatch.setattr(document, "VALUES_MAX", 100)
    assert "at most 100 are read" in refusal(content)
    monkeypatch.setattr(document, "DOCUMENT_BYTES_MAX", 1000)
    with pytest.raises(InvalidArgument, match="plan less"):
        format_plan(PLAN)


def test_document_when_compacted_topics_are_wanted_then_says_so_and_is_another_plan() -> None:
    """A plan of compacted topics says so in its document and is a different plan."""
    filters = replace(PLAN.rules.filters, with_compacted=True)
    wanted = replace(PLAN, rules=replace(PLAN.rules, filters=filters))
    assert json.loads(format_plan(wanted))["rules"]["withCompacted"] is True
    assert parse_plan(format_plan(wanted)) == wanted
    assert fingerprint(wanted) != fingerprint(PLAN)
