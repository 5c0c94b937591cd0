"""`rlmm history`, `events`, `diff` and `explain` as they are typed: flags, outputs, exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlmm.metadata.ids import SegmentId, Uuid
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    segment_id,
    started,
    tp,
)
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import command_on
from tests.support.cli.recorded_outputs import require_golden

DASHED = Uuid(b"\xf8" + bytes(15))
"""Its text begins with a dash."""
A, B = str(segment_id("a").uuid), str(segment_id("b").uuid)
EVENTS = (
    finished("a", broker_id=2),
    started("a", 0, 200, {0: 0, 3: 150}, size_bytes=5_000), finished("a", broker_id=2),
    started("b", 0, 100, size_bytes=2_000), finished("b"),
    started("c", 300, 399), finished("c"), delete_started("c", broker_id=3),
    delete_finished("c", broker_id=3),
    started(SegmentId(tp("other", 1), DASHED), 0, 9),
)  # fmt: skip


def result_of(*words: str, **environ: str) -> Any:
    return command_on(EVENTS, *words, **environ)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("history-segment", ["history", A]),
        ("history-partition", ["history", "orders-7"]),
        ("events", ["events", "--topic", "orders"]),
        ("diff", ["diff", "--from", "2:3", "--to", "2:8"]),
        ("diff-summary", ["diff", "--from", "2:3", "--to", "2:8", "--summary"]),
        ("explain-found", ["explain", "orders-7@50"]),
        ("explain-hidden", ["explain", "orders-7@120", "--prefix", "tier/"]),
        ("explain-deleted", ["explain", "orders-7@350"]),
    ],
)
def test_command_when_asked_prints_what_it_printed_before(name: str, words: list[str]) -> None:
    """The table and the document of each command, to the letter; the document by its schema."""
    table = result_of(*words, "--output", "table")
    assert table.exit_code in {0, 1}, table.stderr
    require_golden(f"{name}.txt", table.stdout)
    whole = result_of(*words, "--output", "json")
    require_valid(json.loads(whole.stdout))
    require_golden(f"{name}.json", whole.stdout)


@pytest.mark.parametrize(
    "words",
    [["history", "orders-7"], ["events"], ["diff", "--from", "2:3"], ["explain", "orders-7@350"]],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("output", ["jsonl", "csv", "tsv", "yaml"])
def test_command_in_every_output_has_the_same_rows(words: list[str], output: str) -> None:
    """A line each, below the names where there are some."""
    items = json.loads(result_of(*words, "--output", "json").stdout)["items"]
    assert items
    printed = result_of(*words, "--output", output).stdout
    if output == "yaml":
        assert printed.count("\n- ") == len(items)
    else:
        assert len(printed.splitlines()) == len(items) + (output != "jsonl")


def test_history_of_an_id_that_begins_with_a_dash_is_an_option() -> None:
    """An id with a leading dash is the value of an option, or stands behind a double dash."""
    for words in (["--segment-id", str(DASHED)], ["--", str(DASHED)]):
        result = result_of("history", "--output", "json", *words)
        assert result.exit_code == 0, result.stderr
        assert [one["segment_id"] for one in json.loads(result.stdout)["items"]] == [str(DASHED)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["history"], "Name one segment or partition"),
        (["history", A, "--segment-id", B], "Name one segment or partition"),
        (["history", "a b"], "neither a partition"),
        (["history", A, "--limit", "1", "--last", "1"], "--limit and --last"),
        (["history", A, "--from", "soon"], "is no moment"),
        (["events", "--verdict", "refused"], "no verdict is 'refused'"),
        (["events", "--kind", "poison"], "is not one of"),
        (["events", "--segment-id", "EBES"], "takes the whole id"),
        (["events", "--topic", "(", ], "is no regular expression"),
        (["events", "--topic", "a", "--topic-partitions", "a:1"], "give one of them"),
        (["events", "--follow"], "copied folders do not grow"),
        (["events", "--from", "5"], "--from PARTITION:5"),
        (["events", "--at", "99:4"], "there is no metadata partition 99"),
        (["events", "--from", "99:4"], "there is no metadata partition 99"),
        (["history", "orders-7", "--at", "99:4"], "there is no metadata partition 99"),
        (["history", A, "--from", "99:4"], "there is no metadata partition 99"),
        (["history", A, "--to", "3:4"], "there is no metadata partition 3"),
        (["explain", "orders-7@50", "--at", "99:4"], "there is no metadata partition 99"),
        (["explain", "nobody-7@50", "--at", "99:4"], "there is no metadata partition 99"),
        (["diff", "--from", "99:4"], "there is no metadata partition 99"),
        (["diff"], "--from"),
        (["diff", "--from", "2:8", "--to", "2:3"], "the second moment before the first"),
        (["explain", "orders-7"], "names no offset of a partition"),
        (["explain", "orders-7@1", "--check-objects"], "--check-objects and --store"),
        (["explain", "orders-7@1", "--region", "x"], "Without --check-objects"),
        (["explain", "orders-7@1", "--check-objects", "--store", "ftp://x"], "is no store"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_command_that_cannot_be_meant_says_so_and_ends_with_2(words: list[str], said: str) -> None:
    """A wrong command ends with one line, an empty standard output and exit code 2."""
    result = result_of(*words)
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_events_are_filtered_by_every_flag() -> None:
    """Each filter flag works, and together they must all match."""
    words = [
        "events", "--partition", "2", "--topic-partitions", "orders:7", "--kind", "update",
        "--state", "copy_segment_finished", "--verdict", "applied", "--broker", "2",
        "--segment-id", A, "--from", "2:1", "--to", "2:5", "--limit", "9",
    ]  # fmt: skip
    found = json.loads(result_of(*words, "--output", "json").stdout)
    assert [one["offset"] for one in found["items"]] == [2]


def test_flags_are_variables_of_the_environment_as_well() -> None:
    """Shared ones, and those of a command."""
    result = result_of("events", RLMM_OUTPUT="jsonl", RLMM_EVENTS_LIMIT="2")
    assert len(result.stdout.splitlines()) == 2


def test_explain_at_a_moment_ends_as_it_was_then() -> None:
    """The answer is that of the moment, before the hole existed."""
    assert result_of("explain", "orders-7@120").exit_code == 1
    assert result_of("explain", "orders-7@120", "--at", "2").exit_code == 0
    assert result_of("history", "orders-7", "--at", "2:1", "--quiet").exit_code == 0


def test_explain_of_what_is_readable_has_no_rows_and_its_help_says_so() -> None:
    """The answer has no rows, because everything about the offset is in the document."""
    assert result_of("explain", "orders-7@50", "--output", "jsonl").stdout == ""
    said = " ".join(result_of("explain", "--help").stdout.split())
    assert "findings, so a readable offset has none: all of it is in json and yaml." in said


def test_nothing_found_ends_with_an_error_line() -> None:
    """The error line names the subject that the command did not find."""
    result = result_of("history", str(Uuid.of(9, 9)))
    assert result.exit_code == 1
    assert result.stderr.startswith("rlmm: not-found: no event about")
