"""`rlmm events`: the metadata topic decoded, filtered, and followed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.events import EventsQuestion, events_answer
from rlmm.errors import LogTruncated
from rlmm.inspection.event_filter import EventFilter
from rlmm.inspection.selectors import MomentSelector, partition_filter
from rlmm.inspection.source_status import StateSourceKind
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.views.values import plain
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import document_of, looking_at, printed
from tests.support.cli.metadata_history import START_MS, History
from tests.support.cli.recorded_outputs import require_golden

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext

OTHER = tp("other", 2)
EVERYTHING = EventFilter()


async def a_history() -> History:
    history = History()
    await history.add(started(1, 0, 99), place=0)
    await history.add(started(segment_id(2, OTHER), 0, 9), place=1)
    await history.add(finished(1), place=0)
    await history.add(b"\x01\xff", place=1)
    await history.add(finished("nobody", broker_id=9), place=0)
    return history


async def document(looking: QueryContext, asking: EventsQuestion) -> Any:
    found = await document_of(await events_answer(looking, asking=asking))
    require_valid(found)
    return found


def places(found: Any) -> list[str]:
    return [f"{one['metadata_partition']}:{one['offset']}" for one in found["items"]]


async def test_events_are_shown_by_their_time_with_verdicts() -> None:
    """The command shows all events by time, with undecodable bytes in hex."""
    found = await document(looking_at(await a_history()), EventsQuestion(EVERYTHING))
    assert places(found) == ["0:0", "1:0", "0:1", "1:1", "0:2"]
    assert [one["verdict"] for one in found["items"]] == [
        "applied", "applied", "applied", "undecodable", "rejected"
    ]  # fmt: skip
    poison = found["items"][3]
    assert (poison["value_hex"], poison["value_bytes"], poison["kind"]) == (
        "01ff", 2, "unreadable"
    )  # fmt: skip
    assert poison["reason"]
    assert found["verdicts"] == {"applied": 3, "rejected": 1, "undecodable": 1}
    assert found["as_of_offsets"] == {"0": 2, "1": 1, "2": -1}
    assert found["knows_verdicts"] is True


async def test_events_golden_table() -> None:
    """The events are printed as this table in 80 columns."""
    answer = await events_answer(looking_at(await a_history()), asking=EventsQuestion(EVERYTHING))
    require_golden("events-unreadable.txt", await printed(answer))


async def test_events_when_a_reason_is_wider_than_its_column_then_within_80_columns() -> None:
    """The longest reason is broken by a hyphen."""
    history = History()
    long = tp("a-topic-with-long-name", 0)
    gone = partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED, long)
    await history.add(started(segment_id(2, long)), gone)
    table = await printed(
        await events_answer(looking_at(history), asking=EventsQuestion(EVERYTHING))
    )
    assert "partition-delete-out-of-\n" in table
    assert f"{55 * ' '}order\n" in table
    assert max(map(len, table.splitlines())) <= 80, table


SECOND = MomentSelector(offset=1)
OTHERS = EventFilter(partition_filter("oth.*", None))
SHOWN: dict[str, tuple[EventsQuestion, list[str]]] = {
    "partition": (EventsQuestion(EVERYTHING, (1,)), ["1:0", "1:1"]),
    "topic": (EventsQuestion(OTHERS), ["1:0"]),
    "from a time": (
        EventsQuestion(EVERYTHING, begin=MomentSelector(time_ms=START_MS + 2_000)),
        ["0:1", "1:1", "0:2"],
    ),
    "from": (EventsQuestion(EVERYTHING, (0,), begin=SECOND), ["0:1", "0:2"]),
    "from several": (
        EventsQuestion(EVERYTHING, begin=MomentSelector(offsets={0: 2, 1: 1})), ["1:1", "0:2"]
    ),
    "to": (
        EventsQuestion(EVERYTHING, to=MomentSelector(time_ms=START_MS + 1_000)), ["0:0", "1:0"]
    ),
    "limit": (EventsQuestion(EVERYTHING, limit=2), ["0:0", "1:0"]),
    "without verdicts": (
        EventsQuestion(EVERYTHING, (0,), begin=SECOND, knows_verdicts=False), ["0:1", "0:2"]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asking", "expected"), SHOWN.values(), ids=SHOWN)
async def test_events_that_are_asked_for_are_shown(
    asking: EventsQuestion, expected: list[str]
) -> None:
    """The filter shows matching events only."""
    assert places(await document(looking_at(await a_history()), asking)) == expected


async def test_events_without_verdicts_say_none_but_of_what_cannot_be_understood() -> None:
    """Without verdicts the command prints only those of undecodable records."""
    found = await document(
        looking_at(await a_history()), EventsQuestion(EVERYTHING, knows_verdicts=False)
    )
    assert [one["verdict"] for one in found["items"]] == [None, None, None, "undecodable", None]
    assert found["verdicts"] == {"not-judged": 4, "undecodable": 1}


@pytest.mark.parametrize("knows_verdicts", [True, False])
@pytest.mark.parametrize("begin", [None, MomentSelector(time_ms=START_MS + 4_000)])
async def test_events_when_followed_go_on_with_what_is_written(
    begin: MomentSelector | None, knows_verdicts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command starts at the log end unless a moment is given, and prints new events."""
    monkeypatch.setattr("rlmm.inspection.event_stream.LOOK_S", 0.0)
    history = await a_history()
    looking = looking_at(history)
    looking.source.kind = StateSourceKind.KAFKA  # type: ignore[misc]  # as if it were one
    asking = EventsQuestion(
        EVERYTHING, begin=begin, follows=True, knows_verdicts=knows_verdicts, limit=3
    )
    answer = await events_answer(looking, asking=asking)
    views: Any = answer.items
    told = []
    async with aclosing(views) as items:
        if begin is not None:
            told.append(await anext(items))
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        await history.add(finished(1), place=0)
        told.append(await waiting)
        await history.add(finished(segment_id(2, OTHER)), place=1)
        told.append(await anext(items))
    assert places({"items": plain(told)}) == [*(["0:2"] if begin else []), "0:3", "1:2"]
    assert [one.verdict for one in told[-2:]] == (
        ["duplicate", "applied"] if knows_verdicts else [None, None]
    )


