"""
A process that appends to a `files` log until it is killed.

    python -m tests.support.logs.files_log_process <folder> <life>

It prints `opening`, then unbuffered for each acknowledged event: writer, number, partition, offset,
digest. Every value names its life, writer and number.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import random
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

from rlmm.log.files.files_log import FilesLog
from rlmm.partition_log.settings import LogSettings, SyncPolicy

PARTITIONS = 3
WRITERS = 8
OPENING = "opening"
SETTINGS = LogSettings(
    sync=SyncPolicy.EACH_GROUP,
    segment_bytes=16_384,
    index_interval_bytes=500,
    checkpoint_interval_ms=10,
    tick_interval_ms=10,
)
"""Small segments and frequent check points: a kill hits a roll as well as an append."""

_TIMEOUT_S = 60.0


class Acknowledged(NamedTuple):
    writer: int
    number: int
    partition: int
    offset: int
    digest: str


def value_of(life: int, writer: int, number: int) -> bytes:
    head = b"%d %d %d " % (life, writer, number)
    rng = random.Random(head)
    return head + rng.randbytes(rng.choice((0, 30, 300, 300, 3_000)))


def origin_of(value: bytes) -> tuple[int, int, int]:
    life, writer, number = value.split(b" ", 3)[:3]
    return int(life), int(writer), int(number)


def digest(value: bytes) -> str:
    return hashlib.blake2b(value, digest_size=16).hexdigest()


def parse(line: str) -> Acknowledged:
    *numbers, found = line.split()
    writer, number, partition, offset = map(int, numbers)
    return Acknowledged(writer, number, partition, offset, found)


def _say(*words: object) -> None:
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode("ascii"))


async def _write(log: FilesLog, life: int, writer: int) -> NoReturn:
    rng = random.Random(f"{life} {writer}")
    for number in itertools.count():
        value = value_of(life, writer, number)
        partition = rng.randrange(PARTITIONS)
        offset = await log.append(partition, value, timeout_s=_TIMEOUT_S)
        _say(writer, number, partition, offset, digest(value))
    raise AssertionError("numbers do not end")


async def _live(folder: Path, life: int) -> None:
    _say(OPENING)
    log = await FilesLog.open(folder, partition_count=PARTITIONS, settings=SETTINGS)
    async with asyncio.TaskGroup() as group:
        group.create_task(log.run())
        for writer in range(WRITERS):
            group.create_task(_write(log, life, writer))


if __name__ == "__main__":
    asyncio.run(_live(Path(sys.argv[1]), int(sys.argv[2])))
