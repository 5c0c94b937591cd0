"""
An engine on the `files` log whose process is killed at any moment, again and again in one folder.
The tests compare its verdicts and answers with the log that it left behind.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import ANSWER_S, read_until
from tests.support.engine.claims import (
    KINDS,
    Claims,
    Question,
    answer_from,
    check,
    judge,
    parse,
    user_partition,
)
from tests.support.logs.engine_process import (
    COPIERS,
    KEPT,
    LOG,
    LOG_SETTINGS,
    OPENING,
    PLACES,
    READY,
    SETTINGS,
    SNAPSHOTS,
)
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from tests.support.engine.claims import Judgement, Stored

_log = logging.getLogger(__name__)

EARLY_LINES = 60
"""As many lines, at the most, a process says that is killed while it begins."""


class Life(NamedTuple):
    claims: int
    restored: int
    snapshots: int


def live_and_die(folder: Path, life: int, lines_read: int, claims: Claims) -> Life:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.logs.engine_process", str(folder), str(life)],
        cwd=tree.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            lines = [process.stdout.readline() for _ in range(lines_read)]
        finally:
            process.kill()
        # Not `communicate`: it would lose what was read ahead of the lines.
        rest, complaints = process.stdout.readlines(), process.stderr.read()
    assert process.returncode == -signal.SIGKILL, complaints
    assert "Traceback" not in complaints, complaints
    told = {READY: 0, SNAPSHOTS: 0}
    for line in (*lines, *rest):
        word, _, number = line.partition(" ")
        if not line.endswith("\n") or word.strip() == OPENING:
            continue
        if word in told:
            told[word] = int(number)
        else:
            claims.add_own(parse(line))
    return Life(len(lines) + len(rest), told[READY], told[SNAPSHOTS])


async def read_folder(folder: Path) -> Stored:
    log = await FilesLog.open(folder / LOG, partition_count=PLACES, settings=LOG_SETTINGS)
    stored: Stored = {}
    try:
        for place, bounds in (await log.bounds(range(PLACES), timeout_s=ANSWER_S)).items():
            assert isinstance(bounds, LogBounds), bounds
            assert bounds.log_start_offset == 0
            stored[place] = await read_until(log, place, 0, bounds.high_watermark)
            assert [offset for offset, _ in stored[place]] == list(range(bounds.high_watermark))
    finally:
        await log.close()
    return stored


def questions_about(judgement: Judgement, lives: int) -> list[Question]:
    found = [
        (writer, generation)
        for shard in judgement.shards.values()
        for partition in shard.partitions()
        for writer, generation in [(partition.partition, partition.topic_id[15])]
        if partition == user_partition(writer, generation)
    ]
    assert len(found) >= COPIERS
    absent = [(writer, 200) for writer in range(COPIERS)]
    return [
        Question(kind, writer, generation, epoch, offset)
        for writer, generation in (*found, *absent)
        for kind in KINDS
        for epoch in range(max(0, lives - 4), lives)
        for offset in (0, 700, 3_500)
    ]


async def image_of(metadata: RemoteLogMetadata, place: int) -> bytes:
    gated = metadata._engine._gate.shards()[place]
    assert gated.shard is not None
    return gated.shard.image()


async def check_service(
    folder: Path, judgement: Judgement, lives: int, *, is_from_snapshot: bool
) -> None:
    log = await FilesLog.open(folder / LOG, partition_count=PLACES, settings=LOG_SETTINGS)
    kept = folder / KEPT if is_from_snapshot else None
    try:
        async with open_metadata(log, snapshots=kept, settings=SETTINGS) as metadata:
            for writer in range(COPIERS):
                await metadata.wait_ready(user_partition(writer, 0), timeout_s=ANSWER_S)
            statistics = metadata.statistics()
            restored = 0 if statistics.restored is None else statistics.restored.restored
            assert restored == (PLACES if is_from_snapshot else 0)
            for place, shard in judgement.shards.items():
                assert await image_of(metadata, place) == shard.image()
            place_of = metadata._engine.place_of
            for question in questions_about(judgement, lives):
                place = place_of(user_partition(question.writer, question.generation))
                expected = answer_from(judgement.shards[place], question)
                assert answer_from(metadata.reads, question) == expected, question
    finally:
        await log.close()


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("writes", "kills"),
    [
        pytest.param(10_000, 8, id="10000-writes"),
        pytest.param(100_000, 20, id="100000-writes", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("seed", [1], ids="seed-{}".format)
def test_engine_when_its_process_is_killed_then_every_claim_it_made_is_true(
    tmp_path: Path, writes: int, kills: int, seed: int
) -> None:
    """
    Process kills lose or duplicate no acknowledged event, every verdict and answer was right when
    given, and a start from snapshots equals a full replay.
    """
    rng = random.Random(seed)
    claims = Claims()
    lives: list[Life] = []
    while len(claims.wrote) < writes or len(lives) < kills:
        is_early = len(lives) % 5 == 2
        lines = rng.randint(1, EARLY_LINES if is_early else 3 * writes // kills)
        lives.append(live_and_die(tmp_path, len(lives), lines, claims))
        _log.warning(
            "seed %d, life %d: killed after line %d, %s", seed, len(lives), lines, lives[-1]
        )
    judgement = judge(asyncio.run(read_folder(tmp_path)), claims.answered)
    # Stored unacknowledged: once for what was in flight when the process died, written anew never.
    check(claims, judgement, repeats_max=2)
    acknowledged = {(claim.place, claim.offset) for claim in claims.wrote}
    assert judgement.events - len(acknowledged) <= 8 * COPIERS * len(lives)
    assert sum(life.snapshots for life in lives) > kills
    assert sum(life.restored > 0 for life in lives) > kills // 3
    assert len(claims.answered) > writes // 10
    assert {claim.verdict for claim in claims.wrote} == {"applied", "duplicate"}
    asyncio.run(check_service(tmp_path, judgement, len(lives), is_from_snapshot=False))
    asyncio.run(check_service(tmp_path, judgement, len(lives), is_from_snapshot=True))
