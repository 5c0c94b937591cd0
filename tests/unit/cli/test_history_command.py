"""`rlmm history`: where the command looks for a subject, and what it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.history import history_answer
from rlmm.errors import InvalidArgument, NotFound
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.selectors import MomentSelector, PartitionLabel, SegmentLabel, parse_subject
from rlmm.inspection.source_status import StateSourceKind
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from tests.support.builders import (
    TOPIC_ID,
    delete_finished,
    delete_started,
    finished,
    segment_id,
    started,
    tp,
)
from tests.support.cli.memory_source import looking_at, printed, valid_document_of
from tests.support.cli.metadata_history import START_MS, History
from tests.support.cli.recorded_outputs import require_golden

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext

A = segment_id(1)
ID = str(A.uuid)
OTHER = tp("other", 1)


async def a_history() -> History:
    history = History()
    await history.add(
        finished(A), started(A, 0, 99), finished(A), started(2, 100, 199), finished(2),
        delete_started(A), delete_finished(A), started(segment_id(3, OTHER)),
        started(4, 100, 250), finished(4),
    )  # fmt: skip
    return history


async def asked(looking: QueryContext, text: str, **more: Any) -> Any:
    answer = await history_answer(looking, what=parse_subject(text), **more)
    return await valid_document_of(answer)


def offsets(document: Any) -> list[int]:
    return [one["offset"] for one in document["items"]]


async def test_f78_history_of_an_id_alone_is_found_wherever_it_is() -> None:
    """The command finds a deleted segment by its id alone, with events refused before its start."""
    document = await asked(looking_at(await a_history()), ID)
    rows = [(one["offset"], one["verdict"], one["reason"]) for one in document["items"]]
    assert rows[0] == (0, "rejected", "unknown-segment")
    assert [row[1] for row in rows[1:]] == ["applied"] * 4
    assert document["events"] == 5
    assert document["verdicts"] == {"applied": 4, "rejected": 1}
    assert document["items"][0]["detail"] == "absent -> COPY_SEGMENT_FINISHED"
    assert document["items"][1]["timestamp_ms"] == START_MS + 1_000
    assert [one["state_after"] for one in document["items"]][-2:] == [
        "DELETE_SEGMENT_STARTED", None
    ]  # fmt: skip
    assert document["notes"] == []


async def test_history_of_a_partition_is_every_event_of_it_with_who_lost_a_place() -> None:
    """The history has every event of the named partition and no event of another."""
    document = await asked(looking_at(await a_history()), "orders-7")
    assert offsets(document) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert document["items"][-1]["displaced"] == [
        {"segment_id": str(segment_id(2).uuid), "epochs": [0]}
    ]
    (place,) = document["as_of_offsets"]
    assert document["as_of_offsets"] == {place: 8}
    other = await asked(looking_at(await a_history()), "other-1")
    assert [one["segment_id"] for one in other["items"]] == [str(segment_id(3).uuid)]


async def test_history_golden_table_of_a_displaced_segment() -> None:
    """The table names the replacing segment, and undecodable bytes with the id."""
    history = await a_history()
    await history.add(encode(finished(2))[:-3], place=2)
    what = parse_subject(str(segment_id(2).uuid))
    answer = await history_answer(looking_at(history), what=what)
    require_golden("history-displaced.txt", await printed(answer))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"begin": MomentSelector(offset=3)}, [3, 4, 5, 6, 7, 8]),
        ({"begin": MomentSelector(time_ms=START_MS + 3_000)}, [3, 4, 5, 6, 7, 8]),
        ({"to": MomentSelector(offset=2)}, [0, 1, 2]),
        ({"to": MomentSelector(time_ms=START_MS + 2_500)}, [0, 1, 2]),
        ({"begin": MomentSelector(offset=1), "to": MomentSelector(offset=4), "limit": 2}, [1, 2]),
        ({"last": 2}, [7, 8]),
        ({"begin": MomentSelector(offset=99)}, []),
    ],
    ids=["from an offset", "from a time", "to an offset", "to a time", "some", "last", "none"],
)
async def test_history_between_bounds_shows_those_with_the_verdicts_of_all(
    more: dict[str, Any], expected: list[int]
) -> None:
    """Events before the lower bound are hidden and still count for the verdicts of later ones."""
    document = await asked(looking_at(await a_history()), "orders-7", place=2, **more)
    assert offsets(document) == expected
    assert {one["verdict"] for one in document["items"] if one["offset"]} <= {"applied"}


async def test_history_at_a_moment_ends_there() -> None:
    """The history ends at the moment of `--at`."""
    at = ReplayEnd(time_ms=START_MS + 2_500)
    looking = looking_at(await a_history(), bound=at)
    assert offsets(await asked(looking, "orders-7")) == [0, 1, 2]


async def test_history_of_nothing_says_so() -> None:
    """The answer says that there is no event, and that the log is trimmed if it is."""
    history = await a_history()
    unknown = str(Uuid.of(9, 9))
    with pytest.raises(NotFound, match=f"no event about {unknown} is in the log$"):
        await asked(looking_at(history), unknown)
    history.topic.partitions[2].truncate_head(1)
    with pytest.raises(NotFound, match="no event about nobody-1"):
        await asked(looking_at(history), "nobody-1")


async def test_f65_history_where_the_head_of_the_log_is_gone_says_so() -> None:
    """The history of a trimmed segment has only updates without their start, and says so."""
    history = await a_history()
    history.topic.partitions[2].truncate_head(2)
    document = await asked(looking_at(history), ID)
    assert [one["reason"] for one in document["items"]] == ["unknown-segment"] * 3
    assert document["notes"] == [
        "the log of metadata partition 2 begins at offset 2: what was before is gone, and "
        "segments whose first record was there are not known any more"
    ]
    with pytest.raises(NotFound, match="the beginning of metadata partition 2 is gone"):
        await asked(looking_at(history), str(Uuid.of(9, 9)), place=2)


async def test_history_of_a_name_that_two_topics_had_is_of_both() -> None:
    """A name gives the events of both topics, and a topic id those of one."""
    history = await a_history()
    again = tp(topic_id=Uuid.of(7, 7))
    await history.add(started(segment_id(8, again)))
    both = await asked(looking_at(history), "orders-7")
    assert len({one["topic_id"] for one in both["items"]}) == 2
    one = await asked(looking_at(history), f"{again.topic_id}:orders-7")
    assert [item["segment_id"] for item in one["items"]] == [str(segment_id(8).uuid)]
    one = await asked(looking_at(history), f"{again.topic_id}:7")
    assert [item["segment_id"] for item in one["items"]] == [str(segment_id(8).uuid)]


async def test_history_of_a_segment_with_its_partition_is_of_that_one_alone() -> None:
    """The same uuid in another partition is another segment."""
    history = await a_history()
    await history.add(started(segment_id(1, OTHER)))
    document = await asked(looking_at(history), f"other-1/{ID}")
    assert [one["topic"] for one in document["items"]] == ["other"]


async def test_history_of_the_beginning_of_an_id_is_of_the_segment_that_is_there() -> None:
    """A beginning of an id selects the only living segment; a gone one needs all of it."""
    history = History()
    await history.add(started("a", 0, 9), started("b", 10, 19), started("c"), finished("c"),
                      delete_started("c"), delete_finished("c"))  # fmt: skip
    names = {label: str(segment_id(label).uuid) for label in "abc"}
    document = await asked(looking_at(history), names["a"][:6])
    assert {one["segment_id"] for one in document["items"]} == {names["a"]}
    with pytest.raises(NotFound, match="say the whole id"):
        await asked(looking_at(history), names["c"][:6])
    more = History()
    await more.add(started(1, 0, 9), started(2, 10, 19))
    with pytest.raises(InvalidArgument, match="2 segments have ids that begin with AAAA"):
        await asked(looking_at(more), "AAAA")


async def test_history_by_name_of_a_service_reads_no_more_than_its_metadata_partition() -> None:
    """The command reads one metadata partition if the service knows it, and otherwise all."""
    history = await a_history()
    looking = looking_at(history)
    looking.source.kind = StateSourceKind.SIDECAR  # type: ignore[misc]  # as if it were one
    heard: set[int] = set()
    read = history.log.read

    async def noting(partition: int, position: int, **more: Any) -> Any:
        heard.add(partition)
        return await read(partition, position, **more)

    document = await asked(looking, "orders-7")
    assert len(document["items"]) == 9
    history.log.read = noting  # type: ignore[method-assign]
    with pytest.raises(NotFound):
        await asked(looking, "nobody-1")
    places = history.topic.partitions
    assert heard == {place for place in range(3) if places[place].next_offset > 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ID, SegmentLabel(ID)),
        ("orders-3", PartitionLabel("orders", 3)),
        ("abcdefghijklmnopqrst-3", PartitionLabel("abcdefghijklmnopqrst", 3)),
        (f"orders-3/{ID}", SegmentLabel(ID, PartitionLabel("orders", 3))),
        (f"{TOPIC_ID}:orders-3", PartitionLabel("orders", 3, TOPIC_ID)),
        ("EBES", SegmentLabel("EBES")),
        ("-abcdefghijklmnopqrstA", SegmentLabel("-abcdefghijklmnopqrstA")),
    ],
)
def test_subject_is_a_segment_or_a_partition(
    text: str, expected: SegmentLabel | PartitionLabel
) -> None:
    """A text of 22 characters is an id unless it ends in a digit."""
    assert parse_subject(text) == expected
