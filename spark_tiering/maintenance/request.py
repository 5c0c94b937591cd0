"""The request of every maintenance job: plain values, and no secret among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.execution.settings import ExecutionSettings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.state_sources.settings import SourceSettings
    from spark_tiering.stores.opening import StoreSettings


@dataclass(frozen=True, slots=True)
class CareRequest:
    """The metadata is at *source* or in *embedded*, or a job needs none."""

    source: SourceSettings | None = None
    """A running service, a cluster, or copied folders, which are read-only."""
    embedded: Path | None = None
    """The folder of an embedded log, as copy jobs make it."""
    store: StoreSettings | None = None
    prefix: str = ""
    """Of the keys that are written now."""
    topics: SegmentSelection = field(default_factory=SegmentSelection)
    engine: ExecutionSettings = field(default_factory=ExecutionSettings)
    wait_s: float = 0.0
    """How long a job waits for a source that is not caught up."""

    def __post_init__(self) -> None:
        source = self.source
        if self.embedded is not None and source is not None and (source.log_dirs or source.sidecar):
            msg = "the metadata is in --embedded or at another source: name one of the two"
            raise ConfigError(msg)

    @property
    def require_store(self) -> StoreSettings:
        """Return the store. Raise `ConfigError` where the request names none."""
        if self.store is None:
            raise ConfigError(
                "no store of objects is named: --store s3://BUCKET/PREFIX or a folder"
            )
        return self.store

    @property
    def require_source(self) -> SourceSettings:
        """Return the source. Raise `ConfigError` where the request names none."""
        if self.source is None:
            msg = "no metadata is named: --sidecar, --bootstrap-server, --log-dirs or --embedded"
            raise ConfigError(msg)
        return self.source


def unmet_notes(request: CareRequest, known: Iterable[PartitionSummary]) -> tuple[str, ...]:
    """Return notes about topics of `--topic` that the metadata lacks: they may be mistyped."""
    names = request.topics.unmet({one.partition.topic for one in known})
    return tuple(f"the metadata knows no topic {name}" for name in names)
