"""One slice of work in each turn of the event loop."""

from __future__ import annotations

import asyncio

from rlmm.pump.pace import Pace


async def slices(pace: Pace, name: str, count: int, done: list[str]) -> None:
    """Do *count* slices, each in a turn."""
    for _ in range(count):
        await pace.turn()
        done.append(name)


async def ticks(done: list[str], count: int) -> None:
    """Note every turn of the event loop."""
    for _ in range(count):
        done.append("tick")
        await asyncio.sleep(0)


async def test_turns_when_many_ask_then_none_starves() -> None:
    """Slices are done in the order in which they were asked for, one for each in turn."""
    pace, done = Pace(), list[str]()
    await asyncio.gather(*(slices(pace, name, 3, done) for name in "abc"))
    assert done == list("abcabcabc")


async def test_f91_turns_when_many_ask_then_the_loop_gets_its_own_between_any_two() -> None:
    """However many partitions are read at once, no two slices share a turn of the loop."""
    pace, done = Pace(), list[str]()
    await asyncio.gather(
        ticks(done, 200), *(slices(pace, str(number), 2, done) for number in range(40))
    )
    story = "".join("." if entry == "tick" else "s" for entry in done)
    assert story.count("s") == 80
    assert "ss" not in story


async def test_turn_when_its_waiter_is_cancelled_then_the_next_has_it() -> None:
    """Who leaves the line does not hold it up."""
    pace, done = Pace(), list[str]()
    gone = asyncio.create_task(slices(pace, "gone", 1, done))
    stays = asyncio.create_task(slices(pace, "stays", 2, done))
    await asyncio.sleep(0)
    gone.cancel()
    await stays
    assert done == ["stays", "stays"]
    await slices(pace, "later", 1, done)
    assert done[-1] == "later"
