"""A client in another language, written from the page alone, understands the same bytes."""

import asyncio
import json
from pathlib import Path
from typing import Any

from rlmm.errors import EventRejected, InvalidArgument, RlmmError, UnknownMethod, UnknownPartition
from rlmm.metadata.events import Event
from rlmm.metadata.verdicts import Rejected
from rlmm.wire import queries, values
from rlmm.wire.framing import FrameReader
from rlmm.wire.hello import HelloAnswer, ServiceLimits, agree, hello_answer_value, read_hello
from rlmm.wire.messages import answer_frame, read_request, refusal_frame
from rlmm.wire.options import read_read_options, read_wait_options
from tests.support.engine.chosen import ChosenShard
from tests.support.java_client import running
from tests.support.java_client.running import needs_java, run_client
from tests.support.server.recorded_frames import FILE

pytestmark = needs_java


class Fake:
    """A server of one shard that accepts every client, and answers in reverse order."""

    def __init__(self) -> None:
        self.shard = ChosenShard(17, 50)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while data := await reader.read(65_536):
            answers = [self.answer(payload) for payload in frames.feed(data)]
            writer.write(b"".join(reversed(answers)))
        writer.close()

    def answer(self, payload: bytes) -> bytes:
        request_id, method, args = read_request(payload)
        try:
            ask = getattr(self, f"_{method}", None)
            if ask is None:
                msg = f"there is no method {method!r}"
                raise UnknownMethod(msg)
            return answer_frame(request_id, ask(*args))
        except RlmmError as error:
            return refusal_frame(request_id, error)

    def _hello(self, said: object) -> object:
        version = agree(read_hello(said).versions)
        limits = ServiceLimits(page_max=100)
        return hello_answer_value(
            HelloAnswer(version, "fake/1", None, None, None, "broker", "serve", limits)
        )

    def _ping(self) -> None: ...

    def _status(self) -> object:
        return {"assignment": "all"}

    def _assign(self, leaders: object, followers: object, complete: bool) -> int:
        assert len(values.read_partitions(leaders)) == 1
        assert not values.read_partitions(followers)
        assert complete is True
        return 1

    def _wait_ready(self, partition: object, options: object) -> None:
        values.read_partition(partition)
        assert read_wait_options(options) == 30_000

    def _is_ready(self, partition: object) -> bool:
        return self.shard.knows(values.read_partition(partition))

    def _add_segment(self, partition: object, segment: object) -> object:
        return self._apply(values.read_segment(values.read_partition(partition), segment))

    def _update_segment(self, *args: object) -> object:
        return self._apply(values.read_update(list(args)))

    def _apply(self, event: Event) -> object:
        refusal = self.shard.admit(event)
        if isinstance(refusal, Rejected):
            raise EventRejected(str(refusal), reason=refusal.reason)
        offset = self.shard.position
        self.shard.apply_event(event)
        return values.write_answer_value(self.shard.partition, offset, "applied")

    def _segment_for(self, asked: object, epoch: int, offset: int, options: Any = None) -> object:
        at_least = read_read_options(options).at_least or {}
        assert all(self.shard.position > reached for reached in at_least.values())
        partition = values.read_partition(asked)
        if not self.shard.knows(partition):
            raise UnknownPartition(str(partition))
        if epoch < 0:
            msg = "a leader epoch is not negative"
            raise InvalidArgument(msg)
        return values.optional_segment_value(self.shard.segment_for(partition, epoch, offset))

    def _segments_for(self, lookups: object) -> object:
        answers: list[object] = []
        for partition, epoch, offset in queries.read_lookups(lookups):
            asked = values.partition_value(partition)
            try:
                answers.append([None, self._segment_for(asked, epoch, offset)])
            except RlmmError as error:
                answers.append(queries.segment_answer_value(error))
        return answers

    def _list_segments(self, partition: object, after: object, limit: int) -> object:
        key = queries.read_page_key(after)
        page = self.shard.page(values.read_partition(partition), after=key, limit=limit)
        return queries.page_value(page)

    def _remote_log_size(self, partition: object, epoch: object) -> int:
        assert epoch is None
        return self.shard.size(values.read_partition(partition))


async def test_foreign_client_when_it_talks_to_a_server_then_understands(tmp_path: Path) -> None:
    """A client of one file, written from the page alone, is understood and understands."""
    path = tmp_path / "socket"
    async with await asyncio.start_unix_server(Fake().serve, path):
        lines = await run_client(str(path), running.TOPIC_ID, running.TOPIC, str(running.PARTITION))
    running.require_told(lines)


async def test_foreign_client_reads_and_writes_every_frame_of_the_file() -> None:
    """The foreign client reads and makes every frame of the file."""
    entries = json.loads(FILE.read_text())["frames"]
    frames = "\n".join(entry["hex"] for entry in entries)
    lines = await run_client("--codec", stdin=frames.encode())
    for entry, (message, again) in zip(entries, lines, strict=True):
        if entry["direction"] == "request":
            assert message == [entry["id"], entry["method"], entry["args"]]
        else:
            assert message == [entry["id"], entry.get("error"), entry.get("result")]
        assert again == {"bin": entry["hex"]}
