"""No test of the library may block the event loop."""

from __future__ import annotations

from tests.support.blocking import nothing_blocks

__all__ = ["nothing_blocks"]
