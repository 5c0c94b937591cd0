"""
The process behind `rlmm demo`: a service told what to do by lines on its standard input.

Each line is a JSON array, a command and its numbers; each answer is one JSON object. Not an
interface for anybody else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.cli.demo_history import recorded_history
from rlmm.errors import EventRejected, RlmmError
from rlmm.library import open_metadata
from rlmm.metadata.codec import decode
from rlmm.metadata.events import Event, PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from rlmm.library import RemoteLogMetadata

OFFSETS = (0, 100, 300)
_READY_S = 30.0


def recorded_events() -> list[SegmentMetadata | SegmentUpdate | PartitionDelete]:
    """The events of the recorded history, in an order that keeps each partition's own."""
    events = []
    for record_set in recorded_history().record_sets:
        for batch in walk(record_set.data):
            assert isinstance(batch, Batch), batch
            for _, value in batch.values():
                event = decode(value)
                assert isinstance(event, SegmentMetadata | SegmentUpdate | PartitionDelete)
                events.append(event)
    return events


def partition_of(event: SegmentMetadata | SegmentUpdate | PartitionDelete) -> TopicIdPartition:
    """The user partition that *event* is about."""
    return event.partition if isinstance(event, PartitionDelete) else event.id.partition


class Player:
    """Does what a line asks for."""

    def __init__(self, metadata: RemoteLogMetadata) -> None:
        self._metadata = metadata
        self._events = recorded_events()
        self._partitions = sorted({partition_of(event) for event in self._events}, key=str)

    async def start(self) -> dict[str, Any]:
        """Wait until everything is answered from."""
        await self._metadata.wait_all_ready(timeout_s=_READY_S)
        statistics = self._metadata.statistics()
        restored = self._metadata.snapshot_positions()
        followers = statistics.pump.followers.values()
        replayed = sum(
            (found.progress.target or 0) - restored.get(found.progress.partition, 0)
            for found in followers
        )
        return {"partitions": len(followers), "restored": len(restored), "replayed": replayed}

    async def write(self, first: int, stop: int) -> dict[str, Any]:
        """Write events of the history, one after the other."""
        verdicts: Counter[str] = Counter()
        events = self._events[first:stop]
        for event in events:
            if isinstance(event, SegmentMetadata):
                written = await self._metadata.add_segment(event)
            elif isinstance(event, SegmentUpdate):
                written = await self._metadata.update_segment(event)
            else:
                written = await self._metadata.put_partition_delete(event)
            verdicts[type(written.verdict).__name__.lower()] += 1
        return {"count": len(events), "verdicts": dict(verdicts)}

    async def snapshot(self) -> dict[str, Any]:
        """Write snapshots of what changed."""
        return {"written": list((await self._metadata.write_snapshots()).written)}

    async def answers(self) -> dict[str, Any]:
        """What is known of every user partition."""
        found = {}
        for partition in self._partitions:
            segments = await self._metadata.segments(partition)
            lookups = []
            for offset in OFFSETS:
                segment = await self._metadata.segment_for(partition, 0, offset)
                lookups.append((offset, None if segment is None else _named(segment)))
            found[f"{partition.topic}-{partition.partition}"] = {
                "segments": len(segments),
                "bytes": await self._metadata.size(partition),
                "highest": await self._metadata.highest_offset(partition, 0),
                "lookups": lookups,
                "listed": [repr(segment) for segment in segments],
            }
        return {"partitions": found}

    async def trouble(self) -> dict[str, Any]:
        """What is refused, and in which words."""
        known = next(one for one in self._partitions if one.topic == "payments")
        segment = (await self._metadata.segments(known))[0]
        unknown = SegmentId(known, Uuid(b"never started..."))
        finished = SegmentState.COPY_SEGMENT_FINISHED
        rows = []
        for what, event in (
            ("a finish without a start", SegmentUpdate(unknown, 1, 0, None, finished)),
            ("a deletion without a beginning", _update(segment)),
        ):
            rows.append((what, *await self._refused(event)))
        nobody = TopicIdPartition(known.topic_id, known.topic, 99)
        try:
            await self._metadata.segments(nobody)
        except RlmmError as error:
            rows.append(("the segments of payments-99", error.code, _why(error)))
        return {"rows": rows}

    async def _refused(self, event: Event) -> tuple[str, str]:
        try:
            assert isinstance(event, SegmentUpdate)
            await self._metadata.update_segment(event)
        except RlmmError as error:
            return error.code, _why(error)
        return "", "taken"


def _update(segment: SegmentMetadata) -> SegmentUpdate:
    state = SegmentState.DELETE_SEGMENT_FINISHED
    return SegmentUpdate(segment.id, segment.broker_id, 0, segment.custom_metadata, state)


def _why(error: RlmmError) -> str:
    """The reason of an error in few words."""
    if isinstance(error, EventRejected):
        return f"{error.reason} ({error.current or 'absent'})"
    return str(error).rpartition(": ")[2]


def _named(segment: SegmentMetadata) -> str:
    return f"{segment.id.uuid} {segment.start_offset}-{segment.last_offset}"


async def play(folder: Path) -> None:
    """Serve until told to stop, or killed."""
    loop = asyncio.get_running_loop()
    async with open_metadata(folder / "log", snapshots=folder / "snapshots") as metadata:
        player = Player(metadata)
        while True:
            line = await loop.run_in_executor(None, sys.stdin.readline)
            command, *numbers = json.loads(line) if line else ("stop",)
            if command == "stop":
                break
            answer = await getattr(player, command)(*numbers)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    sys.stdout.write("{}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)  # the story is told by who asked for it
    asyncio.run(play(Path(sys.argv[1])))
