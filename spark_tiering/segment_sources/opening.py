"""The opening of a source from its settings, which travel to the process that opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.segment_sources.logdir import LogDirSource
from spark_tiering.segment_sources.settings import LogDirSettings, SidecarSourceSettings

if TYPE_CHECKING:
    from spark_tiering.segment_sources.protocol import SegmentSource

SourceSettings = LogDirSettings | SidecarSourceSettings


def open_source(settings: SourceSettings) -> SegmentSource:
    """Return the source that *settings* name; the caller closes it."""
    if isinstance(settings, LogDirSettings):
        return LogDirSource(settings)
    # Needs TLS and HTTP, which folders do not.
    from spark_tiering.segment_sources.sidecar import SidecarSegmentSource  # noqa: PLC0415

    return SidecarSegmentSource(settings)
