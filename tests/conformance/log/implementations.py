"""The logs that the contract suite runs over, each made empty with `PARTITION_COUNT` partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.conformance.log.files_log import files_log
from tests.conformance.log.kafka_log import kafka_log
from tests.conformance.log.memory_log import memory_log
from tests.kafka.fixtures import TIMEOUT_S

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tests.conformance.log.under_test import LogUnderTest


class MakeLog(Protocol):
    """A function that opens an empty log and takes its fixtures from the request."""

    def __call__(
        self, request: pytest.FixtureRequest
    ) -> AbstractAsyncContextManager[LogUnderTest]: ...


@dataclass(frozen=True, slots=True)
class Implementation:
    name: str
    make: MakeLog
    marks: tuple[pytest.MarkDecorator, ...] = ()


NEEDS_BROKER = (pytest.mark.kafka, pytest.mark.timeout(TIMEOUT_S))

IMPLEMENTATIONS = [
    Implementation("memory", memory_log),
    Implementation("files", files_log),
    Implementation("kafka", kafka_log, NEEDS_BROKER),
]


def params() -> list[object]:
    return [pytest.param(each.make, id=each.name, marks=each.marks) for each in IMPLEMENTATIONS]
