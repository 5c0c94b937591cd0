"""The partition log against a list, through appends, rolls, syncs, restarts and crashes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rlmm.errors import LogTruncated
from rlmm.partition_log.settings import SyncPolicy
from rlmm.records.batch import Batch, walk
from tests.support.logs.partition_logs import (
    FAST,
    FIRST_MS,
    batch,
    copied,
    log_files,
    open_log,
    partition_folder,
)

CHANCE = st.floats(0, 1)
SIZES = st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=3), min_size=1, max_size=3)
"""For each batch of an append, the sizes of its values."""
GARBAGE = st.one_of(
    st.just(b""), st.binary(max_size=80).map(b"\xff".__add__), st.just(b"\xff" + bytes(200))
)
"""Never what the batch that was cut went on with."""
SETTINGS = replace(FAST, segment_bytes=2_500, batch_bytes_max=2_500)


class Stored(NamedTuple):
    base_offset: int
    values: list[bytes]
    timestamp_ms: int
    size: int
    epoch: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)


class LogAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.root = self.folder / "0"
        self.batches: list[Stored] = []
        self.log_start = 0
        self.epoch = 0
        self.session = 0
        self.clock_ms = FIRST_MS

    @initialize(policy=st.sampled_from(list(SyncPolicy)))
    def begin(self, policy: SyncPolicy) -> None:
        self.settings = replace(SETTINGS, sync=policy, sync_interval_ms=10**9)
        self.open()

    def open(self) -> None:
        self.registry, self.log = self.loop.run_until_complete(
            open_log(self.root, self.settings, now_ms=lambda: self.clock_ms)
        )
        if self.settings.sync is not SyncPolicy.EACH_GROUP:
            # Else a roll would sync by itself, and a closed segment would hardly ever be unsynced.
            self.log._commit.start_soon = lambda: None  # type: ignore[method-assign]  # see above

    def settle(self) -> None:
        async def settled() -> None:
            await asyncio.sleep(0)
            while self.log._commit._running is not None:
                await asyncio.wait([self.log._commit._running])
                await asyncio.sleep(0)

        self.loop.run_until_complete(settled())

    def teardown(self) -> None:
        self.loop.run_until_complete(self.registry.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.folder)

    @property
    def next_offset(self) -> int:
        """Return the offset behind the model's last record."""
        return self.batches[-1].next_offset if self.batches else self.log_start

    @rule(appends=st.lists(SIZES, max_size=8), later_ms=st.integers(-5, 20), leads=st.booleans())
    def append(self, appends: list[list[list[int]]], later_ms: int, leads: bool) -> None:
        self.epoch += leads
        for sizes in appends:
            self.append_once(sizes, later_ms)

    def append_once(self, sizes: list[list[int]], later_ms: int) -> None:
        self.clock_ms += max(later_ms, 0)
        sent, offset = [], self.next_offset
        for group in sizes:
            values = [b"%d:" % (offset + n) + b"x" * size for n, size in enumerate(group)]
            timestamp_ms = self.clock_ms + later_ms
            content = batch(*values, timestamp_ms=timestamp_ms)
            sent.append((content, Stored(offset, values, timestamp_ms, len(content), self.epoch)))
            offset += len(values)
        record_set = b"".join(content for content, _ in sent)
        if len(record_set) > SETTINGS.segment_bytes:
            return
        appended = self.loop.run_until_complete(
            self.log.append(record_set, leader_epoch=self.epoch)
        )
        assert tuple(appended) == (self.next_offset, offset)
        self.batches += [stored for _, stored in sent]

    @rule(where=CHANCE, bytes_max=st.sampled_from([1, 100, 700, 1 << 20]))
    def read(self, where: float, bytes_max: int) -> None:
        position = self.log_start + round(where * (self.next_offset - self.log_start))
        record_set = self.loop.run_until_complete(self.log.read(position, bytes_max=bytes_max))
        if position == self.next_offset:
            assert record_set is None
            return
        assert record_set is not None
        found = [one for one in walk(record_set.data) if isinstance(one, Batch)]
        expected = [one for one in self.batches if one.next_offset > position][: len(found)]
        assert found
        assert [list(one.values().values) for one in found] == [one.values for one in expected]
        assert [one.base_offset for one in found] == [one.base_offset for one in expected]
        assert [one.leader_epoch for one in found] == [one.epoch for one in expected]
        assert record_set.next_offset == expected[-1].next_offset
        assert len(found) == 1 or len(record_set.data) <= bytes_max

    @rule(later_ms=st.integers(-50, 50))
    def look_up_time(self, later_ms: int) -> None:
        timestamp_ms = self.clock_ms + later_ms
        found = self.loop.run_until_complete(self.log.offset_for_time(timestamp_ms))
        late = [
            max(one.base_offset, self.log_start)
            for one in self.batches
            if one.timestamp_ms >= timestamp_ms and one.next_offset > self.log_start
        ]
        assert (found and found.offset) == (late[0] if late else None)

    @rule(is_noted=st.booleans())
    def sync(self, is_noted: bool) -> None:
        self.loop.run_until_complete(self.log.sync())
        assert self.log.recovery_point == self.next_offset
        if is_noted:
            self.loop.run_until_complete(self.registry.checkpoint())

    @rule()
    def roll(self) -> None:
        self.loop.run_until_complete(self.log.roll())

    @rule(where=CHANCE)
    def advance_log_start(self, where: float) -> None:
        self.sync(is_noted=False)
        self.log_start += round(where * (self.next_offset - self.log_start))
        self.loop.run_until_complete(self.log.advance_log_start(self.log_start))
        with pytest.raises(LogTruncated):
            self.loop.run_until_complete(self.log.read(self.log_start - 1))
        if self.batches and self.batches[-1].next_offset == self.log_start:
            return
        self.batches = [one for one in self.batches if one.next_offset > self.log_start]

    @rule()
    def reopen(self) -> None:
        self.loop.run_until_complete(self.registry.close())
        self.open()
        assert self.log.recovered.was_clean
        assert self.log.recovered.scanned_bytes == 0

    @precondition(lambda self: self.session < 6)
    @rule(
        before=st.lists(SIZES, max_size=8),
        kept=CHANCE,
        garbage=GARBAGE,
        behind=st.sampled_from(["removed", "emptied", "left"]),
        index=st.sampled_from(["kept", "removed", "zeroed"]),
    )
    def crash(
        self, before: list[list[list[int]]], kept: float, garbage: bytes, behind: str, index: str
    ) -> None:
        """Open a copy whose unsynced tail was cut, with later blocks gone, empty or whole."""
        self.append(before, 1, leads=False)
        self.settle()
        synced = [one for one in self.batches if one.next_offset <= self.log.recovery_point]
        unsynced = self.batches[len(synced) :]
        self.session += 1
        crashed = copied(self.root, self.folder / str(self.session))
        cut = round(kept * sum(one.size for one in unsynced))
        survivors = self.cut_files(crashed, unsynced, cut, garbage, behind)
        for path in partition_folder(crashed).glob("*.index"):
            if index == "removed":
                path.unlink()
            elif index == "zeroed":
                path.write_bytes(bytes(path.stat().st_size))
        self.loop.run_until_complete(self.registry.close())
        self.root = crashed
        self.batches = synced + survivors
        self.open()

    def cut_files(
        self, root: Path, unsynced: list[Stored], cut: int, garbage: bytes, behind: str
    ) -> list[Stored]:
        """Keep *cut* bytes of the unsynced tail; return the batches that are whole."""
        tail = cut
        survivors: list[Stored] = []
        for one in unsynced:
            if one.size > tail:
                break
            tail -= one.size
            survivors.append(one)
        left = cut
        was_cut = False
        for path in log_files(root):
            base_offset = int(path.stem)
            mine = [one for one in unsynced if self.segment_of(root, one) == base_offset]
            size = sum(one.size for one in mine)
            if was_cut:
                self.lose(path, behind, is_torn=tail > 0)
            elif mine and left < size:
                content = path.read_bytes()
                path.write_bytes(content[: len(content) - size + left] + garbage)
                was_cut = True
            left -= size
        return survivors

    def segment_of(self, root: Path, one: Stored) -> int:
        return max(int(path.stem) for path in log_files(root) if int(path.stem) <= one.base_offset)

    @staticmethod
    def lose(path: Path, behind: str, *, is_torn: bool) -> None:
        if behind == "removed":
            path.unlink()
        elif behind == "emptied" or not is_torn:
            path.write_bytes(b"")

    @invariant()
    def bounds_are_those_of_the_list(self) -> None:
        if hasattr(self, "log"):
            assert (self.log.log_start, self.log.next_offset) == (self.log_start, self.next_offset)


TestLogAgainstList = LogAgainstList.TestCase
