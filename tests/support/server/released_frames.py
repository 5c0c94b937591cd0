"""
A conversation of version 1 of the frame protocol, request and answer, to the byte.

`python -m tests.support.server.released_frames` writes `tests/compat/conversation-1.json`, once for
each version of the protocol.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack

from rlmm.metadata.segment import PartitionDeleteState
from rlmm.wire.messages import request_frame
from rlmm.wire.values import delete_value, partition_value, segment_value, update_value
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.repository import tree
from tests.support.server.recorded_frames import to_json
from tests.support.server.serve_process import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.ids import SegmentId

FILE = tree.ROOT / "tests" / "compat" / "conversation-1.json"
ORDERS, OTHER = tp("orders", 7), tp("others", 1)
INSTANCE = bytes(range(16))
HERE, ELSEWHERE = partition_value(ORDERS), partition_value(OTHER)
PLACE = 2
"""The metadata partition of `ORDERS`, of 3."""
SEGMENTS = [
    started(
        segment_id(n, ORDERS), n * 100, n * 100 + 99, {0: 100, 3: 150} if n == 1 else {0: n * 100}
    )
    for n in range(5)
]
LOOKUPS = 5


@dataclass
class Wire:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def exchanged(self, sent: bytes, count: int) -> list[bytes]:
        self.writer.write(sent)
        return [await self.frame() for _ in range(count)]

    async def frame(self) -> bytes:
        async with asyncio.timeout(30.0):
            head = await self.reader.readexactly(4)
            return head + await self.reader.readexactly(int.from_bytes(head))


@asynccontextmanager
async def service(folder: Path) -> AsyncIterator[Wire]:
    options = ["--log-num-partitions", "3", "--sidecar-unix-path", "s"]
    async with serving(folder, *options) as served:
        await served.until_open(3)
        reader, writer = await asyncio.open_unix_connection(folder / "s")
        try:
            yield Wire(reader, writer)
        finally:
            writer.transport.abort()


def message_of(frame: bytes) -> list[Any]:
    message: Any = msgpack.unpackb(frame[4:], strict_map_key=False)
    assert isinstance(message, list)
    return message


@dataclass
class Recorder:
    wire: Wire
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    _last_id: int = 0

    async def ask(self, method: str, *args: Any) -> Any:
        return (await self.ask_all([(method, list(args))]))[0]

    async def ask_all(self, requests: list[tuple[str, list[Any]]]) -> list[Any]:
        sent = b""
        for method, args in requests:
            self._last_id += 1
            sent += request_frame(self._last_id, method, args)
        answered = await self.wire.exchanged(sent, len(requests))
        told = [message_of(frame) for frame in answered]
        self.exchanges.append(
            {
                "asked": [[method, to_json(args)] for method, args in requests],
                "sent": sent.hex(),
                "answered": [frame.hex() for frame in answered],
                "told": [to_json(message) for message in told],
            }
        )
        return [message[2] for message in told]


async def talk(told: Recorder) -> None:
    await told.ask("hello", {"versions": [1], "client": "v1", "broker_id": 7, "instance": INSTANCE})
    await told.ask("segment_for", HERE, 0, 5)
    await told.ask("assign", [HERE], [], True)
    await told.ask("wait_ready", HERE, {"timeout_ms": 30_000})
    await _copies(told)
    await _lookups(told)
    await _listings(told)
    await _deletions(told)
    await told.ask("status")
    await told.ask("stop_partitions", [HERE])
    await told.ask("segment_for", HERE, 0, 5)
    await told.ask("no_such_method")
    await told.ask("ping")


def _finish(segment: SegmentId) -> SegmentUpdate:
    return finished(segment, custom_metadata=b"c")


async def _copies(told: Recorder) -> None:
    for segment in SEGMENTS:
        await told.ask("add_segment", HERE, segment_value(segment))
        await told.ask("update_segment", *update_value(_finish(segment.id)))
    await told.ask("update_segment", *update_value(_finish(SEGMENTS[-1].id)))
    await told.ask("add_segment", HERE, segment_value(SEGMENTS[0]))
    await told.ask("update_segment", *update_value(delete_finished(SEGMENTS[4].id)))
    await told.ask("update_segment", *update_value(finished(segment_id(99, ORDERS))))


async def _lookups(told: Recorder) -> None:
    await told.ask_all([("segment_for", [HERE, 0, n * 100]) for n in range(LOOKUPS)])
    token = {PLACE: 2 * len(SEGMENTS) - 1}
    await told.ask("segment_for", HERE, 0, 150, {"at_least": token, "timeout_ms": 9_000})
    await told.ask("segment_for", HERE, 0, 250, {"linearizable": True})
    await told.ask("segment_for", HERE, 0, 250, {"at_least": {PLACE: 99}, "timeout_ms": 1})
    await told.ask("segment_for", HERE, -1, 0)
    await told.ask("segment_for", HERE, 0, 0, {"at_last": {}})
    await told.ask("segment_for", ELSEWHERE, 0, 0)
    await told.ask("segments_for", [[HERE, 0, 0], [HERE, 0, 9_999], [ELSEWHERE, 0, 0]])


async def _listings(told: Recorder) -> None:
    for method, more in (("list_segments", []), ("list_segments_by_epoch", [0])):
        after = None
        while True:
            _, after = await told.ask(method, HERE, *more, after, 3)
            if after is None:
                break
    await told.ask("segment", HERE, bytes(SEGMENTS[2].id.uuid))
    await told.ask("segment", HERE, bytes(segment_id(99, ORDERS).uuid))
    for epoch in (0, 8):
        await told.ask("highest_offset", HERE, epoch)
    await told.ask("next_segment_with_txn_index", HERE, 0, 0)
    for one in (None, 3):
        await told.ask("remote_log_size", HERE, one)
    for asked in (HERE, ELSEWHERE):
        await told.ask("is_ready", asked)
    await told.ask("read_token")


async def _deletions(told: Recorder) -> None:
    for event in (delete_started(SEGMENTS[0].id), delete_finished(SEGMENTS[0].id)):
        await told.ask("update_segment", *update_value(event))
    await told.ask("partition_delete", HERE)
    for state in PartitionDeleteState:
        await told.ask("put_partition_delete", *delete_value(partition_delete(state, ORDERS)))
        await told.ask("partition_delete", HERE)
    await told.ask("list_segments", HERE, None, 3)
    await told.ask("add_segment", HERE, segment_value(SEGMENTS[0]))
    other = segment_value(started(segment_id(1, OTHER)))
    await told.ask("add_segment", ELSEWHERE, other)
    await told.ask("add_segment", ELSEWHERE, other, {"unassigned": "store"})


async def recorded() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
        async with service(Path(folder)) as wire:
            recorder = Recorder(wire)
            await talk(recorder)
            return recorder.exchanges


def main() -> None:
    about = "A conversation in version 1 of the protocol, see README.md."
    lines = ",\n".join(json.dumps(exchange) for exchange in asyncio.run(recorded()))
    text = f'{{\n"about": {json.dumps(about)},\n"exchanges": [\n{lines}\n]}}\n'
    Path(FILE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
