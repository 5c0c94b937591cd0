"""Exec engine: the runner's side of the exec protocol (`docs/conformance.md`)."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, cast

from rlmm.errors import ConfigError, EngineFailed
from rlmm.metadata.outcomes import Level
from rlmm_conformance.child import Child
from rlmm_conformance.engine import PROTOCOL_VERSION, Suite
from rlmm_conformance.fields import Json, shown
from rlmm_conformance.steps import WHITE_BOX, StepOperation, request_of

if TYPE_CHECKING:
    from rlmm_conformance.steps import Operation

ANSWER_TIMEOUT_MS = 10_000
START_TIMEOUT_MS = 60_000


class ExecEngine:
    """The engine behind a child process; the constructor starts and greets it."""

    def __init__(
        self,
        command: str,
        answer_timeout_ms: int = ANSWER_TIMEOUT_MS,
        start_timeout_ms: int = START_TIMEOUT_MS,
    ) -> None:
        self._command = command
        self._start_timeout_s = max(answer_timeout_ms, start_timeout_ms) / 1_000
        self._answer_timeout_s = answer_timeout_ms / 1_000
        self._level = Level.STORE
        try:
            argv = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"engine exec:{command}: not a command line: {error}") from error
        if not argv:
            raise ConfigError("engine exec: names no command")
        try:
            self._child = Child(argv)
        except EngineFailed as error:
            raise EngineFailed(f"engine exec:{command}: {error}") from error
        try:
            self.suites, self.without = self._greet()
        except BaseException:
            self._child.close()
            raise

    @property
    def name(self) -> str:
        return f"exec:{self._command}"

    def _greet(self) -> tuple[frozenset[Suite], frozenset[StepOperation]]:
        """Say hello; return the suites that the engine offers and the questions that it lacks."""
        request: dict[str, Json] = {"call": "hello", "protocol": PROTOCOL_VERSION}
        answer = self._exchange(request, self._start_timeout_s)
        if not isinstance(answer, dict) or answer.get("protocol") != PROTOCOL_VERSION:
            raise self._failure(f"speaks another protocol, answered hello with {shown(answer)}")
        offered = answer.get("suites")
        if not isinstance(offered, list) or not all(suite in set(Suite) for suite in offered):
            raise self._failure(f"offers suites among {', '.join(Suite)}, said {shown(offered)}")
        without = answer.get("without", [])
        if not isinstance(without, list) or not all(op in WHITE_BOX for op in without):
            ops = ", ".join(sorted(WHITE_BOX))
            raise self._failure(f"may be without some of {ops}, said {shown(without)}")
        return (
            frozenset(Suite(str(suite)) for suite in offered),
            frozenset(StepOperation(str(op)) for op in without),
        )

    def begin(self, scenario: str, level: Level, *, initialized: bool) -> None:
        self._level = level
        request: dict[str, Json] = {"call": "begin", "scenario": scenario, "level": str(level)}
        if level is Level.CACHE:
            request["initialized"] = initialized
        self._ask(request)

    def step(self, operation: Operation) -> Json:
        return self._ask({"call": "step", "step": request_of(operation, self._level)})

    def decode(self, value: bytes | None) -> Json:
        return self._ask({"call": "decode", "value": None if value is None else value.hex()})

    def encode(self, event: dict[str, Json], *, publish: bool) -> Json:
        return self._ask({"call": "encode", "event": event, "publish": publish})

    def partition_for(self, topic_id: bytes, partition: int, count: int) -> Json:
        place: dict[str, Json] = {"topic_id": topic_id.hex(), "partition": partition}
        return self._ask({"call": "partition", **place, "count": count})

    def close(self) -> None:
        self._child.close()

    def _ask(self, request: dict[str, Json]) -> Json:
        return self._exchange(request, self._answer_timeout_s)

    def _exchange(self, request: dict[str, Json], timeout_s: float) -> Json:
        """Send one request and return the answer in its reply; any other reply is a failure."""
        line = json.dumps(request, separators=(",", ":")).encode()
        try:
            reply = self._child.exchange(line, timeout_s)
        except EngineFailed as error:
            raise self._failure(str(error)) from error
        try:
            content = cast("Json", json.loads(reply))
        except (ValueError, RecursionError) as error:
            text = reply.decode(errors="replace")
            raise self._failure(
                f"answered with something that is not JSON: {shown(text)}"
            ) from error
        if isinstance(content, dict) and set(content) == {"answer"}:
            return content["answer"]
        if isinstance(content, dict) and set(content) == {"failed"}:
            raise self._failure(f"gave up: {shown(content['failed'])}")
        raise self._failure(f"reply is neither 'answer' nor 'failed': {shown(content)}")

    def _failure(self, what: str) -> EngineFailed:
        return EngineFailed(f"engine {self.name}: {what}")
