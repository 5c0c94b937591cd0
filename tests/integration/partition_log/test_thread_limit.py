"""A log whose process may start no more threads."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from rlmm.base.threads import FilePool
from rlmm.errors import LogUnavailable
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from tests.support.logs.partition_logs import batch, open_log

if TYPE_CHECKING:
    from pathlib import Path

EACH_GROUP = LogSettings(sync=SyncPolicy.EACH_GROUP)


class ThreadLimit:
    """Refuses to start threads, as a container's limit of pids does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refuses: str | None = None
        """The begin of the names of threads that cannot be started now."""
        self.refused = threading.Event()
        start = threading.Thread.start

        def limited(thread: threading.Thread) -> None:
            if self.refuses is not None and thread.name.startswith(self.refuses):
                self.refused.set()
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> ThreadLimit:
    return ThreadLimit(monkeypatch)


async def test_append_when_no_thread_syncs_it_then_waits_until_one_can_be_started(
    tmp_path: Path, limit: ThreadLimit
) -> None:
    """The sync is begun again and again, so that a passing limit costs no acknowledgement."""
    registry, log = await open_log(tmp_path, EACH_GROUP)
    async with registry:
        limit.refuses = "log-sync"
        appending = asyncio.create_task(log.append(batch(b"a"), timeout_s=60))
        assert await asyncio.to_thread(limit.refused.wait, 30)
        assert not appending.done()
        limit.refuses = None
        assert (await appending).base_offset == 0
        assert log.fault is None


async def test_partition_when_no_thread_opens_it_then_is_unavailable_for_now(
    tmp_path: Path, limit: ThreadLimit
) -> None:
    """A partition that cannot be opened for want of a thread is opened at the next call."""
    registry, _ = await open_log(tmp_path, EACH_GROUP)
    async with registry:
        limit.refuses = "log-open"
        with pytest.raises(LogUnavailable, match="can't start new thread"):
            await asyncio.gather(*(registry.create("another", at, bytes(16)) for at in range(9)))
        limit.refuses = None
        assert (await registry.create("another", 8, bytes(16))).fault is None


def test_work_when_no_thread_can_be_started_then_never_runs(limit: ThreadLimit) -> None:
    """Work that was refused stays undone, although the pool keeps it in its queue."""
    done: list[int] = []
    with FilePool(2, "log-test") as pool:
        limit.refuses = "log-test"
        with pytest.raises(OSError, match="can't start new thread"):
            pool.submit(done.append, 1)
        limit.refuses = None
        pool.submit(done.append, 2).result(timeout=30)
    assert done == [2]
