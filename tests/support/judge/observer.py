"""
The observer: a second `rlmm serve` that reads the log of the first, with snapshots of its own.

In its data folder is a log whose partitions are links to those of the owner, as mounts would be.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rlmm.log.files.log_folder import META_PROPERTIES, TOPIC
from rlmm.process.wiring import LOG_FOLDER
from tests.support.judge.forked import serving
from tests.support.server.serve_process import FOLDER, Serving

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence
    from pathlib import Path
    from random import Random

OBSERVER: Final = "observer-data"
LAG_MS, END_AGE_MS = 200, 300
LATE_US: Final = (LAG_MS + END_AGE_MS) * 1_000
"""How old an answer may be: an end that was asked for so late was not reached for so long."""
WAIT_S: Final = 5.0
PAUSE_S: Final = 3 * LATE_US / 1_000_000
ARGUMENTS: Final = (
    *("--mode", "observer", "--data-dir", OBSERVER, "--pump-bounds-interval-ms", "50"),
    *("--pump-lag-ms-max", str(LAG_MS), "--pump-end-age-ms-max", str(END_AGE_MS)),
)


class JudgedObserver:
    def __init__(
        self, folder: Path, arguments: Sequence[str], fault: str | None, random: Random
    ) -> None:
        self.socket = folder / OBSERVER / "rlmm.sock"
        self.is_asked = asyncio.Event()
        """Clear while its clients must send nothing."""
        self.is_asked.set()
        self.cut = asyncio.Event()
        """Set when the log was cut under it."""
        self.is_ready = False
        """Whether it waits for a cut."""
        self._folder = folder
        self._arguments = (*arguments, *ARGUMENTS)
        self._fault = fault
        self._random = random

    async def run(self, counts: Counter[str]) -> None:
        """Serve, be paused, be killed, and serve again, until cancelled."""
        _link(self._folder / FOLDER / LOG_FOLDER, self._folder / OBSERVER / LOG_FOLDER)
        while True:
            async with serving(self._folder, *self._arguments, fault=self._fault) as served:
                await served.until_open(3)
                reading = asyncio.create_task(_read_on(served))
                try:
                    while self._random.random() < 0.5:
                        await asyncio.sleep(self._random.uniform(0.1, 0.6))
                        await self._pause(served)
                        counts["pauses of the observer"] += 1
                    await self._meet_cut()
                    assert not reading.done(), f"the observer has ended by itself: {served.said}"
                finally:
                    if not reading.done():
                        served.send(signal.SIGKILL)
                    await reading
                assert await served.end() == -signal.SIGKILL, served.said
            counts["kills of the observer"] += 1

    async def _meet_cut(self) -> None:
        """Wait for a cut, and then until a snapshot that was begun before it may be there."""
        self.cut.clear()
        self.is_ready = True
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self.cut.wait()
        self.is_ready = False
        await asyncio.sleep(self._random.uniform(0.8, 2))

    async def _pause(self, served: Serving) -> None:
        """Stop the process for long; the first questions after it came while it stood still."""
        self.is_asked.clear()
        served.send(signal.SIGSTOP)
        await asyncio.sleep(PAUSE_S)
        self.is_asked.set()
        await asyncio.sleep(0.02)
        served.send(signal.SIGCONT)


def _link(log: Path, there: Path) -> None:
    """Show the partitions of *log* in the folder *there*."""
    there.mkdir(mode=0o700, parents=True)
    shutil.copy(log / META_PROPERTIES, there)
    for folder in log.glob(f"{TOPIC}-*"):
        (there / folder.name).symlink_to(folder)


async def _read_on(served: Serving) -> None:
    while await served.next_line() is not None:
        served.lines.clear()
