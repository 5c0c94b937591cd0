"""`rlmm demo` as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE_S = 900
TITLES = (
    "start", "produce", "copy", "read cold", "refuse", "kill", "explain", "disaster", "scoreboard",
)  # fmt: skip
_HEAD = re.compile(r"^(\d) of 9 · ([a-z ]+?) ─*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ToldDemo:
    status: int
    text: str
    report: Path

    @property
    def screens(self) -> dict[str, str]:
        parts = _HEAD.split(self.text)[1:]
        return {
            title: said for _, title, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        }

    def pictures(self) -> list[str]:
        page = ElementTree.fromstring(self.report.read_text(encoding="utf-8"))
        return [one.get("aria-label", "") for one in page.iter("figure")]


def tell_demo(folder: Path, *flags: str) -> ToldDemo:
    report = folder / "report.html"
    done = subprocess.run(
        [sys.executable, "-m", "rlmm", "demo", "--report", str(report), *flags],
        capture_output=True, text=True, check=False, timeout=DEADLINE_S, cwd=tree.ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    return ToldDemo(done.returncode, done.stdout + done.stderr, report)
