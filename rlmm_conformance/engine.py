"""
Engine under test: the interface that the runner calls.

An engine answers in JSON values only, whatever it is made of, so that one runner judges an engine
in this process and one behind a pipe alike. An answer that is merely wrong is an answer; an engine
that cannot answer raises `EngineFailed`.
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
    """
    An implementation under test.

    `begin` and `step` belong to the suite scenarios, `decode` and `encode` to records,
    `partition_for` to partitioner. Calls of a suite that is not in `suites` are never made.
    """

    @property
    def name(self) -> str: ...

    @property
    def suites(self) -> frozenset[Suite]: ...

    @property
    def without(self) -> frozenset[StepOperation]:
        """Return the white-box questions that the engine cannot answer; the runner reports them."""
        ...

    def begin(self, scenario: str, level: Level, *, initialized: bool) -> None:
        """Drop all state and start *scenario* from an empty one."""
        ...

    def step(self, operation: Operation) -> Json:
        """Carry out one operation; return its answer in the form of the corpus, errors included."""
        ...

    def decode(self, value: bytes | None) -> Json:
        """Read a record value, null as None: `{"event": ...}` or `{"undecodable": why}`."""
        ...

    def encode(self, event: dict[str, Json], *, publish: bool) -> Json:
        """
        Write an event: `{"value": hex}` or `{"refused": why}`.

        With *publish*, as for a topic that brokers read; without, as Kafka's serialiser writes
        anything it can hold.
        """
        ...

    def partition_for(self, topic_id: bytes, partition: int, count: int) -> Json:
        """Return the metadata partition of a user partition, or `{"refused": why}`."""
        ...

    def close(self) -> None:
        """Release all resources; the runner calls it once, also after a failure."""
        ...
