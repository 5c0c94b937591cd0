"""Records: screens 2 to 4 produce them, copy their segments by Spark, and read them cold."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, Final

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.metadata.segment import SegmentState
from rlmm_demo.report.numbers import bytes_text
from rlmm_demo.report.story import Comparison, Figure, PreferredDirection
from rlmm_demo.screens.maps import local_ranges, tier_map
from rlmm_demo.world.records import CODECS, PARTITIONS, TOPIC, checksum_of, committed_rows, portions
from rlmm_demo.world.world import has_spark

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoScreen, DemoStage
    from rlmm_demo.world.world import DemoWorld


def show_produce(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    sent = portions()
    total = sum(len(one.values) for one in sent)
    claim = f"{total:,} records in {', '.join(CODECS)}, one transaction of them aborted; logs roll."
    with stage.screen("produce", claim) as screen:
        (screen.command if world.has_broker else screen.tell)(world.producer)
        facts.began_ms = SYSTEM_CLOCK.now_ms()
        begun_s = time.monotonic()
        offsets = world.produce(sent)
        seconds = time.monotonic() - begun_s
        facts.rows = list(committed_rows(sent, offsets))
        for portion, placed in zip(sent, offsets, strict=True):
            # A marker stands behind a transaction.
            behind = placed[-1] + 1 + portion.is_aborted
            facts.ends[portion.partition] = max(facts.ends.get(portion.partition, 0), behind)
        screen.figure(Figure("records a second", total / seconds, ""))
        segments = sum(map(len, local_ranges(world, facts.ends).values()))
        screen.tell(
            f"{segments} segments in {PARTITIONS} partitions, {bytes_text(world.local_bytes())}"
        )
        made = checksum_of(facts.rows)
        screen.tell(f"checksum of the {made.records:,} committed records: {made.text}")
        stage.tier_maps.append(tier_map("before", world, facts))
        screen.check(
            f"each partition has rolled, {segments - PARTITIONS} segments are closed",
            holds=segments >= 2 * PARTITIONS,
        )


_RECEIPTS, _PLAN_LINES, _PROGRESS_LINES = 3, 3, 2
_PROGRESS: Final = re.compile(r"\d+ of \d+ segments")


def show_copies(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    job = "Spark" if has_spark() else "A job in one process (there is no Java for Spark)"
    claim = f"{job} copies the closed segments, each once and verified; the metadata says so."
    with stage.screen("copy", claim) as screen:
        closed = [path for path in world.log_files() if _is_closed(path)]
        size = sum(path.stat().st_size for path in closed)
        begun_s = time.monotonic()
        world.store.upload(closed)
        plain = size / (time.monotonic() - begun_s) / 1e6
        adopt = " --adopt" if world.has_broker else ""
        screen.command(f"rlmm tier run{adopt} --topic {TOPIC} --store ... --sidecar ...")
        done, report = _run(world)
        screen.tell("\n".join(done.stdout.splitlines()[:_PLAN_LINES]))
        progress = [line for line in done.stderr.splitlines() if _PROGRESS.search(line)]
        screen.tell("\n".join(progress[-_PROGRESS_LINES:]))
        _show_receipts(screen, report)
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
        stage.tier_maps.append(tier_map("copied", world, facts))
        whole = _covered(world, facts)
        screen.check("every closed segment is in the tier, once and without a gap", holds=whole)


def _is_closed(segment: Path) -> bool:
    return segment.name != max(path.name for path in segment.parent.glob("*.log"))


def _run(world: DemoWorld) -> tuple[CompletedProcess[str], dict[str, Any]]:
    """Return the job's output and report; an adoption's report becomes that of its topic."""
    report = world.folder / "copies.json"
    done = world.run_command(
        world.copy_words(), "--sidecar", str(world.socket), *world.store.flags(),
        *world.engine_flags(), "--report", str(report),
    )  # fmt: skip
    document: dict[str, Any] = json.loads(report.read_text())
    for topic in document.get("topics", ()):
        document |= {"copies": topic["copies"], "standing": topic["standing"]}
    return done, document


def _show_receipts(screen: DemoScreen, report: dict[str, Any]) -> None:
    standing = f", topic {report['standing']}" if "standing" in report else ""
    screen.tell(f"job {report['jobId']}{standing}; of its receipts:")
    for one in report["copies"][:_RECEIPTS]:
        screen.tell(
            f"{one['topic']}-{one['partition']} {one['start']}-{one['last']}: {one['fate']}, "
            f"{one['logBytes']:,} bytes, crc64nvme {one['crc64nvme']}"
        )


def _covered(world: DemoWorld, facts: DemoFigures) -> bool:
    """Whether the finished copies of each partition reach its active segment without a gap."""
    ends: dict[int, int] = {}
    for segment in sorted(world.segments(), key=lambda one: one.start_offset):
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            partition = segment.id.partition.partition
            if segment.start_offset != ends.get(partition, 0):
                return False
            ends[partition] = segment.last_offset + 1
    local = local_ranges(world, facts.ends)
    return all(ends.get(number, 0) >= local[number][-1][0] for number in range(PARTITIONS))


def show_cold_read(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    claim = f"The local data is gone; {world.reader} reads everything from offset 0, unchanged."
    with stage.screen("read cold", claim) as screen:
        before = world.local_bytes()
        screen.command(world.forget_local())
        after = world.local_bytes()
        stage.tier_maps.append(tier_map("local data gone", world, facts))
        screen.tell(f"local: {bytes_text(before)} before, {bytes_text(after)} after")
        begun_s = time.monotonic()
        expected = facts.expected(world)
        command, rows = world.read_all(expected.records)
        screen.command(command)
        seconds = time.monotonic() - begun_s
        screen.figure(Figure("records a second, start of the reader included", len(rows) / seconds))
        screen.check("less than half of the bytes are local still", holds=2 * after < before)
        found = checksum_of(rows)
        screen.check(
            f"{found.records:,} of {expected.records:,} records, checksum {found.text} is equal",
            holds=found.text == expected.text,
        )
