"""Serve: an engine of this process behind the exec protocol; a faulty request ends nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import UNSET, UnsetType

from rlmm.errors import RlmmError
from rlmm.metadata.outcomes import Level
from rlmm_conformance.engine import PROTOCOL_VERSION, Suite
from rlmm_conformance.fields import FieldError, Form, HexText, Int32, Json, Label, read
from rlmm_conformance.steps import StepOperation, parse_operation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from rlmm_conformance.engine import EngineUnderTest


def serve(engine: EngineUnderTest, requests: Iterable[bytes], replies: BinaryIO) -> None:
    """Answer every line of *requests* on *replies*, until either side ends."""
    session = ConformanceSession(engine)
    for line in requests:
        reply = session.reply_to(line)
        try:
            replies.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
            replies.flush()
        except BrokenPipeError:
            return


class _Request(Form, frozen=True, tag_field="call"):
    """A request, of which `call` names the kind."""


class _Hello(_Request, frozen=True, tag="hello"):
    protocol: Literal[1]


class _Begin(_Request, frozen=True, tag="begin"):
    scenario: Label
    level: Level
    initialized: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.level is Level.CACHE) == (self.initialized is UNSET):
            raise ValueError("a cache has 'initialized', a store has not")


class _Step(_Request, frozen=True, tag="step"):
    step: dict[str, Any]


class _Decode(_Request, frozen=True, tag="decode"):
    value: HexText | None


class _Encode(_Request, frozen=True, tag="encode"):
    event: dict[str, Any]
    publish: bool


class _Partition(_Request, frozen=True, tag="partition"):
    topic_id: HexText
    partition: Int32
    count: Int32


class ConformanceSession:
    """Holds one conversation; it keeps the level of the scenario that began last."""

    def __init__(self, engine: EngineUnderTest) -> None:
        self._engine = engine
        self._level = Level.STORE

    def reply_to(self, line: bytes) -> dict[str, Json]:
        """Return the reply to one request; never raises for a faulty one."""
        try:
            return {"answer": self._answer(_parse(line))}
        except (FieldError, RlmmError) as error:
            return {"failed": str(error)}

    def _answer(self, request: Json) -> Json:
        call: object = read(
            _Hello | _Begin | _Step | _Decode | _Encode | _Partition, request, with_any_text=True
        )
        match call:
            case _Hello():
                return self._hello()
            case _Begin(scenario=scenario, level=level):
                self._level = level
                self._engine.begin(
                    read(Label, scenario), level, initialized=call.initialized is True
                )
                return "ok"
            case _Step(step=step):
                return self._engine.step(parse_operation(step, self._level))
            case _Decode(value=value):
                return self._engine.decode(None if value is None else bytes.fromhex(value))
            case _Encode(event=event, publish=publish):
                return self._engine.encode(event, publish=publish)
            case _Partition(topic_id=topic_id, partition=partition, count=count):
                return self._engine.partition_for(bytes.fromhex(topic_id), partition, count)
        raise AssertionError(call)

    def _hello(self) -> Json:
        return {
            "protocol": PROTOCOL_VERSION,
            "engine": self._engine.name,
            "suites": [str(suite) for suite in Suite if suite in self._engine.suites],
            "without": [str(op) for op in StepOperation if op in self._engine.without],
        }


def _parse(line: bytes) -> Json:
    try:
        return cast("Json", json.loads(line))
    except (ValueError, RecursionError) as error:
        raise FieldError(f"not JSON: {error}") from error
