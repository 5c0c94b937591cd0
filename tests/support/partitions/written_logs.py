"""
Logs written record by record, with the records that a reader must get.

    log = WrittenLog(seed=3)
    log.fill(200)                  # batches of every codec, transactions among them; rolled
    log.rows(committed=True)       # the truth
    log.into_store(store, "kafka/")
    log.into_folder(tmp_path)
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.partition_log.checkpoints import format_epochs, format_offsets, format_partition_metadata
from rlmm.partition_log.names import (
    EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    TIME_INDEX,
    TopicPartition,
    segment_file,
)
from rlmm.records.batch import TimestampType
from rlmm.records.compression import Compression
from rlmm.records.control import ControlType
from rlmm.records.records import Record
from rlmm.records.writer import NO_PRODUCER, Producer, build_batch, build_control_batch
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.segment_inspection import (
    NOTHING_BEFORE,
    InspectionRules,
    inspect_segment,
)
from spark_tiering.segments.segment_listing import SNAPSHOT, TXN_INDEX, list_segments
from spark_tiering.segments.segment_parts import RebuiltPart
from spark_tiering.storage import CopiedSegment, TierStorage
from tests.support.partitions.segments import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyOptions
    from spark_tiering.segments.segment_parts import SegmentReport
    from spark_tiering.stores.protocol import ObjectStore

T_MS = 1_700_000_000_000
CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
SUFFIXES = {
    SegmentPart.OFFSET_INDEX: OFFSET_INDEX,
    SegmentPart.TIME_INDEX: TIME_INDEX,
    SegmentPart.TXN_INDEX: TXN_INDEX,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """One row as Spark has it; timestamps without a zone, in UTC."""

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp: datetime
    timestampType: int
    headers: tuple[tuple[str, bytes | None], ...]


class _Written(NamedTuple):
    row: Row
    producer_id: int | None
    begun: int


@dataclass
class WrittenLog:
    """The growing log of one partition; times may lie *disorder_ms* before earlier ones."""

    seed: int = 0
    topic: str = "orders"
    partition: int = 0
    index_interval_bytes: int = 300
    disorder_ms: int = 500
    rng: random.Random = field(init=False)
    next_offset: int = 0
    now_ms: int = T_MS

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.id = TopicIdPartition(
            Uuid(bytes([7, *self.topic.encode()[:8].ljust(15, b"\1")])), self.topic, self.partition
        )
        self.segments: list[tuple[int, bytearray]] = [(0, bytearray())]
        self._written: list[_Written] = []
        self._open: dict[int, int] = {}
        self._ended: dict[tuple[int, int], bool] = {}
        self._reports: list[SegmentReport] | None = None

    # ------------------------------------------------------------------------------- writing

    def append(
        self,
        count: int = 3,
        *,
        codec: Compression = Compression.NONE,
        producer: int | None = None,
        holes: bool = False,
        appended: bool = False,
        size: int = 60,
    ) -> None:
        """Append a batch; with *producer* in its transaction."""
        rng, base = self.rng, self.next_offset
        records, offset = [], base
        for _ in range(count):
            at_ms = self.now_ms - rng.randint(0, self.disorder_ms)
            self.now_ms += rng.randint(0, 40)
            key = rng.choice([None, b"", rng.randbytes(rng.randint(1, 9))])
            value = rng.choice([None, b"", *(rng.randbytes(rng.randint(1, size)),) * 3])
            headers = tuple(
                (f"h{number}", rng.choice([None, b"", rng.randbytes(5)]))
                for number in range(rng.choice([0, 0, 1, 3]))
            )
            records.append(Record(offset, at_ms, key, value, headers))
            offset += 1 + (rng.randint(0, 3) if holes else 0)
        stamp_ms = self.now_ms if appended else None
        kind = TimestampType.LOG_APPEND_TIME if appended else TimestampType.CREATE_TIME
        writer = NO_PRODUCER
        if producer is not None:
            self._open.setdefault(producer, base)
            writer = Producer(producer, 0, -1, is_transactional=True)
        self._add(
            build_batch(
                records,
                base,
                last_offset=offset - 1,
                leader_epoch=4,
                compression=codec,
                timestamp_type=kind,
                max_timestamp_ms=stamp_ms,
                producer=writer,
            ),
            offset,
        )
        begun = -1 if producer is None else self._open[producer]
        for record in records:
            time_ms = record.timestamp_ms if stamp_ms is None else stamp_ms
            row = Row(
                record.key,
                record.value,
                self.topic,
                self.partition,
                record.offset,
                moment(time_ms),
                int(appended),
                tuple(record.headers),
            )
            self._written.append(_Written(row, producer, begun))

    def end(self, producer: int, *, aborts: bool) -> None:
        begun = self._open.pop(producer, None)
        if begun is None:
            return
        self._ended[producer, begun] = aborts
        kind = ControlType.ABORT if aborts else ControlType.COMMIT
        marker = build_control_batch(
            kind,
            self.next_offset,
            producer=Producer(producer, 0, -1, is_transactional=True),
            timestamp_ms=self.now_ms,
            leader_epoch=4,
        )
        self._add(marker, self.next_offset + 1)

    def roll(self) -> None:
        if self.segments[-1][1]:
            self.segments.append((self.next_offset, bytearray()))

    def fill(self, batches: int, *, segment_bytes: int = 3_000, transactions: bool = True) -> None:
        """Append that many batches in segments of about *segment_bytes*; ends with a roll."""
        rng = self.rng
        for _ in range(batches):
            choice = rng.random()
            producer = rng.choice([11, 12, 13]) if transactions and choice < 0.5 else None
            self.append(
                rng.randint(1, 6),
                codec=rng.choice(CODECS),
                producer=producer,
                holes=rng.random() < 0.2,
                appended=rng.random() < 0.15,
            )
            if transactions and rng.random() < 0.25:
                self.end(rng.choice([11, 12, 13]), aborts=rng.random() < 0.5)
            if len(self.segments[-1][1]) > segment_bytes:
                self.roll()
        self.roll()

    def settle(self) -> None:
        for producer in sorted(self._open):
            self.end(producer, aborts=bool(producer % 2))
        self.roll()

    def _add(self, batch: bytes, next_offset: int) -> None:
        self.segments[-1][1].extend(batch)
        self.next_offset = next_offset
        self._reports = None

    # --------------------------------------------------------------------------------- truth

    @property
    def tier_end(self) -> int:
        return self.segments[-1][0]

    @property
    def stable_end(self) -> int:
        """Return the offset behind the last one whose transactions the tier decides."""
        begun = [one.begun for one in self._in_tier() if self._fate(one) is None]
        return min([self.tier_end, *begun])

    def rows(
        self, first: int = 0, behind: int | None = None, *, committed: bool = False
    ) -> list[Row]:
        end = self.stable_end if committed else self.tier_end
        end = end if behind is None else min(end, behind)
        return [
            one.row
            for one in self._in_tier()
            if first <= one.row.offset < end and not (committed and self._fate(one) is True)
        ]

    def _in_tier(self) -> Iterator[_Written]:
        return (one for one in self._written if one.row.offset < self.tier_end)

    def _fate(self, one: _Written) -> bool | None:
        """Return whether it was aborted; None where the tier does not tell."""
        if one.producer_id is None:
            return False
        fate = self._ended.get((one.producer_id, one.begun))
        return fate if self._marker_in_tier(one) else None

    def _marker_in_tier(self, one: _Written) -> bool:
        begun = self._open.get(one.producer_id or -1)
        return (one.producer_id, one.begun) in self._ended and begun != one.begun

    # ---------------------------------------------------------------------------- as files

    @property
    def reports(self) -> list[SegmentReport]:
        if self._reports is None:
            rules = InspectionRules(index_interval_bytes=self.index_interval_bytes)
            rules = replace(rules, allows_holes=True)
            files, before = self.files, NOTHING_BEFORE
            self._reports = []
            for segment in list_segments(files.facts()):
                if segment.is_rolled:
                    report = inspect_segment(files, segment, before, rules=rules)
                    assert not report.blockers, report.blockers
                    self._reports.append(report)
                    before = report.after
        return self._reports

    @property
    def files(self) -> MemoryFiles:
        logs = {segment_file(base, LOG): bytes(content) for base, content in self.segments}
        return MemoryFiles({**logs, EPOCH_CHECKPOINT: format_epochs(((4, 0),))})

    def parts(self, report: SegmentReport) -> dict[SegmentPart, bytes]:
        contents = self.files.contents
        return {
            part: found.content
            if isinstance(found, RebuiltPart)
            else contents[found.name][: found.size_bytes]
            for part, found in report.parts.items()
        }

    def metadata(self, report: SegmentReport) -> SegmentMetadata:
        base, behind = report.segment.base_offset, report.segment.next_offset
        assert behind is not None
        uuid = Uuid(bytes([self.partition + 1, *base.to_bytes(15)]))
        return SegmentMetadata(
            SegmentId(self.id, uuid),
            base,
            behind - 1,
            7,
            report.max_timestamp_ms,
            T_MS + base,
            ((4, base),),
            report.size_bytes,
            None,
            SegmentState.COPY_SEGMENT_FINISHED,
            report.txn_index_empty,
        )

    @property
    def tiered(self) -> list[SegmentMetadata]:
        return [self.metadata(report) for report in self.reports]

    def into_store(
        self, store: ObjectStore, prefix: str = "", options: CopyOptions | None = None
    ) -> list[SegmentMetadata]:
        storage = TierStorage(store, prefix, options=options)
        for report in self.reports:
            done = storage.copy(self.metadata(report), self.parts(report))
            assert isinstance(done, CopiedSegment), done
        return self.tiered

    def into_folder(self, root: Path, *, high_watermark: int | None = None) -> Path:
        folder = root / f"{self.topic}-{self.partition}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.contents.items():
            (folder / name).write_bytes(content)
        for report in self.reports:
            behind = report.segment.next_offset or 0
            for part, content in self.parts(report).items():
                if part in SUFFIXES:
                    (folder / report.segment.file(SUFFIXES[part])).write_bytes(content)
                elif part is SegmentPart.PRODUCER_SNAPSHOT:
                    (folder / segment_file(behind, SNAPSHOT)).write_bytes(content)
        metadata = format_partition_metadata(bytes(self.id.topic_id))
        (folder / PARTITION_METADATA).write_bytes(metadata)
        (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
        if high_watermark is not None:
            noted = format_offsets({TopicPartition(self.topic, self.partition): high_watermark})
            (root / "replication-offset-checkpoint").write_bytes(noted)
        return folder


def moment(time_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=time_ms)


def row_of(found: Any) -> Row:
    values = dict(found)
    for name in ("key", "value"):
        if values.get(name) is not None:
            values[name] = bytes(values[name])
    headers = values.get("headers") or ()
    values["headers"] = tuple(
        (one["key"], None if one["value"] is None else bytes(one["value"])) for one in headers
    )
    at = values["timestamp"]
    values["timestamp"] = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return Row(**values)


def without_headers(rows: Sequence[Row]) -> list[Row]:
    return [row._replace(headers=()) for row in rows]
