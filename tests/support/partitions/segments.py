"""Partitions in memory: the files of a few segments, and how a test damages them."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.records.control import ControlType
from rlmm.records.header import HEADER_BYTES, TRANSACTIONAL_BIT
from rlmm.records.writer import NO_PRODUCER, Producer, build_control_batch
from spark_tiering.segments.companions import PART_BYTES_MAX
from spark_tiering.segments.partition_files import SourceFileFacts, read_whole
from spark_tiering.segments.segment_inspection import (
    NOTHING_BEFORE,
    NOTHING_KNOWN,
    USUAL_RULES,
    inspect_segment,
)
from spark_tiering.segments.segment_listing import ListedSegment, list_segments
from spark_tiering.segments.segment_parts import RebuiltPart, StoredPart
from tests.support.records.batches import forge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
    from spark_tiering.segments.partition_files import PartitionFiles
    from spark_tiering.segments.segment_inspection import InspectionRules
    from spark_tiering.segments.segment_parts import SegmentReport, StateBefore

DATA = Path(__file__).resolve().parents[2] / "data"
T_MS = 1_700_000_000_000
MODIFIED_MS = 1_700_000_000_123


class MemoryFiles:
    """A partition's files in memory; *told* are wrong sizes, *largest_read* a count."""

    def __init__(
        self, contents: Mapping[str, bytes], told: Mapping[str, int] | None = None
    ) -> None:
        self.contents = dict(contents)
        self.told = dict(told or {})
        self.largest_read = 0
        self.bytes_read: dict[str, int] = {}

    @classmethod
    def of_folder(cls, folder: Path) -> MemoryFiles:
        return cls({path.name: path.read_bytes() for path in folder.iterdir()})

    def without(self, *endings: str) -> MemoryFiles:
        return MemoryFiles(
            {name: content for name, content in self.contents.items() if not name.endswith(endings)}
        )

    def facts(self) -> dict[str, SourceFileFacts]:
        sizes = {name: len(content) for name, content in self.contents.items()}
        return {
            name: SourceFileFacts(size, MODIFIED_MS)
            for name, size in {**sizes, **self.told}.items()
        }

    def read(self, name: str, start: int, size: int) -> bytes:
        self.largest_read = max(self.largest_read, size)
        content = self.contents.get(name, b"")[start : start + size]
        self.bytes_read[name] = self.bytes_read.get(name, 0) + len(content)
        return content


def inspect_all(
    files: PartitionFiles,
    rules: InspectionRules = USUAL_RULES,
    before: StateBefore = NOTHING_BEFORE,
) -> list[SegmentReport]:
    reports: list[SegmentReport] = []
    for segment in list_segments(files.facts()):
        if segment.is_rolled:
            known = reports[-1].after if reports else before
            reports.append(inspect_segment(files, segment, known, rules=rules))
    return reports


def recorded_partition() -> MemoryFiles:
    """Return the partition that a broker of 4.3.1 left, see `tests/data/README.md`."""
    recorded = json.loads((DATA / "kafka-4.3.1" / "orders-0.json").read_text())
    return MemoryFiles({name: base64.b64decode(text) for name, text in recorded.items()})


def data_batch(
    base_offset: int,
    at_ms: int,
    *,
    count: int = 10,
    size: int = 1171,
    epoch: int = 4,
    producer: Producer = NO_PRODUCER,
) -> bytes:
    """Build a batch of *size* bytes that no reader decodes, with newest timestamp *at_ms*."""
    return forge(
        b"\x55" * (size - HEADER_BYTES),
        count,
        base_offset=base_offset,
        leader_epoch=epoch,
        attributes=TRANSACTIONAL_BIT if producer.is_transactional else 0,
        base_timestamp_ms=at_ms,
        max_timestamp_ms=at_ms,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=producer.base_sequence,
    )


def marker_batch(
    base_offset: int,
    at_ms: int,
    producer: Producer,
    kind: ControlType = ControlType.ABORT,
    *,
    epoch: int = 4,
) -> bytes:
    """Build a transaction marker of coordinator epoch 7."""
    return build_control_batch(
        kind,
        base_offset,
        producer=producer,
        timestamp_ms=at_ms,
        leader_epoch=epoch,
        coordinator_epoch=7,
    )


