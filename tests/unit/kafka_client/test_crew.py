"""The tasks of one log: none outlives it, none dies unnoticed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.base.log_context import bound, bound_fields
from rlmm.kafka_client.connections.task_set import TaskSet, report_death

if TYPE_CHECKING:
    import pytest


async def fails() -> None:
    raise ZeroDivisionError("broken")


async def test_task_when_it_ends_then_whoever_asked_is_told() -> None:
    """The owner learns that a task ended, with a result, with an error, or cancelled."""
    crew = TaskSet()
    ended: list[str] = []
    well = crew.start(asyncio.sleep(0), "well", lambda done: ended.append(done.get_name()))
    badly = crew.start(fails(), "badly", lambda done: ended.append(done.get_name()))
    cancelled = crew.start(asyncio.sleep(9), "cancelled", lambda done: ended.append("cancelled"))
    cancelled.cancel()
    await asyncio.wait([well, badly, cancelled])
    await asyncio.sleep(0)
    assert sorted(ended) == ["badly", "cancelled", "well"]


async def test_crew_when_closed_then_all_tasks_have_ended_and_nobody_is_told() -> None:
    """A closed crew has no running task and reports no end."""
    crew = TaskSet()
    ended: list[object] = []
    tasks = [crew.start(asyncio.sleep(99), f"task {number}", ended.append) for number in range(3)]
    await asyncio.sleep(0)
    await crew.close()
    assert all(task.cancelled() for task in tasks)
    assert ended == []
    await crew.close()


async def test_task_when_it_died_then_its_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A task that should have gone on is never silently missing."""
    crew = TaskSet()
    dead = crew.start(fails(), "dead")
    await asyncio.wait([dead])
    assert report_death(dead, "the fetch") == "the fetch died: ZeroDivisionError: broken"
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    cancelled = crew.start(asyncio.sleep(9), "cancelled")
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert report_death(cancelled, "the fetch") == "the fetch died: it was cancelled"


async def test_task_when_a_reader_begins_it_then_its_lines_are_not_the_readers() -> None:
    """A shared task's log lines have the log's fields, not its first reader's."""

    async def work() -> dict[str, object]:
        return dict(bound_fields())

    with bound(cluster="east"):
        crew = TaskSet()
    with bound(cluster="east", metadata_partition=3):
        assert await crew.start(work(), "work") == {"cluster": "east"}
    await crew.close()
