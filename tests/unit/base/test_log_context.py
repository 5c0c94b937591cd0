"""The fields of log lines: bound in blocks, inherited by tasks and threads."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from rlmm.base.log_context import bound, bound_fields
from rlmm.base.threads import finished, in_background


def test_fields_when_blocks_stand_in_one_another_then_the_inner_one_counts() -> None:
    """The inner block's value counts, and the outer value returns behind it."""
    with bound(cluster="a", offset=1):
        with bound(offset=2):
            assert bound_fields() == {"cluster": "a", "offset": 2}
        assert bound_fields() == {"cluster": "a", "offset": 1}
    assert bound_fields() == {}


async def test_fields_when_a_task_begins_in_the_block_then_holds_them_as_long_as_it_lives() -> None:
    """The task's own do not leave it."""
    leave = asyncio.Event()

    async def task() -> dict[str, object]:
        with bound(metadata_partition=3):
            await leave.wait()
            return dict(bound_fields())

    with bound(cluster="a"):
        running = asyncio.create_task(task())
        await asyncio.sleep(0)
        assert bound_fields() == {"cluster": "a"}
    leave.set()
    assert await running == {"cluster": "a", "metadata_partition": 3}


async def test_fields_when_work_is_done_in_a_thread_then_are_the_callers() -> None:
    """Snapshots are read and written in threads, and so is the embedded log."""
    with bound(metadata_partition=3):
        assert await in_background(lambda _: bound_fields(), "t") == {"metadata_partition": 3}
        assert await finished(None, bound_fields) == {"metadata_partition": 3}


def test_fields_when_the_block_is_ended_somewhere_else_then_nothing_is_raised() -> None:
    """A block that another task ends, as for a discarded generator, raises nothing."""

    async def waiting() -> None:
        with bound(cluster="a"):
            await asyncio.sleep(0)

    task = waiting()
    copy_context().run(task.send, None)
    task.close()
    assert bound_fields() == {}
