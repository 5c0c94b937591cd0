"""
A process that appends by some writers to a partition log until it is killed.

`python -m tests.support.logs.partition_log_process ROOT WRITERS` prints `offset writer number` for
each acknowledgement.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings
from tests.support.logs.partition_logs import TOPIC, TOPIC_ID, batch

SETTINGS = LogSettings(segment_bytes=6_000, index_interval_bytes=500, checkpoint_interval_ms=20)
"""Segments so small that many kills fall into a roll, notes so frequent that many fall into one."""


async def _write(registry: LogRegistry, writer: int) -> None:
    log = await registry.create(TOPIC, 0, TOPIC_ID)
    number = 0
    while True:
        value = b"%d %d %d " % (os.getpid(), writer, number)
        appended = await log.append(batch(value + b"x" * (number * 37 % 400)))
        os.write(1, b"%d %d %d\n" % (appended.base_offset, writer, number))
        number += 1


async def _main(root: Path, writers: int) -> None:
    registry = await LogRegistry.open(root, SETTINGS)
    await asyncio.gather(*(_write(registry, writer) for writer in range(writers)))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))
