"""
Engine under test: the interface that the runner calls.

Answers are JSON values, so that one runner judges engines in this process and behind pipes alike. A
wrong answer is an answer; an engine that cannot answer raises `EngineFailed`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rlmm.metadata.outcomes import Level
    from rlmm_conformance.fields import Json
    from rlmm_conformance.steps import Operation, StepOperation

PROTOCOL_VERSION = 1


class Suite(StrEnum):
    """The parts of the corpus; an engine names those that it offers."""

    SCENARIOS = "scenarios"
    RECORDS = "records"
    PARTITIONER = "partitioner"


ALL_SUITES = frozenset(Suite)


class EngineUnderTest(Protocol):
    """An implementation under test; calls of a suite that is not in `suites` are never made."""

    @property
    def name(self) -> str: ...

    @property
    def suites(self) -> frozenset[Suite]: ...

    @property
    def without(self) -> frozenset[StepOperation]:
        """Return the white-box questions that the engine cannot answer; the runner reports them."""

    def begin(self, scenario: str, level: Level, *, initialized: bool) -> None:
        """Drop all state and start *scenario* from an empty one."""

    def step(self, operation: Operation) -> Json:
        """Carry out one operation; return its answer in the form of the corpus, errors included."""

    def decode(self, value: bytes | None) -> Json:
        """Read a record value, null as None: `{"event": ...}` or `{"undecodable": why}`."""

    def encode(self, event: dict[str, Json], *, publish: bool) -> Json:
        """Write an event: `{"value": hex}` or `{"refused": why}`; strictly with *publish*."""

    def partition_for(self, topic_id: bytes, partition: int, count: int) -> Json:
        """Return the metadata partition of a user partition, or `{"refused": why}`."""

    def close(self) -> None:
        """Release all resources; the runner calls it once, also after a failure."""
