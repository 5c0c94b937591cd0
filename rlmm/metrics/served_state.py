"""
State that health, metrics and the API show, read from the engines when a client asks.

Invariant: an answer exists before the service is up and after it has stopped, and it never claims
that all is well.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rlmm.base.native_core import engine_in_use
from rlmm.errors import NotReady, WrongCluster
from rlmm.log.replay_progress import NotReadyReason
from rlmm.views.readiness import ProcessStatus
from rlmm.views.status import copying_view, figures_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.access.authentication import AccessStatistics
    from rlmm.broker_files.sealed_segments import BrokerLog
    from rlmm.engine.engine import Engine
    from rlmm.engine.service import Service
    from rlmm.sidecar.statistics import SidecarStatistics
    from rlmm.telemetry.logs import LinesStatistics
    from rlmm.views.values import View


class ServedState:
    """The sources of everything that is shown. Parts that the process does not have are `None`."""

    def __init__(
        self,
        version: str,
        *,
        lines: Callable[[], LinesStatistics] | None = None,
        sidecar: Callable[[], SidecarStatistics] | None = None,
        access: Callable[[], AccessStatistics] | None = None,
        broker_log: BrokerLog | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.version = version
        self.shard_engine = engine_in_use()
        self.lines = lines
        self.sidecar = sidecar
        self.access = access
        self.broker_log = broker_log
        self.now_ms = now_ms
        self.process: Service | None = None
        self.is_started = False
        """Whether everything was answered from at least once."""

    def begin(self, process: Service) -> None:
        self.process = process

    def standing(self) -> ProcessStatus:
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
        """Return the view of the process apart from its engines, at a time of the event loop."""
        process, parts = self.process, {
            "log_lines": self.lines, "sidecar": self.sidecar, "access": self.access,
        }  # fmt: skip
        shown: View = {
            "version": self.version,
            "engine": self.shard_engine.name.value,
            "engine_version": self.shard_engine.version,
            "engine_obstacle": self.shard_engine.obstacle,
        }
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
        Return the engine of *cluster*, by name or id, and its name; `None` means the only one.

        Raises `WrongCluster` without a match or with several, `NotReady` while it is unknown.
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
