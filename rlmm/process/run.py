"""
The run of the process: opens the logs, runs the parts under one task group, ends them in order.

A failed part ends the process with an error that names it; a signal ends it within a deadline, and
an error names what hangs.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rlmm.base.threads import OwnedThread, left_behind
from rlmm.engine.log_opening import OpeningLog
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.errors import PartFailed, RlmmError, StopTimedOut, first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.engine.part_group import Run
    from rlmm.engine.service import Report

_log = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SNAPSHOT_SIGNAL = signal.SIGUSR1
_PARTS_SHARE = 0.5
"""Share of the deadline after which the last snapshots are written, even if parts still hang."""
_EARLIER_S = 1.0
"""Time for earlier plans to fail, too, so that their errors are logged."""
_OPENING_S = 5.0
"""How long the service waits for a log to be opened. Recovery is not part of it."""
_FLUSH_SHARE = 0.8
"""Share of the remaining time for snapshots; the rest is for closing the logs."""


async def serve(
    plans: list[EnginePlan],
    stop_s: float,
    *,
    beside: Mapping[str, Run] | None = None,
    report: Report | None = None,
    on_made: Callable[[Service], None] | None = None,
    on_started: Callable[[Service], None] | None = None,
    on_ending: Callable[[], None] | None = None,
) -> None:
    """
    Run the engines of *plans* and the parts *beside* them until a signal or a failed part.

    Calls *on_made* before it opens any log, *on_started* when the engines have begun, and
    *on_ending* before it ends anything. Raises the error of a failed part, `PartFailed` for one
    that is not an `RlmmError`, and `StopTimedOut` with the names of what had not ended after
    *stop_s*.
    """
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[str] = loop.create_future()
    service = Service(beside or {}, report)
    service.expected = tuple(plan.name for plan in plans)
    if on_made is not None:
        on_made(service)
    with ExitStack() as signals:
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _request_stop, asked, number)
            signals.callback(loop.remove_signal_handler, number)
        # The signal must not kill the process while it ends: restore the handler of before.
        signals.callback(signal.signal, SNAPSHOT_SIGNAL, signal.getsignal(SNAPSHOT_SIGNAL))
        loop.add_signal_handler(SNAPSHOT_SIGNAL, service.wants_snapshots.set)
        signals.callback(loop.remove_signal_handler, SNAPSHOT_SIGNAL)
        work = asyncio.create_task(_open_and_run(service, plans, on_started), name="service")
        try:
            either: list[asyncio.Future[Any]] = [work, asked]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            _log_reason(service, work, asked)
        finally:
            if on_ending is not None:
                on_ending()
            await _end(service, work, stop_s)
    error = None if work.cancelled() else work.exception()
    if error is not None:
        raise _cause(error)
    _log.info("stopped")


async def _open_and_run(
    service: Service, plans: list[EnginePlan], on_started: Callable[[Service], None] | None
) -> None:
    for plan, found in zip(plans, await _opened(service, plans), strict=True):
        service.begin(plan, found)
    if on_started is not None:
        on_started(service)
    await service.run()


async def _opened(service: Service, plans: list[EnginePlan]) -> list[LogOpener]:
    """Open all logs at a time, with stand-ins for late ones; raises the first plan's error."""
    if not plans:
        return []
    begin_s = asyncio.get_running_loop().time()
    openings = [
        asyncio.create_task(service.open(plan), name=f"opening {plan.name}") for plan in plans
    ]
    try:
        first = asyncio.FIRST_EXCEPTION
        await asyncio.wait(openings, timeout=_OPENING_S, return_when=first)
        failed = [number for number, each in enumerate(openings) if _failure(each) is not None]
        if not failed:
            return [
                _log_or_stand_in(service, begin_s, *each)
                for each in zip(plans, openings, strict=True)
            ]
        if failed[0]:
            await asyncio.wait(openings[: failed[0]], timeout=_EARLIER_S, return_when=first)
    except asyncio.CancelledError:
        await _give_up(openings)
        raise
    errors = await _give_up(openings)
    for error in errors[1:]:
        _log.error("%s", error)
    raise errors[0]


