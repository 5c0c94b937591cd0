"""
An engine of this process offered to another one: the serving side of the exec protocol.

One request a line in, one reply a line out, flushed at once; the end of the input is the end of the
service. A request that cannot be meant is answered with `failed`, and the service goes on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from rlmm.errors import RlmmError
from rlmm.metadata.outcomes import Level
from rlmm_conformance.engine import PROTOCOL_VERSION, Suite
from rlmm_conformance.fields import (
    FieldError,
    Json,
    flag_of,
    hex_of,
    int32_of,
    object_of,
    refuse,
    text_of,
)
from rlmm_conformance.steps import StepOperation, parse_operation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from rlmm_conformance.engine import EngineUnderTest


def serve(engine: EngineUnderTest, requests: Iterable[bytes], replies: BinaryIO) -> None:
    """Answer every line of *requests* on *replies*, until it ends or nobody reads any more."""
    session = ConformanceSession(engine)
    for line in requests:
        reply = session.reply_to(line)
        try:
            replies.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
            replies.flush()
        except BrokenPipeError:
            return


class ConformanceSession:
    """One conversation; remembers the level of the scenario that was begun last."""

    def __init__(self, engine: EngineUnderTest) -> None:
        self._engine = engine
        self._level = Level.STORE

    def reply_to(self, line: bytes) -> dict[str, Json]:
        """The reply to one request; never raises for what the other side sent."""
        try:
            return {"answer": self._answer(_request(line))}
        except (FieldError, RlmmError) as error:
            return {"failed": str(error)}

    def _answer(self, request: dict[str, Json]) -> Json:
        match request.get("call"):
            case "hello":
                return self._hello(object_of("hello", request, ("call", "protocol")))
            case "begin":
                return self._begin(request)
            case "step":
                step = object_of("step", request, ("call", "step"))["step"]
                if not isinstance(step, dict):
                    raise refuse("step", "an object", step)
                return self._engine.step(parse_operation(step, self._level))
            case "decode":
                value = object_of("decode", request, ("call", "value"))["value"]
                return self._engine.decode(None if value is None else hex_of("value", value))
            case "encode":
                return self._encode(object_of("encode", request, ("call", "event", "publish")))
            case "partition":
                keys = ("call", "topic_id", "partition", "count")
                return self._partition(object_of("partition", request, keys))
            case other:
                raise FieldError(f"unknown call {other!r}")

    def _hello(self, request: dict[str, Json]) -> Json:
        if request["protocol"] != PROTOCOL_VERSION:
            raise refuse("protocol", str(PROTOCOL_VERSION), request["protocol"])
        return {
            "protocol": PROTOCOL_VERSION,
            "engine": self._engine.name,
            "suites": [str(suite) for suite in Suite if suite in self._engine.suites],
            "without": [str(op) for op in StepOperation if op in self._engine.without],
        }

    def _begin(self, request: dict[str, Json]) -> Json:
        level = request.get("level")
        if not isinstance(level, str) or level not in set(Level):
            raise refuse("level", " or ".join(Level), level)
        extra = ("initialized",) if level == Level.CACHE else ()
        fields = object_of("begin", request, ("call", "scenario", "level", *extra))
        self._level = Level(level)
        self._engine.begin(
            text_of("scenario", fields["scenario"]),
            self._level,
            initialized=flag_of("initialized", fields.get("initialized", False)),
        )
        return "ok"

    def _encode(self, request: dict[str, Json]) -> Json:
        event = request["event"]
        if not isinstance(event, dict):
            raise refuse("event", "an object", event)
        return self._engine.encode(event, publish=flag_of("publish", request["publish"]))

    def _partition(self, request: dict[str, Json]) -> Json:
        return self._engine.partition_for(
            hex_of("topic_id", request["topic_id"]),
            int32_of("partition", request["partition"]),
            int32_of("count", request["count"]),
        )


def _request(line: bytes) -> dict[str, Json]:
    try:
        request = cast("Json", json.loads(line))
    except (ValueError, RecursionError) as error:
        raise FieldError(f"not JSON: {error}") from error
    if not isinstance(request, dict):
        raise refuse("request", "an object", request)
    return request
