"""The parts of a process: which of them end all, and which do not."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.part_group import PartGroup
from rlmm.errors import PartFailed, Stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def lasting() -> None:
    await asyncio.Event().wait()


async def ends_badly() -> None:
    try:
        await lasting()
    except asyncio.CancelledError:
        raise ZeroDivisionError("in the clean-up") from None


async def ends_well() -> None:
    try:
        await lasting()
    except asyncio.CancelledError:
        return


@asynccontextmanager
async def running(parts: PartGroup) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(parts.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("part", [ends_badly, ends_well], ids=["fails", "returns"])
async def test_part_when_it_is_ended_then_ends_nobody_else_however_it_takes_it(
    part: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A part that raises while it stops is logged and stops no other; its follow-up runs."""
    parts = PartGroup()
    parts.add("other", lasting)
    parts.add("ended", part, "owner")  # type: ignore[arg-type]
    over = asyncio.Event()

    async def then() -> None:
        over.set()

    async with running(parts) as task:
        parts.end("owner", then)
        async with asyncio.timeout(30):
            await over.wait()
        await asyncio.sleep(0)
        assert not task.done()
        assert ("while ended was ended: ZeroDivisionError" in caplog.text) == (part is ends_badly)
    assert task.cancelled()


async def test_part_when_it_ends_by_itself_then_all_end_by_its_name() -> None:
    """A part that ends by itself ends all others, and the error names it."""
    parts = PartGroup()
    over = asyncio.Event()

    async def short() -> None:
        await over.wait()

    parts.add("short", short, "owner")
    async with running(parts) as task:
        over.set()
        await asyncio.wait([task])
        with pytest.RaisesGroup(pytest.RaisesExc(PartFailed, match="short has ended")):
            task.result()


async def test_part_when_it_is_ended_while_all_are_then_nothing_is_begun_any_more() -> None:
    """A part stopped during the stop of all starts nothing anew."""
    parts = PartGroup()
    seen: list[str] = []

    async def never() -> None:
        raise AssertionError("nothing follows where all ends")

    async def takes_off() -> None:
        try:
            await lasting()
        finally:
            parts.end("owner", never)
            with pytest.raises(Stopped):
                parts.add("another", lasting)
            seen.append("ended")

    parts.add("first", takes_off)
    parts.add("second", lasting, "owner")
    async with running(parts) as task:
        pass
    assert seen == ["ended"]
    assert task.cancelled()
