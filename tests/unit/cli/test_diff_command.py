"""`rlmm diff`: differences between two moments, and how the command prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.diff import diff_answer
from rlmm.errors import InvalidArgument, LogTruncated
from rlmm.inspection.selectors import EVERYTHING, MomentSelector, partition_filter
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
from tests.support.cli.memory_source import document_of, looking_at, printed
from tests.support.cli.metadata_history import START_MS, History

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
    document = await document_of(answer)
    require_valid(document)
    return document


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
    looking = looking_at(await a_history())
    wanted = partition_filter("orders", None)
    answer = await diff_answer(looking, begin=BEGIN, to=None, wanted=wanted)
    assert await printed(answer) == (
        "PARTITION  CHANGE         SEGMENT ID              WHAT\n"
        "orders-7   watermark      -                       epoch 0 reaches 99 -> 199\n"
        "orders-7   being-deleted  AAAAAAAAAAAAAAAAAAAAAQ  0-99, was COPY_FINISHED\n"
        "orders-7   finished       AAAAAAAAAAAAAAAAAAAAAg  100-199\n"
        "orders-7   gone           AAAAAAAAAAAAAAAAAAAAAw  200-299, was COPY_STARTED\n"
        "\n"
        "user partitions that changed: 1; 1 segment-finished, 1 segment-being-deleted, 1\n"
        "  segment-gone, 1 watermark\n"
        "their size: 3.0 KiB -> 2.0 KiB\n"
        "events in between: 6 applied, 1 rejected\n"
    )  # fmt: skip


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


async def test_diff_where_the_second_moment_is_the_earlier_one_is_refused() -> None:
    """The command refuses an earlier second moment, by time and by offset."""
    looking = looking_at(await a_history())
    with pytest.raises(InvalidArgument, match="--to lies before --from"):
        await asked(looking, BEGIN, MomentSelector(time_ms=START_MS))
    with pytest.raises(InvalidArgument, match="the second moment before the first"):
        await asked(looking, MomentSelector(offset=5), MomentSelector(offset=2), places=(2,))
    with pytest.raises(InvalidArgument, match="say which, --from PARTITION:5"):
        await asked(looking, MomentSelector(offset=5))
    with pytest.raises(InvalidArgument, match="there is no metadata partition 7"):
        await asked(looking, MomentSelector(offsets={7: 1}))


async def test_f65_diff_from_a_moment_that_the_log_does_not_hold_is_refused() -> None:
    """An empty state in its place would make everything look new."""
    history = await a_history()
    history.topic.partitions[2].truncate_head(5)
    with pytest.raises(LogTruncated, match="begins at offset 5"):
        await asked(looking_at(history), MomentSelector(offset=2), places=(2,))
    document = await asked(looking_at(history), MomentSelector(offset=5), places=(2,))
    assert "begins at offset 5" in document["notes"][0]
