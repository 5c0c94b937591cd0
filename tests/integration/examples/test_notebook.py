"""The notebook of the examples, executed as a reader would: from the first cell to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.repository import tree
from tests.support.spark.sessions import TIMEOUT_S

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOK = tree.ROOT / "examples" / "spark_tiering" / "tiering.ipynb"


@pytest.mark.timeout(TIMEOUT_S)
def test_notebook_when_run_then_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of the notebook runs in a kernel of its own and shows the results in its text."""
    monkeypatch.setenv("WORK_DIR", str(tmp_path))
    monkeypatch.delenv("LOG_DIR", raising=False)
    notebook = nbformat.reads(NOTEBOOK.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    shown = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    assert "6 of 6 segments" in shown or "6 segments" in shown
    assert "|clicks|        0| 3072|" in shown
    assert "click 12 of shop 0" in shown
    assert list((tmp_path / "parquet").glob("topic=clicks/day=*/*.parquet"))
