"""Between pump and snapshots: the states of one are kept by the other, and given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.engine.snapshot_wiring import EngineSnapshots
from rlmm.errors import ConfigError, NotReady
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from rlmm.snapshot.settings import SnapshotSettings
from tests.support.builders import started
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.snapshots import FakeSource, shard_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def snapshots_in(folder: Path, set_apart: Callable[[], None] = lambda: None) -> EngineSnapshots:
    made = EngineSnapshots(
        folder, SnapshotSettings(), ChosenShard, SYSTEM_CLOCK, SNAPSHOT_DISK, set_apart
    )
    made.keep(FakeSource({0: shard_of([started("a")], 0)}))
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
    restored = await both[1].restore(0, 1)
    assert restored is not None
    assert restored.shard.position == 1
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
