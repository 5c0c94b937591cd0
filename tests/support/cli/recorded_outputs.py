"""The output of commands, compared with a recording."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "data" / "cli"
WRITE = "WRITE_GOLDEN"
"""Environment variable: when set, the files are written anew, for review."""


def require_golden(name: str, printed: str) -> None:
    file = FOLDER / name
    if os.environ.get(WRITE):
        file.write_text(printed, encoding="utf-8")
    assert printed == file.read_text(encoding="utf-8"), f"{name}: look, then set {WRITE}=1"