def _log_or_stand_in(
    service: Service, begin_s: float, plan: EnginePlan, opening: asyncio.Task[LogOpener]
) -> LogOpener:
    if opening.done():
        return opening.result()

    def what() -> str:
        return service.opening.get(plan.name, plan.where)

    log = OpeningLog(opening, begin_s, what)
    _log.warning(
        "engine %s begins without its log: %s does not answer, a disk that hangs may be why; "
        "nothing is answered from it before it does",
        plan.name,
        what(),
        extra={"cluster": plan.name},
    )
    return LogOpener(log, log.run)


async def _give_up(openings: list[asyncio.Task[LogOpener]]) -> list[BaseException]:
    errors = [error for error in map(_failure, openings) if error is not None]
    for each in openings:
        each.cancel()
    await asyncio.wait(openings)
    for each in openings:
        _failure(each)  # looked at, so that it is not reported as forgotten
    return errors


def _failure(task: asyncio.Task[Any]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


async def pool_over(timeout_s: float) -> None:
    """End the threads of the event loop's pool; raises `StopTimedOut` where one hangs."""
    ending = asyncio.get_running_loop().shutdown_default_executor()
    task = asyncio.create_task(ending, name="threads")
    _, pending = await asyncio.wait([task], timeout=timeout_s)
    if pending:
        msg = f"all is closed, but work in threads hangs: {_threads()}"
        raise StopTimedOut(msg)


def _threads() -> str:
    """Names of the threads that are ours, or would hold up the end of the interpreter."""
    return ", ".join(
        thread.name
        for thread in threading.enumerate()
        if thread is not threading.main_thread()
        and (isinstance(thread, OwnedThread) or not thread.daemon)
    )


def _log_reason(service: Service, work: asyncio.Task[None], asked: asyncio.Future[str]) -> None:
    if asked.done():
        _log.info("stopping: %s", asked.result())
        return
    failure = None if work.cancelled() else work.exception()
    if failure is not None:
        cause = _cause(failure)
        service.failure = str(cause)
        _log.error("stopping: %s", cause, exc_info=cause.__cause__)


def _cause(error: BaseException) -> RlmmError:
    first = first_of(error)
    if isinstance(first, RlmmError):
        return first
    part = ", ".join(getattr(first, "__notes__", [])) or "a part"
    failed = PartFailed(f"{part} has failed: {type(first).__name__}: {first}")
    failed.__cause__ = first
    return failed


def _request_stop(asked: asyncio.Future[str], number: signal.Signals) -> None:
    if not asked.done():
        asked.set_result(f"asked to by {number.name}")


async def _end(service: Service, work: asyncio.Task[None], stop_s: float) -> None:
    """Stop answering and reading, write snapshots, close the logs; name the parts that hang."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + stop_s
    hanging: list[str] = []

    async def stage(name: str, task: asyncio.Task[Any], share: float = 1.0) -> None:
        left_s = (deadline_s - loop.time()) * share
        _, pending = await asyncio.wait([task], timeout=max(0.0, left_s))
        if pending:
            hanging.append(name)
            task.cancel()
        elif not task.cancelled() and task is not work and task.exception() is not None:
            _log.error("while stopping, %s: %s", name, task.exception())

    service.refuse("the service is stopping")
    work.cancel()
    await stage("the parts", work, _PARTS_SHARE)
    await stage(
        "the last snapshots", asyncio.create_task(service.flush(), name="flush"), _FLUSH_SHARE
    )
    await stage("the logs", asyncio.create_task(service.close(), name="close"))
    if hanging:
        tasks = sorted(
            task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()
        )
        msg = (
            f"{' and '.join(hanging)} had not ended after {stop_s:g} s; "
            f"tasks: {', '.join(tasks) or 'none'}; threads: {_threads() or 'none'}"
        )
        raise StopTimedOut(msg)
    left = left_behind()
    if left:
        _log.warning("threads that hang are left behind: %s", ", ".join(left))