async def test_events_followed_without_verdicts_read_nothing_of_what_was() -> None:
    """The command starts at once, however long the log is."""
    history = await a_history()
    looking = looking_at(history)
    looking.source.kind = StateSourceKind.SIDECAR  # type: ignore[misc]  # as if it were one
    read, positions = history.log.read, []

    async def noting(partition: int, position: int, **more: Any) -> Any:
        positions.append((partition, position))
        return await read(partition, position, **more)

    history.log.read = noting  # type: ignore[method-assign]
    asking = EventsQuestion(EVERYTHING, (0,), follows=True, knows_verdicts=False, limit=1)
    answer = await events_answer(looking, asking=asking)
    await history.add(finished(1), place=0)
    assert [place async for place in _places_of(answer.items)] == ["0:3"]
    assert set(positions) == {(0, 3)}


async def _places_of(items: Any) -> Any:
    async for one in items:
        yield f"{one.metadata_partition}:{one.offset}"


async def test_f65_events_where_the_head_is_gone_say_so() -> None:
    """The answer notes the trimmed head of the log, and an earlier moment is unknown."""
    history = await a_history()
    history.topic.partitions[0].truncate_head(1)
    found = await document(looking_at(history), EventsQuestion(EVERYTHING))
    assert found["notes"] == [
        "the log of metadata partition 0 begins at offset 1: what was before is gone"
    ]
    with pytest.raises(LogTruncated):
        await document(
            looking_at(history), EventsQuestion(EVERYTHING, (0,), to=MomentSelector(offset=0))
        )
