"""
Data folder of a service: locked from before the first log is opened until all logs are closed. A
disk that hangs may delay the lock for ever: only components that need the folder wait then.
Invariant: no such component starts before the folder is locked.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from rlmm.base.folder_lock import folder_lock
from rlmm.base.threads import in_own_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path
    from types import TracebackType

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

_THREAD = "data-folder"
_PATIENCE_S = 1.0
"""How long a start waits for a disk: a few calls are to be answered, which takes no time."""


class DataFolder(AbstractAsyncContextManager["DataFolder"]):
    """
    Holds the lock inside the block. Entering raises the errors of `folder_lock`. If locking takes
    long, the waiting components raise them.
    """

    def __init__(self, path: Path, *, is_observer: bool) -> None:
        self.path = path
        self._lock = folder_lock(path, is_observer=is_observer)
        self._held = ExitStack()
        self._taking: asyncio.Task[None] | None = None

    @property
    def is_held(self) -> bool:
        taking = self._taking
        return taking is not None and taking.done() and not taking.cancelled()

    async def __aenter__(self) -> Self:
        take = partial(self._held.enter_context, self._lock)
        self._taking = asyncio.create_task(in_own_thread(_THREAD, take), name="data folder")
        await asyncio.wait([self._taking], timeout=_PATIENCE_S)
        if self._taking.done():
            self._taking.result()
        else:
            _log.warning(
                "the data folder %s does not answer, a disk that hangs may be why: nothing is read "
                "or written before it does",
                self.path,
            )
        return self

    def behind(
        self, work: Callable[[], Awaitable[Result]]
    ) -> Callable[[], Coroutine[None, None, Result]]:
        """Wrap a component so that it starts when the folder is locked."""

        async def begun() -> Result:
            assert self._taking is not None, self.path
            await asyncio.shield(self._taking)
            return await work()

        return begun

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._taking is not None, self.path
        self._taking.cancel()
        await asyncio.wait([self._taking])
        if self._taking.cancelled():
            _log.warning("nobody waits any more for the data folder %s", self.path)
        elif self._taking.exception() is None:
            # The kernel gives it back with the process in any case.
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await in_own_thread(_THREAD, self._held.close)
