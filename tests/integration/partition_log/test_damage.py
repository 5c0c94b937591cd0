"""Damage that recovery must not cut: named, left as it is, and healed by the right bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged
from rlmm.partition_log.registry import LogRegistry
from tests.integration.partition_log.test_opening import MARK, RECORDS, SMALL, crashed, made
from tests.support.logs.partition_logs import (
    TOPIC,
    TOPIC_ID,
    batch,
    log_files,
    partition_folder,
    picture,
    values_of,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["crashed"]


@pytest.mark.parametrize(
    ("number", "at"),
    [pytest.param(-1, 70, id="active-segment"), pytest.param(1, 70, id="closed-segment")],
)
async def test_damage_when_below_the_recovery_point_then_offline_and_nothing_is_changed(
    crashed: Path, number: int, at: int
) -> None:
    """Damage below the recovery point takes the partition offline and cuts no byte."""
    path = log_files(crashed)[number]
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    path.with_suffix(".index").unlink(missing_ok=True)
    before = {name: kept for name, kept in picture(crashed).items() if name.endswith(".log")}
    async with await LogRegistry.open(crashed, SMALL) as registry:
        for _ in range(2):
            with pytest.raises(LogDamaged, match=rf"{path.name}.*crc-mismatch"):
                await registry.partition(TOPIC, 0)
        assert registry.statistics().opened == 1
        other = await registry.create(TOPIC, 1, TOPIC_ID)
        await other.append(batch(b"the others go on"))
    assert not (crashed / MARK).exists()
    after = {name: kept for name, kept in picture(crashed).items() if name in before}
    assert after == before


async def test_log_when_it_lost_its_synced_end_then_is_offline(crashed: Path) -> None:
    """A log that ends below its synced end is offline."""
    path = log_files(crashed)[-1]
    path.write_bytes(b"")
    async with await LogRegistry.open(crashed, SMALL) as registry:
        with pytest.raises(LogDamaged, match="was synced up to 40"):
            await registry.partition(TOPIC, 0)


async def test_log_when_repaired_then_comes_back_by_reopening(crashed: Path) -> None:
    """An operator puts the right bytes back; reopening recovers without a restart."""
    path = log_files(crashed)[-1]
    good = path.read_bytes()
    path.write_bytes(bytes(len(good)))
    async with await LogRegistry.open(crashed, SMALL) as registry:
        with pytest.raises(LogDamaged):
            await registry.partition(TOPIC, 0)
        path.write_bytes(good)
        assert await values_of(await registry.reopen(TOPIC, 0)) == RECORDS
        assert registry.statistics().offline == 0


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
)
async def test_check_point_when_unreadable_then_is_told_and_the_log_opens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """The log opens without a damaged check point, and a warning names the file."""
    await made(tmp_path)
    (tmp_path / name).write_bytes(b"0\n1\nevents 0 forty\n")
    async with await LogRegistry.open(tmp_path, SMALL) as registry:
        assert await values_of(await registry.partition(TOPIC, 0)) == RECORDS
    assert f"{name}: taken as missing: no offset in events 0 forty" in caplog.text


async def test_compaction_when_unfinished_then_is_left_to_a_broker(tmp_path: Path) -> None:
    """A partition with a broker's unfinished compaction is refused and left unchanged."""
    await made(tmp_path)
    (partition_folder(tmp_path) / f"{0:020d}.log.swap").touch()
    async with await LogRegistry.open(tmp_path, SMALL) as registry:
        with pytest.raises(LogDamaged, match="compaction is unfinished"):
            await registry.partition(TOPIC, 0)
