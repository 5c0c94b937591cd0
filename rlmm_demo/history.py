"""History: `rlmm demo --history` replays a recorded topic and judges faulty events, in memory."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.output import print_table
from rlmm.metadata.encoding import encode, encode_any
from rlmm.metadata.engines import shard_type
from rlmm.metadata.events import Event, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import build_batch

if TYPE_CHECKING:
    from rlmm.metadata.python_shard import PythonShard


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """A recorded metadata topic: the record set of each partition that has one."""

    kafka_version: str
    partition_count: int
    record_sets: tuple[RecordSet, ...]


def recorded_history() -> RecordedHistory:
    text = files("rlmm_demo").joinpath("data/recorded_history.json").read_text(encoding="utf-8")
    document = json.loads(text)
    record_sets = tuple(
        RecordSet(entry["partition"], base64.b64decode(entry["record_set_base64"]))
        for entry in document["partitions"]
    )
    return RecordedHistory(document["kafka"], document["metadata_partitions"], record_sets)


def show_history() -> None:
    history = recorded_history()
    click.echo(
        f"A metadata topic of {history.partition_count} partitions, recorded from Apache Kafka "
        f"{history.kafka_version}:\nthree topics tiered, one of them deleted, one expiring.\n"
    )
    shards = _replay(history)
    homes = {partition: shard for shard in shards for partition in shard.partitions()}
    homes = {partition: homes[partition] for partition in sorted(homes, key=str)}
    _show_partitions(homes)
    _show_lookups(homes)
    _show_trouble(homes)
    _show_images(shards)


def _replay(history: RecordedHistory) -> list[PythonShard]:
    shards = [shard_type()(at) for at in range(history.partition_count)]
    rows = []
    for record_set in history.record_sets:
        report = shards[record_set.partition].apply(record_set)
        tally = report.tally
        rows.append(
            (record_set.partition, len(record_set.data), tally.offsets, tally.applied,
             tally.rejected, tally.undecodable, report.next_offset)
        )  # fmt: skip
    print_table(
        "1. Replay, metadata partition by metadata partition",
        ("partition", "bytes", "offsets", "applied", "rejected", "undecodable", "position"),
        rows,
    )
    return shards


def _show_partitions(homes: dict[TopicIdPartition, PythonShard]) -> None:
    rows = []
    for partition, shard in homes.items():
        segments = shard.segments(partition)
        span = f"{segments[0].start_offset}-{segments[-1].last_offset}" if segments else "none"
        rows.append(
            (f"{partition.topic}-{partition.partition}", shard.partition, len(segments), span,
             shard.size(partition), shard.highest_offset(partition, 0))
        )  # fmt: skip
    print_table(
        "2. What the tier holds (epoch 0; the watermark outlives deleted segments)",
        ("user partition", "metadata partition", "segments", "offsets", "bytes", "highest offset"),
        rows,
    )


def _show_lookups(homes: dict[TopicIdPartition, PythonShard]) -> None:
    rows = []
    for partition, shard in homes.items():
        for offset in (0, 100, 300):
            found = shard.segment_for(partition, 0, offset)
            indexed = shard.next_segment_with_txn_index(partition, 0, offset)
            rows.append(
                (f"{partition.topic}-{partition.partition}", offset, _named(found), _named(indexed))
            )
    print_table(
        "3. Which segment holds an offset, and where the next transaction index is",
        ("user partition", "offset", "segment", "next with a transaction index"),
        rows,
    )


def _named(segment: SegmentMetadata | None) -> str:
    if segment is None:
        return "none"
    return f"{segment.id.uuid} {segment.start_offset}-{segment.last_offset}"


def _show_trouble(homes: dict[TopicIdPartition, PythonShard]) -> None:
    """Append faulty events, and show the verdict of each."""
    partition, shard = next(home for home in homes.items() if home[0].topic == "payments")
    kept = shard.segments(partition)[3]
    short = replace(
        kept,
        id=SegmentId(partition, Uuid(b"a shorter copy!!")),
        last_offset=kept.start_offset + 9,
        state=SegmentState.COPY_SEGMENT_STARTED,
        custom_metadata=None,
    )
    steps: list[tuple[str, bytes | None]] = [
        ("a finish repeated by a retry", encode(_update(kept, SegmentState.COPY_SEGMENT_FINISHED))),
        ("deletion finished, never started",
         encode(_update(kept, SegmentState.DELETE_SEGMENT_FINISHED))),
        ("update of a segment without a start",
         encode(_update(replace(kept, id=SegmentId(partition, Uuid(b"never started...")))))),
        ("a second, shorter copy starts", encode(short)),
        ("and finishes late, in the same slot", encode(_update(short))),
        ("a tombstone", None),
        ("a record cut short", encode_any(kept)[:40]),
    ]  # fmt: skip
    first = shard.position
    records = [
        Record(first + at, kept.event_timestamp_ms, None, value, ())
        for at, (_, value) in enumerate(steps)
    ]
    report = shard.apply(RecordSet(shard.partition, build_batch(records, first)))
    verdicts = {entry.offset: _in_words(entry.verdict) for entry in report.entries}
    print_table(
        f"4. What goes wrong in practice, appended behind offset {first - 1}",
        ("offset", "record", "verdict"),
        [
            (first + at, what, verdicts.get(first + at, "applied"))
            for at, (what, _) in enumerate(steps)
        ],
    )
    offset = kept.last_offset
    click.echo(
        f"Kafka would now report offset {offset} of {partition.topic}-{partition.partition} as "
        f"absent: the short copy hides it.\nHere: {_named(shard.segment_for(partition, 0, offset))}"
    )
    click.echo(f"Internal rules broken by all this: {len(shard.validate())}\n")


def _update(
    segment: SegmentMetadata, state: SegmentState = SegmentState.COPY_SEGMENT_FINISHED
) -> Event:
    return SegmentUpdate(
        segment.id, segment.broker_id, segment.event_timestamp_ms, segment.custom_metadata, state
    )


def _in_words(verdict: object) -> str:
    name = type(verdict).__name__.lower()
    why = getattr(verdict, "reason", None) or getattr(verdict, "remark", None)
    return f"{name}: {why}" if why else name


def _show_images(shards: list[PythonShard]) -> None:
    rows = []
    for shard in shards:
        if not shard.position:
            continue
        image = shard.image()
        same = shard_type().from_image(image).image() == image
        rows.append((shard.partition, shard.position, len(image), "yes" if same else "NO"))
    print_table(
        "5. State images, written and read back",
        ("metadata partition", "position", "bytes", "same state"),
        rows,
    )