IDEMPOTENT = Producer(4000, 2, 0)
ABORTED = Producer(4001, 1, 0, is_transactional=True)
OPEN = Producer(4002, 0, 0, is_transactional=True)


def example_partition() -> MemoryFiles:
    """
    Two rolled segments and the active one; every file beside the logs is spelled out in hex.

    0-119: 12 batches without a producer, a second apart. 120-250: 12 batches of an idempotent
    producer with times that run backwards, a batch each of two transactions, the abort of the
    first. 251: under leader epoch 6; the abort of the second at 256.
    """
    first = b"".join(data_batch(10 * n, T_MS + 9 + 1000 * n) for n in range(12))
    second = b"".join(
        data_batch(
            120 + 10 * n,
            T_MS + 60_009 - 1000 * n,
            producer=dataclasses.replace(IDEMPOTENT, base_sequence=10 * n),
        )
        for n in range(12)
    )
    second += data_batch(240, T_MS + 70_004, count=5, size=356, producer=ABORTED)
    second += data_batch(245, T_MS + 71_004, count=5, size=356, producer=OPEN)
    second += marker_batch(250, T_MS + 72_000, ABORTED)
    active = data_batch(251, T_MS + 80_000, count=5, epoch=6)
    active += marker_batch(256, T_MS + 81_000, OPEN, epoch=6)
    written = {
        "00000000000000000000.index": "000000310000124c 0000005900002498",
        "00000000000000000000.timeindex": (
            "0000018bcfe577a9 00000031 0000018bcfe58749 00000059 0000018bcfe59301 00000077"
        ),
        "00000000000000000120.snapshot": "0001 48674bc7 00000000",
        "00000000000000000120.index": "000000310000124c 0000005900002498 0000007c000036e4",
        "00000000000000000120.timeindex": (
            "0000018bcfe65269 00000009 0000018bcfe67974 0000007c 0000018bcfe68140 00000082"
        ),
        "00000000000000000120.txnindex": (
            "0000 0000000000000fa1 00000000000000f0 00000000000000fa 00000000000000f5"
        ),
        "00000000000000000251.snapshot": (
            "0001 9bcd5feb 00000003"
            "0000000000000fa0 0002 00000077 00000000000000ef 00000009 0000018bcfe62771 ffffffff"
            "ffffffffffffffff"
            "0000000000000fa1 0001 00000004 00000000000000f4 00000004 0000018bcfe68140 00000007"
            "ffffffffffffffff"
            "0000000000000fa2 0000 00000004 00000000000000f9 00000004 0000018bcfe67d5c ffffffff"
            "00000000000000f5"
        ),
        "leader-epoch-checkpoint": "300a320a3420300a36203235310a",
    }
    return MemoryFiles(
        {
            "00000000000000000000.log": first,
            "00000000000000000120.log": second,
            "00000000000000000251.log": active,
            **{name: bytes.fromhex(content) for name, content in written.items()},
        }
    )


SECOND = "00000000000000000120"
"""The second segment of the example, as its files begin."""
NEXT_SNAPSHOT = "00000000000000000251.snapshot"


def changed(files: MemoryFiles, **contents: bytes | None) -> MemoryFiles:
    kept = dict(files.contents)
    for name, content in contents.items():
        full = {
            "checkpoint": "leader-epoch-checkpoint",
            "snapshot": NEXT_SNAPSHOT,
            "snapshot_before": f"{SECOND}.snapshot",
        }.get(name, f"{SECOND}.{name}")
        if content is None:
            del kept[full]
        else:
            kept[full] = content
    return MemoryFiles(kept)


def second_of(files: MemoryFiles, before: StateBefore = NOTHING_KNOWN) -> SegmentReport:
    return inspect_segment(files, ListedSegment(120, 251), before)


def kinds(report: SegmentReport) -> list[tuple[SegmentPart, SegmentFindingKind]]:
    return [(found.part, found.kind) for found in report.findings]


def content_of(
    files: PartitionFiles, part: SegmentPart, content: StoredPart | RebuiltPart
) -> bytes | SegmentFinding:
    """Return the bytes of a part beside the log; a finding where the file is another by now."""
    if isinstance(content, RebuiltPart):
        return content.content
    return read_whole(files, content.name, content.size_bytes, part, PART_BYTES_MAX)
