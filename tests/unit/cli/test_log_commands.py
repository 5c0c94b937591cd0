"""`rlmm history`, `events`, `diff` and `explain` as they are typed, and the answer of `diff`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.diff import diff_answer
from rlmm.errors import LogTruncated
from rlmm.inspection.selectors import EVERYTHING, MomentSelector, partition_filter
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import command_on, looking_at, printed, valid_document_of
from tests.support.cli.metadata_history import START_MS, History
from tests.support.cli.recorded_outputs import require_golden

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext

OTHER = tp("other", 2)
BEGIN = MomentSelector(time_ms=START_MS + 3_500)


async def a_history() -> History:
    history = History()
    await history.add(
        started(1, 0, 99), finished(1), started(2, 100, 199), started(3, 200, 299),
        finished(2), finished("nobody"), delete_started(1), delete_started(3), delete_finished(3),
        started(segment_id(9, OTHER), 0, 9),
        partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, OTHER),
    )  # fmt: skip
    return history


async def asked(
    looking: QueryContext,
    begin: MomentSelector = BEGIN,
    to: MomentSelector | None = None,
    **more: Any,
) -> Any:
    answer = await diff_answer(looking, begin=begin, to=to, wanted=EVERYTHING, **more)
    return await valid_document_of(answer)


def rows(document: Any) -> list[tuple[str, str, Any]]:
    return [
        (one["topic"], one["change"], one["start_offset"] if one["epoch"] is None else "epoch")
        for one in document["items"]
    ]


async def test_diff_tells_every_change_and_counts_them() -> None:
    """The diff lists changes by place, partition and offset, with the events between."""
    document = await asked(looking_at(await a_history()))
    assert sorted(rows(document), key=str) == sorted(
        [
            ("orders", "watermark", "epoch"),
            ("orders", "segment-being-deleted", 0),
            ("orders", "segment-finished", 100),
            ("orders", "segment-gone", 200),
            ("other", "partition-appeared", None),
            ("other", "partition-delete", None),
            ("other", "segment-appeared", 0),
        ],
        key=str,
    )
    changes = {name: count for name, count in document["changes"].items() if count}
    assert changes == {
        "partition-appeared": 1, "partition-delete": 1, "segment-appeared": 1,
        "segment-finished": 1, "segment-being-deleted": 1, "segment-gone": 1, "watermark": 1,
    }  # fmt: skip
    assert document["events"] == {"applied": 6, "rejected": 1}
    assert (document["partitions"], document["size_before"], document["size_after"]) == (
        2, 3_072, 3_072
    )  # fmt: skip
    assert document["from_offsets"].keys() == document["to_offsets"].keys() == {"0", "1", "2"}


async def test_diff_golden_table() -> None:
    """The diff prints this table in 80 columns."""
    wanted = partition_filter("orders", None)
    answer = await diff_answer(looking_at(await a_history()), begin=BEGIN, to=None, wanted=wanted)
    require_golden("diff-of-a-partition.txt", await printed(answer))


async def test_diff_summary_is_one_line_for_each_user_partition() -> None:
    """The summary has the figures of both moments."""
    document = await asked(looking_at(await a_history()), is_summary=True)
    by_topic = {one["topic"]: one for one in document["items"]}
    assert by_topic["orders"]["before"] == {
        "started": 2, "finished": 1, "being_deleted": 0, "size_bytes": 3_072, "delete": None
    }  # fmt: skip
    assert by_topic["orders"]["after"] == {
        "started": 0, "finished": 1, "being_deleted": 1, "size_bytes": 2_048, "delete": None
    }  # fmt: skip
    assert by_topic["other"]["after"]["delete"] == "DELETE_PARTITION_MARKED"
    assert by_topic["orders"]["changes"]["segment-finished"] == 1
    answer = await diff_answer(
        looking_at(await a_history()), begin=BEGIN, to=None, wanted=EVERYTHING, is_summary=True
    )
    assert (await printed(answer)).startswith(
        "PARTITION  APPEARED  FINISHED  DELETING  GONE  SIZE BEFORE  SIZE AFTER\n"
    )


async def test_diff_between_offsets_reads_the_metadata_partitions_that_are_named() -> None:
    """The command reads only the named metadata partitions."""
    history = await a_history()
    place = next(n for n in range(3) if history.topic.partitions[n].next_offset > 8)
    begin, to = MomentSelector(offsets={place: 0}), MomentSelector(offsets={place: 1})
    document = await asked(looking_at(history), begin, to)
    assert rows(document) == [("orders", "watermark", "epoch"), ("orders", "segment-finished", 0)]
    assert document["from_offsets"] == {str(place): 0}
    assert document["to_offsets"] == {str(place): 1}
    one = await asked(
        looking_at(history), MomentSelector(offset=0), MomentSelector(offset=1), places=(place,)
    )
    assert one["items"] == document["items"]


async def test_diff_of_a_moment_with_itself_is_nothing() -> None:
    """The answer says that there is no difference."""
    looking = looking_at(await a_history())
    document = await asked(looking, BEGIN, BEGIN)
    assert (document["items"], document["partitions"], document["events"]) == ([], 0, {})
    answer = await diff_answer(looking, begin=BEGIN, to=BEGIN, wanted=EVERYTHING)
    assert (await printed(answer)).endswith("nothing has changed\n")


async def test_f65_diff_from_a_moment_that_the_log_does_not_hold_is_refused() -> None:
    """An empty state in its place would make everything look new."""
    history = await a_history()
    history.topic.partitions[2].truncate_head(5)
    with pytest.raises(LogTruncated, match="begins at offset 5"):
        await asked(looking_at(history), MomentSelector(offset=2), places=(2,))
    document = await asked(looking_at(history), MomentSelector(offset=5), places=(2,))
    assert "begins at offset 5" in document["notes"][0]


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
        (["events", "--follow", "--at", "2:3"], "--follow goes on from the present"),
        (["events", "--no-verdicts", "--verdict", "applied"], "--no-verdicts"),
        (["events", "--partition", "3"], "there is no metadata partition 3"),
        (["events", "--from", "5"], "--from PARTITION:5"),
        (["events", "--at", "99:4"], "there is no metadata partition 99"),
        (["events", "--from", "99:4"], "there is no metadata partition 99"),
        (["history", "orders-7", "--at", "99:4"], "there is no metadata partition 99"),
        (["history", A, "--from", "99:4"], "there is no metadata partition 99"),
        (["history", A, "--to", "3:4"], "there is no metadata partition 3"),
        (["history", A, "--metadata-partition", "3"], "there is no metadata partition 3"),
        (["history", "orders-7", "--at", "2:3", "--to", "2:1"], "--to and --at"),
        (["explain", "orders-7@50", "--at", "99:4"], "there is no metadata partition 99"),
        (["explain", "nobody-7@50", "--at", "99:4"], "there is no metadata partition 99"),
        (["diff", "--from", "99:4"], "there is no metadata partition 99"),
        (["diff"], "--from"),
        (["diff", "--from", "5"], "say which, --from PARTITION:5"),
        (["diff", "--from", "2023-11-15", "--to", "2023-11-14"], "--to lies before --from"),
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
