"""
What is shown, and where it is read from: the engines of the process and what stands beside them.

Everything here is asked when somebody asks for it. Invariant: before the service is there, and when
it is gone, there is an answer all the same, and it is never that all is well.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from rlmm.errors import NotReady, WrongCluster
from rlmm.log.replay_progress import NotReadyReason
from rlmm.views.readiness import ProcessStatus
from rlmm.views.status import copying_view, figures_view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.access.authentication import AccessStatistics
    from rlmm.broker_files.sealed_segments import BrokerLog
    from rlmm.engine.engine import Engine
    from rlmm.engine.service import ServiceStatistics
    from rlmm.telemetry.logs import LinesStatistics
    from rlmm.views.values import View


class ServedProcess(Protocol):
    """The service, as far as it is shown."""

    engines: dict[str, Engine]
    expected: tuple[str, ...]
    failure: str
    opening: dict[str, str]

    @property
    def missing(self) -> Mapping[str, str]:
        """Engines that were added later and are not there now, by name, and why."""

    @property
    def end(self) -> str:
        """Why nothing is answered any more."""

    def statistics(self) -> ServiceStatistics: ...


class SidecarFigures(Protocol):
    """What the frame server says of itself."""

    @property
    def connections(self) -> Mapping[str, int]: ...

    @property
    def connections_max(self) -> int: ...

    @property
    def accepted(self) -> int:
        """Connections since the start."""

    @property
    def refused(self) -> int:
        """Connections that were one too many."""

    @property
    def cut_off(self) -> Mapping[str, int]:
        """Connections that were ended from here, by reason."""

    @property
    def answered(self) -> Mapping[str, int]: ...

    @property
    def refusals(self) -> Mapping[tuple[str, str], int]:
        """Requests that were refused, by method and code."""

    @property
    def waiting(self) -> int: ...

    @property
    def waiting_bytes(self) -> int: ...

    @property
    def abandoned(self) -> int:
        """Waiting requests whose client went away."""

    @property
    def bytes_in(self) -> int: ...

    @property
    def bytes_out(self) -> int: ...

    @property
    def held_bytes(self) -> int: ...

    @property
    def greeting_bytes(self) -> int:
        """Of these, what strangers have sent."""

    @property
    def slow_clients(self) -> int:
        """How often a client left its answers."""

    @property
    def takeovers(self) -> int:
        """How often a start of a broker took over from another one."""


class ServedState:
    """Where all that is shown comes from. Parts of the process that do not exist are `None`."""

    def __init__(
        self,
        version: str,
        *,
        lines: Callable[[], LinesStatistics] | None = None,
        sidecar: Callable[[], SidecarFigures] | None = None,
        access: Callable[[], AccessStatistics] | None = None,
        broker_log: BrokerLog | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.version = version
        self.lines = lines
        self.sidecar = sidecar
        self.access = access
        self.broker_log = broker_log
        self.now_ms = now_ms
        self.process: ServedProcess | None = None
        self.is_started = False
        """Whether everything was answered from at least once."""

    def begin(self, process: ServedProcess) -> None:
        """This is the service; none of its logs needs to be open."""
        self.process = process

    def standing(self) -> ProcessStatus:
        """What the process can be asked now."""
        process = self.process
        if process is None:
            return ProcessStatus({}, is_begun=False)
        standing = ProcessStatus(
            {name: engine.standing() for name, engine in process.engines.items()},
            process.expected,
            end=process.end,
            failure=process.failure,
            waits=process.opening,
            missing=process.missing,
        )
        self.is_started = self.is_started or standing.was_ready
        return standing

    def process_view(self, now_s: float) -> View:
        """What the process does beside its engines, as it is shown at a time of the event loop."""
        process, parts = self.process, {
            "log_lines": self.lines, "sidecar": self.sidecar, "access": self.access,
        }  # fmt: skip
        shown: View = {"version": self.version}
        if process is not None:
            figures = process.statistics()
            shown["uptime_s"] = round(figures.uptime_s, 3)
            shown["snapshots_asked"] = figures.snapshots_asked
            shown["missing"] = dict(process.missing)
            shown["broker_watches"] = {
                name: figures_view(watch) for name, watch in figures.watches.items()
            }
            shown["copying"] = {
                name: copying_view(watch, now_s) for name, watch in figures.copying.items()
            }
        for name, statistics in parts.items():
            shown[name] = None if statistics is None else figures_view(statistics())
        return shown

    def engine(self, cluster: str | None) -> tuple[str, Engine]:
        """
        The engine of *cluster*, by name or by id, and its name; `None` is the only one.

        Raises `WrongCluster` where there is none, or several to choose from, and `NotReady` while
        that is not known.
        """
        process = self.process
        if process is None:
            raise NotReady("the service is only starting", reason=NotReadyReason.CONNECTING)
        engines, missing = process.engines, process.missing
        if cluster is None and len({*engines, *process.expected, *missing}) == 1 and engines:
            return next(iter(engines.items()))
        if cluster is not None and cluster in engines:
            return cluster, engines[cluster]
        for name, engine in engines.items():
            identity = engine.identity
            if cluster is not None and identity is not None and identity.cluster_id == cluster:
                return name, engine
        if cluster is not None and cluster in missing:
            msg = f"the metadata of cluster {cluster} is not followed now: {missing[cluster]}"
            raise NotReady(msg, reason=NotReadyReason.CONNECTING)
        is_unknown = any(engine.identity is None for engine in engines.values())
        if is_unknown or any(name not in engines for name in process.expected) or not engines:
            msg = f"whether {cluster or 'one cluster'} is served is not known yet"
            raise NotReady(msg, reason=NotReadyReason.CONNECTING)
        served = ", ".join(sorted({*engines, *missing}))
        if cluster is None:
            msg = f"several clusters are served, cluster must name one of {served}"
            raise WrongCluster(msg)
        raise WrongCluster(f"asked for is cluster {cluster}, served is {served}")
