"""`rlmm tier` for a place, called in this process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from click.testing import CliRunner

from rlmm.cli.main import cli
from tests.support.stores.stores_under_test import known_as
from tests.support.tier.job_folders import TierPlace, digest_of_tree

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from click.testing import Result


def forget_environment(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    known_as("somebody", "something", home, monkeypatch)
    for name in [name for name in os.environ if name.startswith("RLMM_")]:
        monkeypatch.delenv(name)


@dataclass
class Command:
    place: TierPlace

    @property
    def store(self) -> list[str]:
        return ["--store", str(self.place.folder / "store")]

    def flags(self, **changes: str | None) -> list[str]:
        """Build flags of a job; None leaves one out, an empty text gives it no value."""
        said: dict[str, str | None] = {
            "log-dir": str(self.place.log_dir),
            "offline": "",
            "embedded": str(self.place.archive),
            "store": str(self.place.folder / "store"),
            "no-spark": "",
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        flags: list[str] = []
        for name, value in said.items():
            if value is not None:
                flags += [f"--{name}", value] if value else [f"--{name}"]
        return flags

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["tier", *arguments])

    def run(self, *more: str, **changes: str | None) -> Result:
        return self("run", *self.flags(**changes), *more)

    def plan(self, *more: str, **changes: str | None) -> Result:
        return self("plan", *self.flags(**changes), *more)


def said_on_stderr(result: Result) -> list[str]:
    """Return the lines on standard error without progress lines and retries."""
    told = ("rlmm.cli.tier_common.progress_line", "broker_adapter.link")
    return [line for line in result.stderr.splitlines() if not any(one in line for one in told)]


def trees(place: TierPlace) -> tuple[dict[str, str], dict[str, str]]:
    return digest_of_tree(place.archive / "log"), digest_of_tree(place.folder / "store")
