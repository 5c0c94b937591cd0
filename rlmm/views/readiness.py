"""
The readiness of the process, and its liveness. Pure. A process is ready when its logs are open and
reached, its assignment is known, no cluster is missing, all assigned partitions are answered from,
and it is not stopping.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from rlmm.gate.state import GateState
from rlmm.log.replay_progress import NotReadyReason
from rlmm.views.values import Count, Int64, Number, ViewObject, age_s, choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.engine.statistics import EngineStatus

OPENING = "opening"
"""Why nothing is answered while the log of an engine is being opened."""
MISSING = "missing"
"""Why nothing is answered of a cluster that was learned, and is not followed now."""
GateStateName = Annotated[str, choice(GateState)]


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    engines: Mapping[str, EngineStatus]
    expected: tuple[str, ...] = ()
    """Names of the engines that the process begins with."""
    is_begun: bool = True
    """Whether there is anything at all."""
    end: str = ""
    """Why nothing is answered any more."""
    failure: str = ""
    """What it ends of, unless that was asked for."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """The cause of the wait by name, where logs are being opened; their engines may exist."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Engines that were added later and are not there now, by name, and why."""

    @property
    def opening(self) -> list[str]:
        return [name for name in self.expected if name not in self.engines or name in self.waits]

    @property
    def is_ready(self) -> bool:
        """Return whether all that is assigned is answered from."""
        return (
            self.is_begun
            and bool(self.engines)
            and not (self.end or self.failure or self.opening or self.missing)
            and all(engine.is_ready for engine in self.engines.values())
        )

    @property
    def was_ready(self) -> bool:
        """Return whether each assigned partition was open once; missing clusters do not count."""
        return self.is_begun and bool(self.engines) and not self.opening and all(
            engine.identity is not None
            and engine.assignment.is_known
            and all(
                place in engine.gates and engine.gates[place].openings for place in engine.places
            )
            for engine in self.engines.values()
        )  # fmt: skip

    @property
    def word(self) -> str:
        if self.failure:
            return "failed"
        if self.end:
            return "stopping"
        if self.is_ready:
            return "ready"
        return "starting" if not self.is_begun or self.opening else "not-ready"

    @property
    def detail(self) -> str:
        if self.failure or self.end:
            return self.failure or self.end
        if self.opening:
            named = (
                f"{name} ({self.waits[name]})" if name in self.waits else name
                for name in self.opening
            )
            return f"logs are being opened: {', '.join(named)}"
        if not self.engines and not self.missing:
            return "no cluster is followed yet"
        waiting = [name for name, engine in self.engines.items() if not engine.is_ready]
        reasons = [f"not all is answered from: {', '.join(waiting)}"] if waiting else []
        reasons += [f"{name} is not followed now: {why}" for name, why in self.missing.items()]
        return "; ".join(reasons)


class PlaceReadinessView(ViewObject):
    metadata_partition: Count
    state: GateStateName
    why: str | None
    detail: str
    position: Int64 | None
    target: Int64 | None
    records_left: Count | None
    lag_records: Count | None


class ClusterReadinessView(ViewObject, kw_only=True):
    cluster: str
    cluster_id: str | None = None
    is_ready: bool = False
    reason: str | None
    detail: str
    assigned: Count | None = None
    open: Count = 0
    metadata_partitions: list[PlaceReadinessView]


class ReadinessView(ViewObject):
    status: Annotated[str, choice(["ready", "not-ready", "starting", "stopping", "failed"])]
    is_ready: bool
    detail: str
    clusters: list[ClusterReadinessView]


class LivenessView(ViewObject):
    """Whether the process works; otherwise it must be restarted."""

    status: Annotated[str, choice(["alive", "stuck", "failed"])]
    is_alive: bool
    detail: str
    heartbeat_age_s: dict[str, Number | None]


def readiness_view(process: ProcessStatus, *, is_verbose: bool = False) -> ReadinessView:
    """Show the metadata partitions that are not answered from, or all where *is_verbose*."""
    opening = process.opening
    clusters = [_absent_view(name, OPENING, _opening_detail(process, name)) for name in opening]
    clusters += [_absent_view(name, MISSING, why) for name, why in process.missing.items()]
    clusters += [
        _cluster_view(name, engine, is_verbose=is_verbose)
        for name, engine in process.engines.items()
        if name not in opening
    ]
    return ReadinessView(
        status=process.word, is_ready=process.is_ready, detail=process.detail, clusters=clusters
    )


def _opening_detail(process: ProcessStatus, name: str) -> str:
    what = process.waits.get(name)
    return "its log is being opened" if what is None else f"its log is being opened: {what}"


def _absent_view(name: str, reason: str, detail: str) -> ClusterReadinessView:
    return ClusterReadinessView(cluster=name, reason=reason, detail=detail, metadata_partitions=[])


def _cluster_view(name: str, engine: EngineStatus, *, is_verbose: bool) -> ClusterReadinessView:
    identity = engine.identity
    reason, detail = None, ""
    if identity is None:
        reason, detail = (
            NotReadyReason.CONNECTING.value,
            engine.last_trouble or "the log has not answered yet",
        )
    elif not engine.assignment.is_known:
        reason, detail = (
            NotReadyReason.ASSIGNMENT_UNKNOWN.value,
            "the assignment is not known yet",
        )
    places, not_open = sorted(engine.places), engine.not_open
    if reason is None and not_open:
        reason = _word(engine, not_open[0])
        detail = f"{len(not_open)} of {len(places)} metadata partitions are not answered from"
    return ClusterReadinessView(
        cluster=name,
        cluster_id=None if identity is None else identity.cluster_id,
        is_ready=engine.is_ready,
        reason=reason,
        detail=detail,
        assigned=len(places) if identity is not None and engine.assignment.is_known else None,
        open=len(places) - len(not_open),
        metadata_partitions=[
            place_view(engine, place) for place in (places if is_verbose else not_open)
        ],
    )


def place_view(engine: EngineStatus, place: int) -> PlaceReadinessView:
    gate, progress = engine.gates.get(place), engine.progress.get(place)
    position = None if progress is None else progress.position
    target = None if progress is None else progress.target
    left = None if position is None or target is None else max(0, target - position)
    return PlaceReadinessView(
        metadata_partition=place,
        state="replaying" if gate is None else gate.state.value,
        why=_word(engine, place),
        detail="" if gate is None else gate.detail,
        position=position,
        target=target,
        records_left=left,
        lag_records=None if progress is None else progress.lag_records,
    )


def _word(engine: EngineStatus, place: int) -> str | None:
    gate = engine.gates.get(place)
    if gate is None:
        return NotReadyReason.LOADING.value
    return None if gate.why is None else gate.why.value


def liveness_view(process: ProcessStatus, now_s: float, age_s_max: float) -> LivenessView:
    """Show whether no part has failed and each engine saw its partitions in *age_s_max* seconds."""
    ages = {
        name: age_s(engine.judged_s, now_s)
        for name, engine in process.engines.items()
        if engine.identity is not None
    }
    stuck = [name for name, age in ages.items() if age is not None and age > age_s_max]
    is_stuck = bool(stuck) and not process.end
    word = "failed" if process.failure else "stuck" if is_stuck else "alive"
    detail = process.failure
    if is_stuck and not detail:
        detail = f"the reading stands still: {', '.join(stuck)}"
    return LivenessView(status=word, is_alive=word == "alive", detail=detail, heartbeat_age_s=ages)
