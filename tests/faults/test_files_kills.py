"""The files log, alone and below an engine, whose process is killed at any moment."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import META_PROPERTIES, TOPIC
from rlmm.log.protocol import LogBounds
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of
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
from tests.support.logs import engine_process, files_log_process
from tests.support.logs.engine_process import (
    COPIERS,
    KEPT,
    LOG,
    LOG_SETTINGS,
    PLACES,
    READY,
    SETTINGS,
    SNAPSHOTS,
)
from tests.support.logs.files_log_process import (
    PARTITIONS,
    Acknowledged,
    digest,
    origin_of,
    value_of,
)
from tests.support.logs.partition_logs import FIRST_MS, copied
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from rlmm.log.protocol import LogIdentity
    from rlmm.partition_log.settings import LogSettings
    from tests.support.engine.claims import Judgement, Stored

ACKNOWLEDGED_MAX = 300


def lines_until_killed(module: ModuleType, folder: Path, life: int, lines_read: int) -> list[str]:
    """Let a process print that many lines, kill it, and return all whole lines that it printed."""
    with subprocess.Popen(
        [sys.executable, "-m", module.__name__, str(folder), str(life)],
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
        lines += process.stdout.readlines()
        complaints = process.stderr.read()
    assert process.returncode == -signal.SIGKILL, complaints
    assert "Traceback" not in complaints, complaints
    assert lines[0] == f"{engine_process.OPENING}\n", complaints
    return [line for line in lines[1:] if line.endswith("\n")]


async def read_folder(
    folder: Path, count: int, settings: LogSettings
) -> tuple[LogIdentity, Stored]:
    log = await FilesLog.open(folder, partition_count=count, settings=settings)
    stored: Stored = {}
    try:
        for place, bounds in (await log.bounds(range(count), timeout_s=ANSWER_S)).items():
            assert isinstance(bounds, LogBounds), bounds
            assert bounds.log_start_offset == 0
            stored[place] = await read_until(log, place, 0, bounds.high_watermark)
            assert [offset for offset, _ in stored[place]] == list(range(bounds.high_watermark))
        return await log.identity(timeout_s=ANSWER_S), stored
    finally:
        await log.close()


def tear_tail(folder: Path, rng: random.Random) -> None:
    partition = rng.randrange(PARTITIONS)
    files = sorted((folder / f"{TOPIC}-{partition}").glob("*.log"))
    if not files:
        return
    next_offset = int(files[-1].stem)
    for batch in walk(files[-1].read_bytes()):
        if isinstance(batch, Batch):
            next_offset = batch.next_offset
    values = records_of([b"torn" * rng.randrange(1, 200)], next_offset, FIRST_MS)
    whole = build_batch(values, 0)
    tail = rng.choice(
        (
            rng.randbytes(rng.randrange(1, 5_000)),
            whole[: rng.randrange(1, len(whole))],
            whole[: len(whole) // 2],
            whole[:-1] + bytes([whole[-1] ^ 1]),
            bytes(rng.randrange(1, 5_000)),
        )
    )
    with files[-1].open("ab") as file:
        file.write(tail)


def check_stored(stored: Stored, acknowledged: dict[tuple[int, int], str], before: Stored) -> None:
    """Each partition is dense and in order, with its earlier and all acknowledged values, once."""
    for partition, records in stored.items():
        assert [offset for offset, _ in records] == list(range(len(records)))
        assert records[: len(before.get(partition, []))] == before.get(partition, [])
        origins = [origin_of(value) for _, value in records]
        assert [value for _, value in records] == [value_of(*origin) for origin in origins]
        for lane in {origin[:2] for origin in origins}:
            numbers = [number for *of, number in origins if tuple(of) == lane]
            assert numbers == sorted(numbers)
    everything = Counter(origin_of(value) for records in stored.values() for _, value in records)
    assert set(everything.values()) <= {1}
    for (partition, offset), said in acknowledged.items():
        assert offset < len(stored[partition])
        assert digest(stored[partition][offset][1]) == said


def count_unacknowledged(
    stored: Stored, life: int, acknowledged: list[Acknowledged]
) -> Counter[int]:
    known = {(each.writer, each.number) for each in acknowledged}
    return Counter(
        writer
        for records in stored.values()
        for of, writer, number in (origin_of(value) for _, value in records)
        if of == life and (writer, number) not in known
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seed", "kills"),
    [pytest.param(1, 10, id="10"), pytest.param(2, 50, id="50", marks=pytest.mark.long)],
)
def test_files_log_when_killed_then_keeps_all_events(tmp_path: Path, seed: int, kills: int) -> None:
    """After any kill the folder opens with every acknowledged event once, and goes on."""
    rng = random.Random(seed)
    folder = tmp_path / "log"
    identities: set[LogIdentity] = set()
    acknowledged: dict[tuple[int, int], str] = {}
    stored: Stored = {}
    for life in range(kills):
        is_early = rng.random() < 0.2
        lines = 1 + (0 if is_early else rng.randint(1, ACKNOWLEDGED_MAX))
        printed = lines_until_killed(files_log_process, folder, life, lines)
        said = [files_log_process.parse(line) for line in printed]
        for each in said:
            assert (each.partition, each.offset) not in acknowledged
            acknowledged[each.partition, each.offset] = each.digest
        if rng.random() < 0.5:
            tear_tail(folder, rng)
        # A look at a copy leaves the crashed folder to the next process.
        is_copied = rng.random() < 0.5
        is_begun = (folder / META_PROPERTIES).exists()
        looked_at = copied(folder, tmp_path / "copy") if is_copied and is_begun else folder
        identity, found = asyncio.run(
            read_folder(looked_at, PARTITIONS, files_log_process.SETTINGS)
        )
        identities.add(identity)
        check_stored(found, acknowledged, stored)
        assert set(count_unacknowledged(found, life, said).values()) <= {1}
        stored = found
    assert len(identities) == 1
    assert len(acknowledged) > kills


_log = logging.getLogger(__name__)

EARLY_LINES = 60
"""As many lines, at the most, a process says that is killed while it begins."""


class Life(NamedTuple):
    claims: int
    restored: int
    snapshots: int


def live_and_die(folder: Path, life: int, lines_read: int, claims: Claims) -> Life:
    told = {READY: 0, SNAPSHOTS: 0}
    lines = lines_until_killed(engine_process, folder, life, lines_read)
    for line in lines:
        word, _, number = line.partition(" ")
        if word in told:
            told[word] = int(number)
        else:
            claims.add_own(parse(line))
    return Life(len(lines), told[READY], told[SNAPSHOTS])


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
    _, stored = asyncio.run(read_folder(tmp_path / LOG, PLACES, LOG_SETTINGS))
    judgement = judge(stored, claims.answered)
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
