"""Record batches through a service: put together, asked for again, and never mixed up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from rlmm.errors import LogRecreated, LogUnavailable
from rlmm.log.protocol import LogBounds
from rlmm.metadata.ids import Uuid
from rlmm.records.record_set import RecordSet
from rlmm.state_sources.sidecar_log import PLACES_MAX, SidecarLog
from rlmm.wire.hello import HelloAnswer, ServiceLimits
from rlmm.wire.operator_queries import LogEnds, LogPiece
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_adapter.calls import Call
    from rlmm.state_sources.sidecar_link import SidecarLink

TOPIC, OTHER = Uuid(b"t" * 16), Uuid(b"o" * 16)
STATUS = {"cluster_id": "c", "topic_id": str(TOPIC), "partition_count": 9_999}


@dataclass
class Link:
    """A service with the answers of the test."""

    told: Callable[[str, list[Any]], object]
    where: str = "somewhere"
    server: HelloAnswer = field(
        default_factory=lambda: HelloAnswer(
            1, "s", "c", TOPIC, 9_999, "admin", "serve", ServiceLimits(timeout_ms_max=1_000)
        )
    )
    asked: list[tuple[str, list[Any]]] = field(default_factory=list)

    async def ask(self, call: Call[Any], timeout_s: float | None = None) -> Any:
        assert timeout_s is None or timeout_s > 0
        self.asked.append((call.method, call.args))
        return STATUS if call.method == "status" else self.told(call.method, call.args)


def log_of(told: Callable[[str, list[Any]], object]) -> tuple[SidecarLog, Link]:
    """Return a log whose service gives these answers."""
    link = Link(told)
    return SidecarLog(cast("SidecarLink", link)), link


async def test_batch_when_it_comes_in_pieces_then_is_put_together() -> None:
    """The log requests each piece behind the former ones and joins them."""
    batch = b"0123456789"

    def told(_: str, args: list[Any]) -> object:
        skip = args[3]
        return LogPiece(batch[skip : skip + 4], 7, max(0, 6 - skip))

    log, link = log_of(told)
    assert await log.read(3, 5, timeout_s=1, bytes_max=4) == RecordSet(3, batch, 7)
    reads = [args for method, args in link.asked if method == "read_log"]
    assert [args[:5] for args in reads] == [[TOPIC, 3, 5, skip, 4] for skip in (0, 4, 8)]


async def test_batch_when_it_is_another_one_meanwhile_then_is_begun_anew() -> None:
    """The log starts a changed batch anew and gives up one that never stays the same."""
    answers = iter(
        [
            LogPiece(b"aaaa", 7, 4), LogPiece(b"bb", 7, 0),
            LogPiece(b"aaaa", 7, 4), LogPiece(b"bbbb", 8, 0),
            LogPiece(b"bb", 8, 0),
        ]
    )  # fmt: skip
    log, _ = log_of(lambda *_: next(answers))
    assert await log.read(0, 5, timeout_s=1, bytes_max=4) == RecordSet(0, b"bb", 8)
    for more in (None, LogPiece(b"", 7, 4), LogPiece(b"x", 7, 9)):

        def told(_: str, args: list[Any], more: LogPiece | None = more) -> object:
            return more if args[3] else LogPiece(b"aaaa", 7, 4)

        log, _ = log_of(told)
        with pytest.raises(LogUnavailable, match="the batch changes while it is read"):
            await log.read(0, 5, timeout_s=1, bytes_max=4)


def test_read_when_nothing_comes_then_waits_as_long_as_the_service_allows_and_again() -> None:
    """The log repeats waits of the service's maximum until its own deadline."""

    async def ask() -> None:
        log, link = log_of(lambda *_: None)
        assert await log.read(0, 5, timeout_s=0.12) is None
        waits = [args[5]["timeout_ms"] for method, args in link.asked if method == "read_log"]
        assert 2 <= len(waits) <= 4
        assert waits == sorted(waits, reverse=True)
        answers = iter([None, LogPiece(b"x", 6, 0)])
        log, link = log_of(lambda *_: next(answers))
        assert await log.read(0, 5, timeout_s=600) == RecordSet(0, b"x", 6)
        assert link.asked[-1][1][5] == {"timeout_ms": 1_000}

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(ask())


async def test_bounds_when_of_very_many_partitions_then_are_asked_for_in_parts() -> None:
    """Each request has at most the service's number of partitions, and errors keep their places."""
    away = LogUnavailable("away")

    def told(_: str, args: list[Any]) -> object:
        return TOPIC, [away if place == 3 else LogEnds(place, place + 1) for place in args[0]]

    log, link = log_of(told)
    count = 2 * PLACES_MAX + 1
    found = await log.bounds(range(count), timeout_s=1)
    assert found == {n: away if n == 3 else LogBounds(n, n + 1) for n in range(count)}
    assert [len(args[0]) for method, args in link.asked if method == "log_bounds"] == [
        PLACES_MAX, PLACES_MAX, 1,
    ]  # fmt: skip


async def test_bounds_when_of_another_topic_then_are_not_taken() -> None:
    """Bounds of another topic are refused, because the records read belong to the deleted one."""
    log, _ = log_of(lambda *_: (OTHER, [LogEnds(0, 1)]))
    with pytest.raises(LogRecreated, match="is gone"):
        await log.bounds([0], timeout_s=1)
