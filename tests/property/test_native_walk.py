"""The core's walk over record batches against Python's: equal bytes in, equal findings out."""

from __future__ import annotations

import random
import shutil
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import LogDamaged
from rlmm.partition_log import scan
from rlmm.partition_log.descriptors import Descriptors
from rlmm.partition_log.disk import Disk
from rlmm.partition_log.names import TopicPartition
from rlmm.partition_log.opening import PartitionOpening, open_partition
from rlmm.partition_log.shared_resources import LoadedEntries, LogPlace
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from rlmm.records.writer import Producer, build_batch, records_of
from tests.support.engine.chosen import needs_native
from tests.support.logs.partition_logs import FAST, FIRST_MS, TOPIC, picture
from tests.support.logs.scans import contents_of, index_contents
from tests.support.records.mutations import mutated, with_sound_crc

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from rlmm.records.damage import DamagedBatch, PartialTail

pytestmark = needs_native

TAILS = (b"", b"\0" * 90, b"\0\0\0", b"\xff" * 100, bytes(8) + b"\x7f\xff\xff\xff" + bytes(100))


def random_batches(rng: Random) -> list[bytes]:
    """Make batches whose offsets, times, epochs, codecs and sizes run as in logs of any age."""
    at, epoch = rng.choice((0, 0, 0, 2**31 - 40, 2**62)), rng.randint(-1, 2)
    batches = []
    for _ in range(rng.randint(0, 12)):
        at += rng.choice((0,) * 9 + (1, 7, 2**31))
        epoch += rng.choice((0,) * 8 + (1, -1))
        values = [rng.randbytes(rng.choice((0, 5, 60, 400)))] * rng.choice((1, 1, 2, 9))
        times_ms = FIRST_MS + rng.choice((-1, 0, 0, 1, rng.randint(-50, 50)))
        batches.append(
            build_batch(
                records_of(values, at, times_ms),
                at,
                last_offset=at + len(values) - 1 + rng.choice((0, 0, 0, 3)),
                leader_epoch=max(epoch, -1),
                compression=rng.choice((Compression.NONE,) * 5 + tuple(Compression)),
                producer=Producer(7, 1, 3, is_transactional=rng.random() < 0.1),
            )
        )
        at += len(values) + 3 * (rng.random() < 0.1)
    return batches


def random_bytes(rng: Random) -> bytes:
    """Make sound batches, then reorder, repeat, damage or cut some of what they are."""
    batches = random_batches(rng)
    if rng.random() < 0.1:
        rng.shuffle(batches)
    if rng.random() < 0.1 and batches:
        batches.insert(rng.randrange(len(batches)), rng.choice(batches))
    data = b"".join(batches) + rng.choice(TAILS[:1] * 6 + TAILS)
    kind = rng.random()
    if kind < 0.15:
        return data[: rng.randint(0, len(data))]
    if kind < 0.5:
        data = mutated(rng, data, [b"".join(random_batches(rng))])
    if kind < 0.35:
        return with_sound_crc(data)
    if kind < 0.6 and batches:
        # No CRC covers the first 16 bytes of a batch.
        starts = [0, *accumulate(map(len, batches))][: len(batches)]
        at = rng.choice(starts) + rng.randrange(17)
        if at < len(data):
            data = data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    return data


def told(found: Batch | DamagedBatch | PartialTail) -> Any:
    if not isinstance(found, Batch):
        return found
    return found.start, found.stop, found.last_offset, found._header, list(found.values())


@pytest.mark.parametrize("seed", range(4))
def test_walk_when_done_by_the_core_then_finds_what_python_finds(seed: int) -> None:
    """Sound, damaged and cut record sets give the same batches and the same faults."""
    from rlmm.records.native_walk import walk as walk_in_core  # noqa: PLC0415 - may not be built

    rng = random.Random(seed)
    for _ in range(1_500):
        data = random_bytes(rng)
        start = rng.choice((0, 0, 0, rng.randint(0, len(data) + 3)))
        found, expected = (list(map(told, one(data, start))) for one in (walk_in_core, walk))
        assert found == expected


def test_walk_when_given_hostile_places_then_ends_without_a_batch() -> None:
    """A place behind the end, and a place beyond any number of bytes, hold no batch."""
    import rlmm_native  # noqa: PLC0415 - may not be built

    data = build_batch(records_of([b"x"], 0), 0)
    for start in (len(data), len(data) + 1, 2**63, 2**64 - 1, 2**64 - 61):
        assert rlmm_native.sound_headers(data, start) == b""
        for mark in (-(2**63), 0, 2**63 - 1):
            assert rlmm_native.sound_runs(data, start, mark, 2**63 - 1) == b""
    for interval in (-(2**63), 0, 2**63 - 1):
        runs = {rlmm_native.sound_runs(data, 0, mark, interval) for mark in (-(2**63), 2**63 - 1)}
        assert len(runs) == 1
    with pytest.raises(OverflowError):
        rlmm_native.sound_headers(data, -1)


