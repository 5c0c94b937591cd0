"""Settings of a folder as a store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - settings are read by their annotations


@dataclass(frozen=True, slots=True)
class LocalSettings:
    folder: Path
    """Made where its parent exists: a whole path that is missing is more likely not mounted."""
    is_synced: bool = True
    """Off only where a power cut may lose an object that a metadata event already names."""
    is_made: bool = True
    """Off for who only looks: then a folder that is not there is not made, and has no objects."""
