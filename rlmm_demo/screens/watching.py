"""Watching a service start: records read by time, answers before it is ready, look-up times."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from broker_adapter.address import UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.errors import EngineFailed, NotReady, RlmmError, UnknownPartition
from rlmm_demo.report.story import ReplayCurve, StallSamples
from rlmm_demo.world.service import holds_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_demo.world.service import DemoService

_DEADLINE_S: Final = 60.0


@dataclass(slots=True)
class DemoStart:
    """The start of one service, watched from outside."""

    curve: ReplayCurve
    refusal: NotReady | None = None
    """The first `NotReady` for the partition with the long history."""
    stalls: StallSamples | None = None
    """Look-ups of another partition during the replay."""

    @property
    def events_per_s(self) -> float:
        (_, first), *_, (ready_s, last) = (*self.curve.points, self.curve.points[-1])
        return (last - first) / ready_s if ready_s else 0.0

    is_denied: bool = False
    """Whether an answer denied a segment that exists."""
    whole_s: float = 0.0
    """Seconds until it was ready, the start of the process included."""
    restored: int = 0
    """Metadata partitions that came from a snapshot."""
    filled: int = 0
    """Metadata partitions that have events."""


def watch(
    service: DemoService, label: str, partition: TopicIdPartition, beside: TopicIdPartition | None
) -> DemoStart:
    """Follow a service until it is ready; times but `whole_s` count from its assignment."""
    started_s = time.monotonic()
    service.wait_listening()
    refused = _LookupThread(service.socket, partition, is_until_answered=True)
    beside_it = None if beside is None else _LookupThread(service.socket, beside)
    points: list[tuple[float, int]] = []

    def is_ready() -> bool:
        status = service.status()
        if not (status.get("is_assignment_known") and status.get("metadata_partitions")):
            return False
        points.append((time.monotonic(), _records(status)))
        return not status["not_open"]

    try:
        if not holds_within(_DEADLINE_S, is_ready):
            status = service.status()
            raise EngineFailed(f"the service of the demonstration is not ready: {status}")
    finally:
        refused.end()
        if beside_it is not None:
            beside_it.end()
    begun_s, now_s = points[0][0], points[-1][0]
    ready_s = now_s - begun_s
    stalls = None if beside_it is None else stalls_of(beside_it.answered, begun_s, ready_s)
    curve = ReplayCurve(label, tuple((at_s - begun_s, count) for at_s, count in points), ready_s)
    restored, filled = _counts(service.status())
    return DemoStart(
        curve, refused.refusal, stalls, refused.is_denied, now_s - started_s, restored, filled
    )


def _counts(status: dict[str, Any]) -> tuple[int, int]:
    """Return how many metadata partitions came from a snapshot, and how many have events."""
    filled = sum(bool(one["history"]["records"]) for one in status["metadata_partitions"])
    return (status["snapshots"] or {}).get("restored") or 0, filled


def stalls_of(
    answered: Iterable[tuple[float, float]], begun_s: float, ready_s: float
) -> StallSamples | None:
    """Keep the look-ups, each a start in s and a duration in ms, that overlap the replay."""
    points = [
        (max(0.0, start_s - begun_s), took_ms)
        for start_s, took_ms in answered
        if start_s + took_ms / 1_000 >= begun_s and start_s <= begun_s + ready_s
    ]
    return StallSamples.of(points, (0.0, ready_s))


def _records(status: dict[str, object]) -> int:
    partitions = status["metadata_partitions"]
    assert isinstance(partitions, list)
    return sum(one["history"]["records"] for one in partitions)


@dataclass(slots=True)
class _LookupThread:
    """A thread with its own connection that looks up offset 0 again and again."""

    socket: Path
    partition: TopicIdPartition
    is_until_answered: bool = False
    refusal: NotReady | None = None
    is_denied: bool = False
    answered: list[tuple[float, float]] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._look_up, name="asking", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(_DEADLINE_S)

    def _look_up(self) -> None:
        with BlockingRemoteLogMetadataClient(
            UnixAddress(self.socket), client="rlmm demo",
            settings=ClientSettings(is_repeating=False),
        ) as client:  # fmt: skip
            while not self._is_over.is_set():
                start_s = time.monotonic()
                try:
                    self.is_denied |= client.segment_for(self.partition, 0, 0) is None
                except UnknownPartition:
                    self.is_denied = True
                except NotReady as error:
                    if self.refusal is None and error.records_left:
                        self.refusal = error
                except RlmmError:  # not assigned yet, say: it has nothing to do with what is read
                    pass
                else:
                    if self.is_until_answered:
                        return
                    self.answered.append((start_s, (time.monotonic() - start_s) * 1_000))
                self._is_over.wait(0.005)


def percentile_ms(ask: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        begun_s = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - begun_s) * 1_000)
    found = StallSamples.of(enumerate(taken))
    assert found is not None, "it was asked"
    return found.p99_ms