@pytest.mark.parametrize("seed", range(4))
def test_scan_when_done_by_the_core_then_finds_what_python_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexes, epochs, holes, damage and the end are the same, wherever a read ends."""
    rng = random.Random(seed)
    for _ in range(1_500):
        data = random_bytes(rng)
        monkeypatch.setattr(scan, "_CHUNK_BYTES", rng.choice((1 << 20, 61, 200, 700, 2_000)))
        base_offset = rng.choice((0, 0, 0, 1, 2**31 - 40, 2**31))
        interval = rng.choice((0, 1, 100, 300, 4_096))
        found, expected = (
            contents_of(
                scan.scan_file(
                    lambda size, position, data=data: data[position : position + size],  # type: ignore[misc]
                    len(data),
                    base_offset,
                    interval,
                    in_core=in_core,
                )
            )
            for in_core in (True, False)
        )
        assert found == expected


def made_folder(rng: Random, folder: Path) -> None:
    """Write the segments of a partition, of which any may be damaged, and perhaps their indexes."""
    folder.mkdir(parents=True)
    base_offset = 0
    for number in range(rng.randint(1, 3)):
        name = folder / f"{base_offset:020d}.log"
        batches = [
            build_batch(records_of([rng.randbytes(30)], at, FIRST_MS + at), at, leader_epoch=number)
            for at in range(base_offset, base_offset + rng.randint(1, 20))
        ]
        content = b"".join(batches)
        base_offset += len(batches)
        if rng.random() < 0.4:
            content = mutated(rng, content, [content]) + rng.choice(TAILS)
        if rng.random() < 0.2:
            content = with_sound_crc(content)
        name.write_bytes(content)
        if rng.random() < 0.5:
            name.with_suffix(".index").write_bytes(b"")
            name.with_suffix(".timeindex").write_bytes(bytes(4) * rng.randint(0, 3))


class QuickDisk(Disk):
    """Syncs nothing: what is compared is not lost by a crash of the machine."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


QUICK_DISK = QuickDisk()


def outcome(folder: Path, noted_point: int | None, *, in_core: bool, is_clean: bool) -> Any:
    descriptors = Descriptors(QUICK_DISK, 8, read_only=False)
    place = LogPlace(
        QUICK_DISK, descriptors, LoadedEntries(), FAST, is_read_only=False, in_core=in_core
    )
    opening = PartitionOpening(
        TopicPartition(TOPIC, 0), folder, place, noted_point, None, is_clean, now_ms=FIRST_MS
    )
    try:
        store = open_partition(opening)
    except LogDamaged as error:
        return str(error)
    finally:
        descriptors.close()
    indexes = [index_contents(one.index) for one in store.segments if one.index is not None]
    sizes = [(one.base_offset, one.size) for one in store.segments]
    return store.end(), store.epochs.entries, store.recovered, indexes, sizes


@pytest.mark.parametrize("seed", range(4))
def test_recovery_when_done_by_the_core_then_keeps_what_python_keeps(
    seed: int, tmp_path: Path
) -> None:
    """A damaged folder is cut, rebuilt or refused in the same words, and has the same files."""
    rng = random.Random(seed)
    folder, kept = tmp_path / "folder" / f"{TOPIC}-0", tmp_path / "kept"
    kinds = set()
    for _ in range(120):
        made_folder(rng, kept)
        noted_point, is_clean = rng.choice((None, 0, 3, 10)), rng.random() < 0.3
        results = []
        for in_core in (True, False):
            shutil.copytree(kept, folder)
            found = outcome(folder, noted_point, in_core=in_core, is_clean=is_clean)
            files = {name: content for name, (content, _) in picture(folder).items()}
            results.append((found, files))
            shutil.rmtree(folder)
        assert results[0] == results[1]
        kinds.add(type(results[0][0]))
        shutil.rmtree(kept)
    assert kinds == {str, tuple}


def test_runs_when_there_are_none_of_the_usual_form_then_python_judges_each_batch() -> None:
    """Runs end at holes, falling offsets, other epochs and behind each batch due for an entry."""
    from rlmm.records.native_walk import batch_runs  # noqa: PLC0415 - may not be built

    ends = (0, 1, 3, 4, 2, 5)
    epochs = (0, 0, 0, 1, 1, 0)
    batches = [
        build_batch(records_of([b"x"], at), at, leader_epoch=epoch)
        for at, epoch in zip(ends, epochs, strict=True)
    ]
    data, size = b"".join(batches), len(batches[0])
    runs = list(batch_runs(data, 0, 0, len(data)))
    assert [(one.base_offset, one.next_offset, one.leader_epoch) for one in runs] == [
        (0, 2, 0), (3, 4, 0), (4, 5, 1), (2, 3, 1), (5, 6, 0)
    ]  # fmt: skip
    assert [one.stop for one in runs] == [2 * size, 3 * size, 4 * size, 5 * size, 6 * size]
    each = list(batch_runs(data, 0, -1, 0))
    assert [one.last_start for one in each] == list(range(0, 6 * size, size))
    assert list(chain(batch_runs(data[:-1] + b"?", 5 * size, 0, 0))) == []
