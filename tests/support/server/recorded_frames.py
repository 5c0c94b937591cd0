"""
The frames of `tests/data/wire/frames.json`; a difference from it is a change of the protocol.

`python -m tests.support.server.recorded_frames` writes it anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rlmm import errors
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, TopicIdPartition, Uuid
from rlmm.metadata.paging import Page, PageKey
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.wire import hello, operator_queries, options, queries, values
from rlmm.wire.errors import classes
from rlmm.wire.messages import answer_frame, refusal_frame, request_frame
from tests.support.builders import segment_id, tp
from tests.support.repository.tree import ROOT
from tests.support.server.refused_frames import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.errors import RlmmError

FILE: Final = ROOT / "tests/data/wire/frames.json"

ORDERS: Final = tp("orders", 3)
EDGE: Final = TopicIdPartition(Uuid(b"\xff" * 16), "\u00e9t\u00e9 \U0001f600", INT32_MAX)
LONG_NAME: Final = TopicIdPartition(Uuid(bytes(16)), "n" * 249, 0)

PLAIN_SEGMENT: Final = SegmentMetadata(
    segment_id(1, ORDERS), 0, 99, 1, 1_700_000_000_000, 1_700_000_000_001, ((0, 0),), 1_024
)
SEGMENTS: Final = {
    "plain": PLAIN_SEGMENT,
    "least": SegmentMetadata(
        segment_id(2, ORDERS), 0, 0, INT32_MIN, INT64_MIN, INT64_MIN, ((INT32_MIN, INT64_MIN),),
        INT32_MIN, b"", SegmentState.COPY_SEGMENT_FINISHED,
    ),
    "largest": SegmentMetadata(
        segment_id(3, ORDERS), INT64_MAX, INT64_MAX, INT32_MAX, INT64_MAX, INT64_MAX,
        ((INT32_MAX, INT64_MAX),), INT32_MAX, bytes(range(256)),
        SegmentState.DELETE_SEGMENT_FINISHED, txn_index_empty=True,
    ),
    "many-epochs": SegmentMetadata(
        segment_id(4, ORDERS), 5, 99_999, 2, -1, 0, tuple((n, 5 + n * 10) for n in range(17)),
        65_536, b"custom", SegmentState.DELETE_SEGMENT_STARTED,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Golden:
    name: str
    direction: str
    data: bytes
    meaning: dict[str, object]

    def entry(self) -> dict[str, object]:
        return {
            "name": self.name,
            "direction": self.direction,
            "hex": self.data.hex(),
            **{key: to_json(value) for key, value in self.meaning.items()},
        }


def to_json(value: object) -> object:
    """Return a msgpack value as JSON: bytes as `{"bin": hex}`, odd maps as `{"map": [pairs]}`."""
    if isinstance(value, bytes):
        return {"bin": value.hex()}
    if isinstance(value, (list, tuple)):
        return [to_json(one) for one in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: to_json(one) for key, one in value.items()}
        return {"map": [[key, to_json(one)] for key, one in value.items()]}
    if isinstance(value, (str, bool)) or value is None:
        return str(value) if isinstance(value, str) else value
    assert isinstance(value, int), value
    return int(value)


def from_json(value: object) -> object:
    if isinstance(value, list):
        return [from_json(one) for one in value]
    if isinstance(value, dict):
        match value:
            case {"bin": str(digits), **rest} if not rest:
                return bytes.fromhex(digits)
            case {"map": list(pairs), **rest} if not rest:
                return {key: from_json(one) for key, one in pairs}
        return {key: from_json(one) for key, one in value.items()}
    return value


def _request(name: str, request_id: int, method: str, *args: object) -> Golden:
    meaning = {"id": request_id, "method": method, "args": list(args)}
    return Golden(name, "request", request_frame(request_id, method, list(args)), meaning)


def _answer(name: str, request_id: int, result: object, method: str) -> Golden:
    meaning = {"id": request_id, "method": method, "result": result}
    return Golden(name, "answer", answer_frame(request_id, result), meaning)


def _refusal(name: str, request_id: int | None, error: RlmmError, fields: object) -> Golden:
    meaning: dict[str, object] = {
        "id": request_id,
        "error": [error.code, str(error), error.retriable, fields],
    }
    return Golden(name, "refusal", refusal_frame(request_id, error), meaning)


def requests() -> Iterator[Golden]:
    orders = values.partition_value(ORDERS)
    uuid = segment_id(1, ORDERS).uuid
    least = hello.ClientHello((1,), "golden/1")
    full = hello.ClientHello(
        (1, 2), "golden/1", "secret", "c" * 22, 7, Uuid(b"i" * 16), "broker-1:9092,broker-2:9092"
    )
    yield _request("hello", 0, "hello", hello.hello_value(least))
    yield _request("hello-full", 1, "hello", hello.hello_value(full))
    yield _request("ping", 2**32 - 1, "ping")
    for name, segment in SEGMENTS.items():
        value = values.segment_value(segment)
        yield _request(f"add-segment-{name}", 127, "add_segment", orders, value)
    store = options.write_options_value(options.WriteOptions("store", 5_000))
    plain = values.segment_value(PLAIN_SEGMENT)
    yield _request("add-segment-store", 128, "add_segment", orders, plain, store)
    update = SegmentUpdate(
        segment_id(1, ORDERS), 1, 1_700_000_000_002, b"c", SegmentState.COPY_SEGMENT_FINISHED
    )
    yield _request("update-segment", 255, "update_segment", *values.update_value(update))
    bare = SegmentUpdate(segment_id(1, ORDERS), -1, -1, None, SegmentState.DELETE_SEGMENT_STARTED)
    yield _request(
        "update-segment-options",
        256,
        "update_segment",
        *values.update_value(bare),
        options.write_options_value(options.WriteOptions(timeout_ms=1)),
    )
    for state in PartitionDeleteState:
        delete = PartitionDelete(EDGE, INT32_MIN, INT64_MAX, state)
        yield _request(
            f"put-partition-delete-{state}",
            300,
            "put_partition_delete",
            *values.delete_value(delete),
        )
    yield _request("segment", 65_535, "segment", orders, uuid)
    yield _request("segment-for", 65_536, "segment_for", orders, 0, 50)
    yield from _questions(orders)


def _questions(orders: list[object]) -> Iterator[Golden]:
    edge, long_name = values.partition_value(EDGE), values.partition_value(LONG_NAME)
    fresh = options.read_options_value(
        options.FreshnessOptions({0: -1, 49: 2**40}, linearizable=True, timeout_ms=INT32_MAX)
    )
    last = options.read_options_value(options.FreshnessOptions({3: 17}))
    yield _request("segment-for-edge", 9, "segment_for", edge, INT32_MAX, INT64_MAX)
    yield _request("segment-for-options", 10, "segment_for", orders, 1, 2**31, fresh)
    lookups = [
        queries.lookup_value(part, epoch, 100 * epoch)
        for part in (ORDERS, LONG_NAME)
        for epoch in range(3)
    ]
    yield _request("segments-for", 11, "segments_for", lookups)
    yield _request("segments-for-none", 12, "segments_for", [], None)
    yield _request("highest-offset", 13, "highest_offset", orders, 4, last)
    yield _request("next-segment-with-txn-index", 14, "next_segment_with_txn_index", orders, 0, 7)
    yield _request("list-segments", 15, "list_segments", orders, None, 1_000)
    key = queries.page_key_value(PageKey(70_000, segment_id(9, ORDERS).uuid))
    yield _request("list-segments-next", 16, "list_segments", orders, key, 1)
    yield _request("list-segments-again", 17, "list_segments", orders, b"", 1)
    yield _request("list-segments-by-epoch", 18, "list_segments_by_epoch", orders, 3, key, 100)
    yield _request("remote-log-size", 19, "remote_log_size", orders, 3)
    yield _request("remote-log-size-all", 20, "remote_log_size", orders, None)
    yield _request("partition-delete", 21, "partition_delete", orders)
    yield _request("is-ready", 22, "is_ready", orders)
    wait = options.wait_options_value(30_000)
    yield _request("wait-ready", 23, "wait_ready", orders)
    yield _request("wait-ready-options", 24, "wait_ready", orders, wait)
    yield _request("assign", 25, "assign", [orders, edge], [long_name], True)
    yield _request("assign-nothing", 26, "assign", [], [], False)
    yield _request("stop-partitions", 27, "stop_partitions", [orders])
    yield _request("read-token", 28, "read_token")
    yield _request("status", 29, "status")
    yield _request("list-partitions", 30, "list_partitions", 49, None, 400)
    yield _request("list-partitions-next", 31, "list_partitions", 0, EDGE.key, INT32_MAX)
    yield _request("open-image", 32, "open_image", edge, 1_048_576)
    yield _request("read-image", 33, "read_image", 2**40, 1)
    yield _request("close-image", 34, "close_image")
    yield _request("log-bounds", 35, "log_bounds", [0, 49, INT32_MAX])
    yield _request("log-bounds-none", 36, "log_bounds", [])
    log = (Uuid(b"t" * 16), 49, INT64_MAX, 0, 1_048_576)
    yield _request("read-log", 37, "read_log", *log)
    yield _request("read-log-options", 38, "read_log", *log[:3], 2**40, 1, wait)


def answers() -> Iterator[Golden]:
    limits = hello.ServiceLimits(4_194_304, 128, 1_024, 10_000, 1_000, 600_000)
    known = hello.HelloAnswer(
        1, "rlmm/0.3.0", "c" * 22, Uuid(b"t" * 16), 50, "broker", "serve", limits
    )
    unknown = hello.HelloAnswer(1, "rlmm/0.3.0", None, None, None, "admin", "observer", limits)
    yield _answer("hello-answer", 0, hello.hello_answer_value(known), "hello")
    yield _answer("hello-answer-unknown", 1, hello.hello_answer_value(unknown), "hello")
    more = replace(limits, timeout_ms_max=120_000, assign_max=1_000)
    told = hello.hello_answer_value(replace(known, limits=more))
    yield _answer("hello-answer-more-limits", 2, told, "hello")
    yield _answer("nil", 2**32 - 1, None, "ping")
    for verdict in values.VERDICTS:
        written = values.write_answer_value(49, 2**33, verdict)
        yield _answer(f"written-{verdict}", 3, written, "add_segment")
    for name, segment in SEGMENTS.items():
        value = values.optional_segment_value(segment)
        yield _answer(f"segment-{name}", 4, value, "segment_for")
    yield _answer("segment-none", 5, values.optional_segment_value(None), "segment_for")
    found = [PLAIN_SEGMENT, None, errors.NotAssigned("no", metadata_partition=3)]
    several = [queries.segment_answer_value(one) for one in found]
    yield _answer("segments", 6, several, "segments_for")
    yield _answer("highest-offset-answer", 7, INT64_MAX, "highest_offset")
    key = PageKey(0, segment_id(1, ORDERS).uuid)
    pages = {
        "page": Page((PLAIN_SEGMENT,), key, is_last=False),
        "page-last": Page((PLAIN_SEGMENT, SEGMENTS["least"]), key, is_last=True),
        "page-empty": Page((), None, is_last=True),
        "page-not-yet": Page((), None, is_last=False),
    }
    for name, page in pages.items():
        yield _answer(name, 8, queries.page_value(page), "list_segments")
    yield _answer("remote-log-size-answer", 9, 2**40, "remote_log_size")
    deletion = PartitionDelete(ORDERS, 1, 2, PartitionDeleteState.DELETE_PARTITION_FINISHED)
    yield _answer("deletion", 10, values.deletion_value(deletion), "partition_delete")
    yield _answer("is-ready-answer", 11, True, "is_ready")
    yield _answer("generation", 12, 3, "assign")
    yield _answer("read-token-answer", 13, {0: -1, 17: 5, 49: 2**40}, "read_token")
    yield from _looked_at()


def _looked_at() -> Iterator[Golden]:
    deletion = PartitionDelete(EDGE, 1, 2, PartitionDeleteState.DELETE_PARTITION_MARKED)
    summaries = [
        operator_queries.PartitionCounts(ORDERS, 1, 2**40, 3, 2**41, None),
        operator_queries.PartitionCounts(EDGE, 0, 0, 0, -1, deletion),
    ]
    first = operator_queries.SummaryPage(2**40, True, summaries, EDGE.key)
    last = operator_queries.SummaryPage(0, False, [], None)
    for name, page in (("partitions", first), ("partitions-last", last)):
        yield _answer(name, 14, operator_queries.summary_page_value(page), "list_partitions")
    head = operator_queries.ImageHead(2**40, 2**30, bytes(range(256)))
    yield _answer("image", 15, operator_queries.image_head_value(head), "open_image")
    yield _answer("image-bytes", 16, b"", "read_image")
    truncated = errors.LogTruncated("cut", log_start=5, next_offset=2**40)
    ends = operator_queries.log_ends_value(
        Uuid(b"t" * 16), [operator_queries.LogEnds(5, 2**40), truncated]
    )
    yield _answer("log-bounds-answer", 17, ends, "log_bounds")
    piece = operator_queries.LogPiece(b"batches", 2**40, 2**30)
    for name, found in (("log", piece), ("log-none", None)):
        yield _answer(name, 18, operator_queries.log_piece_value(found), "read_log")


def refusals() -> Iterator[Golden]:
    for cls in sorted(classes(), key=lambda cls: cls.code):
        bare, full = made(cls)
        yield _refusal(f"refusal-{cls.code}", 1, bare, fields_of(bare))
        if full is not None:
            yield _refusal(f"refusal-{cls.code}-full", 2**32 - 1, full, fields_of(full))
    protocol = errors.ProtocolError("no message")
    yield _refusal("refusal-without-id", None, protocol, {})


def fields_of(error: RlmmError) -> dict[str, object]:
    said = dict(vars(error))
    if isinstance(error, errors.NotReady):
        said["records_left"] = error.records_left
    if isinstance(error, errors.Superseded):  # which the first clients of version 1 do not know
        said["base"] = "not-permitted"
    return said


def made(cls: type[RlmmError]) -> tuple[RlmmError, RlmmError | None]:
    message = f"what happened: {cls.code} \u2026"
    bare = cls(message)
    full: dict[type[RlmmError], dict[str, object]] = {
        errors.EventRejected: {
            "reason": "illegal-transition",
            "current": "DELETE_SEGMENT_STARTED",
            "requested": "COPY_SEGMENT_FINISHED",
            "stored_at": (49, 2**40),
        },
        errors.NotAssigned: {"metadata_partition": 49},
        errors.NotReady: {
            "reason": "behind",
            "user_partition": str(ORDERS),
            "metadata_partition": 0,
            "position": 10,
            "target": 2**40,
            "retry_after_ms": 250,
        },
        errors.Unresolved: {"stored_at": (0, 0)},
        errors.LogTruncated: {"log_start": 5, "next_offset": 2**40},
    }
    for base, said in full.items():
        if issubclass(cls, base):
            return bare, cls(message, **said)
    return bare, None


def goldens() -> list[Golden]:
    return [*requests(), *answers(), *refusals()]


def write() -> None:
    lists = {
        "about": "Frames of the protocol, see docs/wire-protocol.md and README.md.",
        "version": 1,
        "frames": [golden.entry() for golden in goldens()],
        "refused": refused(),
    }
    lines = []
    for name, value in lists.items():
        if isinstance(value, list):
            rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in value)
            lines.append(f'  "{name}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{name}": {json.dumps(value)}')
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
