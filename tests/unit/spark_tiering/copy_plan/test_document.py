"""A plan as a document, written for people and read back strictly, and in a few lines."""

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
from spark_tiering.copy_plan.plan import CopyPlan, total_sums
from spark_tiering.copy_plan.summary import LINES_OF_EACH_MAX, size_text, summary
from tests.support.builders import tp
from tests.support.tier.copy_plans import cut, example_plan, plan_of, source

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
    assert parse_plan(rewritten(lambda _: None)) == PLAN


def test_document_when_people_read_it_then_has_sums_at_the_top_and_a_line_for_each_copy() -> None:
    """The document puts its totals before the lines of its copies."""
    content = format_plan(PLAN)
    top = ["format", "version", "fingerprint", "mode", "madeAtMs", "sums"]
    assert list(json.loads(content))[:6] == top
    lines = content.decode().splitlines()
    assert sum('"turn": ' in line for line in lines) == len(PLAN.in_turn()) == 5
    assert all(line.count('"turn": ') <= 1 for line in lines)
    assert lines.index(' "sums": {') < lines.index(' "partitions": [')


def test_sums_when_added_up_then_are_those_of_the_parts() -> None:
    """Totals by action, reason and topic equal the sums of the parts."""
    sums = total_sums(PLAN)
    assert sums.by_action == {"copy": 4, "resume": 0, "complete": 1}
    assert (sums.ends, sums.left_open, sums.missing_offsets) == (1, 1, 50)
    assert sums.cost == PLAN.cost == (4400, 12, 32)
    said = fields_of(PLAN)["sums"]
    for name in ("copy", "complete", "end", "bytes", "objects", "requests", "missingOffsets"):
        assert said[name] == sum(topic[name] for topic in said["topics"])


def test_fingerprint_when_anything_is_other_then_is_other() -> None:
    """The fingerprint differs for other rules, metadata or content, not for another order."""
    others = [
        replace(PLAN, cluster_id="cluster-2"),
        replace(PLAN, rules=replace(PLAN.rules, now_ms=5)),
        replace(PLAN, positions={**PLAN.positions, 1: 11}),
        replace(PLAN, partitions=PLAN.partitions[:2]),
    ]
    assert len({fingerprint(one) for one in [PLAN, *others]}) == 5
    mixed = dict(sorted(PLAN.positions.items(), reverse=True))
    assert fingerprint(replace(PLAN, positions=mixed)) == fingerprint(PLAN)


WRITTEN = format_plan(PLAN)
NO_PLANS = {
    "name twice": (b'{"a": 1, "a": 1}', "twice"),
    "other": (b'{"format": "x", "version": 1}', "expected rlmm-copy-plan"),
    "cut": (WRITTEN[:-9], "not JSON"),
    "version": (WRITTEN.replace(b'"version": 1', b'"version": 2'), "version 1"),
    "sum": (WRITTEN.replace(b"4400", b"4401"), "sums"),
    "edited": (WRITTEN.replace(b'"start": 300', b'"start": 301'), "changed"),
}


@pytest.mark.parametrize(("content", "text"), NO_PLANS.values(), ids=NO_PLANS)
def test_document_when_it_is_no_plan_then_one_line_says_why(content: bytes, text: str) -> None:
    """A document that is no plan gives one line with the reason, and none of it is used."""
    assert text in refusal(content)


