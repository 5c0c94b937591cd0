"""Findings of the layout, compared in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.layout.findings import LayoutFinding

if TYPE_CHECKING:
    from spark_tiering.layout.findings import LayoutFault


def assert_finding(found: object, kind: LayoutFault, *texts: str) -> None:
    """Check that *found* is a finding of *kind* with each of *texts* in its detail."""
    assert isinstance(found, LayoutFinding)
    assert found.kind is kind, found
    assert all(text in found.detail for text in texts), found
