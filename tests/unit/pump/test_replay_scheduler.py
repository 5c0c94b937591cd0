"""One slice of work in each turn of the event loop."""

from __future__ import annotations

import asyncio

from rlmm.pump.replay_scheduler import IN_A_ROW, SET_APART_EVENTS, ReplayScheduler


def leave_alone() -> None: ...


async def slices(pace: ReplayScheduler, name: str, count: int, done: list[str]) -> None:
    for _ in range(count):
        await pace.turn(hash(name))
        done.append(name)


async def ticks(done: list[str], count: int) -> None:
    for _ in range(count):
        done.append("tick")
        await asyncio.sleep(0)


async def test_turns_when_many_ask_then_none_starves() -> None:
    """Partitions take turns of a few slices, in the order in which they asked."""
    pace, done = ReplayScheduler(leave_alone), list[str]()
    await asyncio.gather(*(slices(pace, name, 2 * IN_A_ROW + 1, done) for name in "abc"))
    row = "".join(name * IN_A_ROW for name in "abc")
    assert "".join(done) == row + row + "abc"


async def test_f91_turns_when_many_ask_then_the_loop_gets_its_own_between_any_two() -> None:
    """The event loop gets a turn between any two slices, however many partitions are read."""
    pace, done = ReplayScheduler(leave_alone), list[str]()
    await asyncio.gather(
        ticks(done, 200), *(slices(pace, str(number), 2, done) for number in range(40))
    )
    story = "".join("." if entry == "tick" else "s" for entry in done)
    assert story.count("s") == 80
    assert "ss" not in story


async def test_turn_when_its_waiter_is_cancelled_then_the_next_has_it() -> None:
    """The next waiter gets the turn of a cancelled one."""
    pace, done = ReplayScheduler(leave_alone), list[str]()
    gone = asyncio.create_task(slices(pace, "gone", 1, done))
    stays = asyncio.create_task(slices(pace, "stays", 2, done))
    await asyncio.sleep(0)
    gone.cancel()
    await stays
    assert done == ["stays", "stays"]
    await slices(pace, "later", 1, done)
    assert done[-1] == "later"


def test_state_when_much_was_applied_then_is_set_apart_once() -> None:
    """The state is frozen at the first events, and then after enough of them from any partition."""
    done: list[int] = []
    pace = ReplayScheduler(lambda: done.append(1))
    pace.applied(1)
    assert done == [1]
    pace.applied(SET_APART_EVENTS - 1)
    assert done == [1]
    pace.applied(250)
    assert done == [1, 1]
    pace.applied(1)
    assert done == [1, 1]