def set_at(path: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Return a change of the value at *path*, its steps separated by spaces."""

    def change(loaded: dict[str, Any]) -> None:
        inner: Any = loaded
        *way, last = (int(step) if step.isdigit() else step for step in path.split())
        for step in way:
            inner = inner[step]
        inner[last] = value

    return change


PARTITION = f"partitions {ORDERS}"
COPY = f"{PARTITION} copies 1"
MADE_UP = {
    "field unknown": (set_at("more", 1), "plan.more"),
    "field missing": (lambda found: found.pop("sums"), "plan.sums"),
    "mode": (set_at("mode", "destroy"), "plan.mode"),
    "number too large": (set_at("madeAtMs", 2**63), "madeAtMs"),
    "escape": (set_at("rules topics", ["a\x1b[2J"]), "topics"),
    "two lines": (set_at("rules prefix", "a\nb"), "prefix"),
    "pattern": (set_at("rules topics", ["a/b"]), "no topic"),
    "row": (set_at("metadata positions", [[0]]), "positions"),
    "no position": (set_at("metadata positions", [[0, 1]]), "position"),
    "id": (set_at(f"{COPY} id", "x"), "22 characters"),
    "id's spare bits": (set_at(f"{COPY} id", "AAAAAAAAAAcAAAAAAAAAAR"), "expected"),
    "id twice": (set_at(f"{COPY} id", "AAAAAAAAAAcAAAAAAAAAAg"), "one id"),
    "action": (set_at(f"{COPY} action", "delete"), "action"),
    "turn out of order": (set_at(f"{COPY} turn", 7), "rise"),
    "turn": (set_at("partitions 0 copies 1 turn", 9), "turns are not"),
    "overlap": (set_at(f"{COPY} last", 300), "rise"),
    "backwards": (set_at(f"{COPY} last", 10), "ends before"),
    "epochs": (set_at(f"{COPY} epochs", [[3, 250], [0, 200]]), "epochs"),
    "epochs above": (set_at(f"{COPY} epochs", [[0, 201]]), "epochs"),
    "no epochs": (set_at(f"{COPY} epochs", []), "epochs"),
    "cheap": (set_at(f"{COPY} requests", 1), "costs"),
    "large": (set_at(f"{COPY} logBytes", 2**31), "logBytes"),
    "topic": (set_at(f"{PARTITION} topic", "../up"), "a topic name is"),
    "partition": (set_at(f"{PARTITION} partition", -1), "partition"),
    "order": (set_at(f"{PARTITION} topic", "a"), "order"),
    "no digest": (set_at(f"{PARTITION} imageDigest", None), "metadata"),
    "odd hex": (set_at(f"{PARTITION} ends 0 customMetadata", "0"), "hexadecimal"),
    "cheap end": (set_at(f"{PARTITION} ends 0 requests", 0), "costs"),
    "over budget": (set_at("rules bytesMax", 10), "budgets"),
    "twice": (lambda found: found["partitions"].append(found["partitions"][0]), "twice"),
    "sum as flag": (set_at("sums copy", value=True), "changed"),
}


@pytest.mark.parametrize(("change", "text"), MADE_UP.values(), ids=MADE_UP)
def test_document_made_up_is_refused(change: Callable[[dict[str, Any]], object], text: str) -> None:
    """A made-up document with a right fingerprint is refused with the place of its fault."""
    assert text in refusal(rewritten(change))


def test_document_when_too_long_is_not_written_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_summary_when_read_then_says_what_is_done_and_what_is_not_and_why() -> None:
    """The summary has a line for each total, topic, reason, gap and open copy."""
    plan = example_plan()
    lines = summary(plan).splitlines()
    assert lines[0] == f"plan {fingerprint(plan)[:16]}: archive, made 2023-11-14 22:13:20 UTC"
    assert lines[1].startswith(
        "  4 to copy, 1 to complete, 1 open copies to end (4.3 KiB); 0 there"
    )
    assert "  in all 4.3 KiB, 12 objects, at most 32 requests" in lines
    assert "  logs: 2 to copy (2.1 KiB); 0 there already, 0 left out (0 B)" in lines
    assert "  left out, topic-not-wanted: 1 segments, 1000 B" in lines
    assert "  gap: orders-0 lacks 0 to 49, below the oldest copy" in lines
    assert any(line.startswith("  stays open: orders-0 0 to 89, not-ours: ") for line in lines)


def test_summary_when_there_is_much_then_stays_short() -> None:
    """A summary of many topics and gaps counts those beyond the first ones."""
    partitions = [tp(f"topic-{number:03}", 0) for number in range(100)]
    plan = plan_of([source(cut(5, 10), partition=one) for one in partitions])
    lines = summary(plan).splitlines()
    assert len(lines) == 3 + 2 * (LINES_OF_EACH_MAX + 1)
    assert "  ... and 80 more topics" in lines
    assert "  ... and 80 more gaps" in lines


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**31, "2.0 GiB"), (2**63, "8.0 EiB")],
)
def test_sizes_when_shown_then_have_the_unit_that_people_use(size_bytes: int, text: str) -> None:
    """Sizes are shown in powers of 1024."""
    assert size_text(size_bytes) == text
