"""Screen 3: Spark copies the closed segments."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, Final

from rlmm.metadata.segment import SegmentState
from rlmm_demo.report.story import Comparison, Figure, PreferredDirection
from rlmm_demo.screens.maps import local_ranges, tier_map
from rlmm_demo.world.records import PARTITIONS, TOPIC
from rlmm_demo.world.world import has_spark

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoScreen, DemoStage
    from rlmm_demo.world.commands import CommandResult
    from rlmm_demo.world.world import DemoWorld

_RECEIPTS, _PLAN_LINES, _PROGRESS_LINES = 3, 3, 2
"""So many are shown."""
_PROGRESS: Final = re.compile(r"\d+ of \d+ segments")


def show(stage: DemoStage, world: DemoWorld, told: DemoFigures) -> None:
    """Plan, progress, receipts; how fast, beside the plainest program."""
    who = "Spark" if has_spark() else "A job in one process (there is no Java for Spark)"
    claim = f"{who} copies the closed segments, each once and verified; the metadata says so."
    with stage.screen("copy", claim) as screen:
        closed = [path for path in world.log_files() if _is_closed(path)]
        size = sum(path.stat().st_size for path in closed)
        begun_s = time.monotonic()
        world.store.upload(closed)
        plain = size / (time.monotonic() - begun_s) / 1e6
        adopt = " --adopt" if world.has_broker else ""
        screen.command(f"rlmm tier run{adopt} --topic {TOPIC} --store ... --sidecar ...")
        said, report = _run(world)
        screen.tell("\n".join(said.answer.splitlines()[:_PLAN_LINES]))
        progress = [line for line in said.progress.splitlines() if _PROGRESS.search(line)]
        screen.tell("\n".join(progress[-_PROGRESS_LINES:]))
        _tell(screen, report)
        copied = [one for one in report["copies"] if one["fate"] == "finished"]
        seconds = sum(one["seconds"] for one in copied)
        pace = sum(one["logBytes"] for one in copied) / max(seconds, 1e-9) / 1e6
        screen.figure(
            Figure(
                "a task that reads, judges, copies and verifies",
                pace,
                "MB/s",
                Comparison(f"{world.store.yardstick}, one at a time", plain),
                PreferredDirection.HIGHER,
            )
        )
        others = f", {len(closed) - len(copied)} by the broker itself" if world.has_broker else ""
        screen.check(
            f"{len(copied)} segments finished by the job{others}, none left open",
            holds=bool(copied) and report["isFine"],
        )
        stage.tier_maps.append(tier_map("copied", world, told))
        whole = _covered(world, told)
        screen.check("every closed segment is in the tier, once and without a gap", holds=whole)


def _is_closed(segment: Path) -> bool:
    """Whether it is no active segment."""
    return segment.name != max(path.name for path in segment.parent.glob("*.log"))


def _run(world: DemoWorld) -> tuple[CommandResult, dict[str, Any]]:
    """What the job says, its plan first, and its own report; of an adoption that of its topic."""
    report = world.folder / "copies.json"
    said = world.run_told(
        world.copy_words(), "--sidecar", str(world.socket), *world.store.flags(),
        *world.engine_flags(), "--report", str(report),
    )  # fmt: skip
    document: dict[str, Any] = json.loads(report.read_text())
    for topic in document.get("topics", ()):
        document |= {"copies": topic["copies"], "standing": topic["standing"]}
    return said, document


def _tell(screen: DemoScreen, report: dict[str, Any]) -> None:
    standing = f", topic {report['standing']}" if "standing" in report else ""
    screen.tell(f"job {report['jobId']}{standing}; of its receipts:")
    for one in report["copies"][:_RECEIPTS]:
        screen.tell(
            f"{one['topic']}-{one['partition']} {one['start']}-{one['last']}: {one['fate']}, "
            f"{one['logBytes']:,} bytes, crc64nvme {one['crc64nvme']}"
        )


def _covered(world: DemoWorld, told: DemoFigures) -> bool:
    """Whether finished copies of each partition follow each other to its active segment."""
    ends: dict[int, int] = {}
    for segment in sorted(world.segments(), key=lambda one: one.start_offset):
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            partition = segment.id.partition.partition
            if segment.start_offset != ends.get(partition, 0):
                return False
            ends[partition] = segment.last_offset + 1
    local = local_ranges(world, told.ends)
    return all(ends.get(number, 0) >= local[number][-1][0] for number in range(PARTITIONS))
