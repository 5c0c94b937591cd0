"""Between pump and snapshots: the states of one are kept by the other, and given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.engine.snapshot_wiring import EngineSnapshots
from rlmm.errors import ConfigError, NotReady
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import ReplayHistory
from rlmm.metadata.ids import Uuid
from rlmm.metadata.python_shard import PythonShard
from rlmm.pump.state_images import Image
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from rlmm.snapshot.settings import SnapshotSettings
from tests.support.builders import started

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class OneState:
    def __init__(self) -> None:
        self.shard = PythonShard(0)
        self.shard.apply_event(started("a"))

    def positions(self) -> Mapping[int, int]:
        return {0: self.shard.position}

    async def freeze(self, partition: int) -> Image:
        assert partition == 0
        parts = list(self.shard.image_parts())
        return Image(self.shard.position, ReplayHistory(), parts, lambda: True)


def snapshots_in(folder: Path, set_apart: Callable[[], None] = lambda: None) -> EngineSnapshots:
    made = EngineSnapshots(
        folder, SnapshotSettings(), PythonShard, SYSTEM_CLOCK, SNAPSHOT_DISK, set_apart
    )
    made.keep(OneState())
    return made


async def test_state_when_it_is_given_back_then_is_set_apart_as_a_whole(tmp_path: Path) -> None:
    """The restored state is frozen for the collector as a whole; keeping it freezes nothing."""
    frozen: list[int] = []
    both = [snapshots_in(tmp_path, lambda: frozen.append(1)) for _ in range(2)]
    for snapshots in both:
        snapshots.connect(LogIdentity("cluster", Uuid.of(0, 1), 1))
    flushed = await both[0].flush()
    assert flushed.written == (0,)
    assert frozen == []
    position = OneState().shard.position
    restored = await both[1].restore(0, 0, position)
    assert restored is not None
    assert restored.shard.position == position
    assert frozen == [1]


async def test_flush_when_the_log_is_not_known_then_says_so(tmp_path: Path) -> None:
    """A flush says that the log is unknown, which differs from a flush with nothing to write."""
    snapshots = snapshots_in(tmp_path)
    obstacle = (await snapshots.flush()).obstacle
    assert isinstance(obstacle, NotReady)
    assert obstacle.reason == "connecting"
    snapshots.connect(LogIdentity("", Uuid.of(0, 1), 1))
    assert isinstance((await snapshots.flush()).obstacle, ConfigError)
    snapshots.connect(LogIdentity("cluster", Uuid.of(0, 1), 1))
    found = await snapshots.flush()
    assert (found.written, found.obstacle) == ((0,), None)
