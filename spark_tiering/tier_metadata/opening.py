"""Opening of an access to the metadata, by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.tier_metadata.embedded import EmbeddedMetadata
from spark_tiering.tier_metadata.settings import EmbeddedAccess, SidecarAccess
from spark_tiering.tier_metadata.sidecar import open_sidecar

if TYPE_CHECKING:
    from spark_tiering.tier_metadata.protocol import TierMetadata

AccessSettings = SidecarAccess | EmbeddedAccess


def open_metadata_access(settings: AccessSettings) -> TierMetadata:
    """Open the access that *settings* describe; the caller closes it."""
    if isinstance(settings, SidecarAccess):
        return open_sidecar(settings)
    return EmbeddedMetadata(settings)
