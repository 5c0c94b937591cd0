"""Commands that look at the state, called in this process at a time that stands still."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from rlmm.cli.common import source_choice
from rlmm.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest
    from click.testing import Result


def stop_the_clock(monkeypatch: pytest.MonkeyPatch, now_ms: int) -> None:
    still = SimpleNamespace(time_ns=lambda: now_ms * 1_000_000)
    monkeypatch.setattr(source_choice, "time", still)


def called(*arguments: str, output: str = "json") -> Result:
    return CliRunner().invoke(cli, [*arguments, "--output", output], catch_exceptions=False)


@dataclass(frozen=True)
class Told:
    exit_code: int
    document: Mapping[str, Any] | None
    error: str
    """The first word of what it said instead: `rlmm: unknown-partition`."""


def told(*arguments: str) -> Told:
    result = called(*arguments)
    document = json.loads(result.stdout) if result.stdout.strip() else None
    errors = [line for line in result.stderr.splitlines() if line.startswith("rlmm: ")]
    error = ":".join(errors[-1].split(":")[:2]) if errors else ""
    return Told(result.exit_code, document, error)


def without(value: Any, paths: Mapping[str, str]) -> Any:
    """Return *value* without *paths*: dots go into objects, a star into every item."""
    if not paths:
        return value
    if isinstance(value, list):
        inner = _below("*", paths)
        return [without(one, inner) for one in value]
    if isinstance(value, dict):
        return {
            name: without(one, _below(name, paths))
            for name, one in value.items()
            if name not in paths
        }
    return value


def _below(name: str, paths: Mapping[str, str]) -> dict[str, str]:
    return {
        path.partition(".")[2]: why
        for path, why in paths.items()
        if "." in path and path.partition(".")[0] == name
    }


# --------------------------------------------------------------------------------- the questions

MAY_DIFFER = {"source": "who was asked", "where": "and its address, or its folders"}
"""Fields in which the answers to any question may differ, with the reason."""
OF_A_TOPIC = {
    "cluster_id": "a folder that was never a broker's has an id of its own",
    "topic_id": "the same, as long as it is not said of an item",
    "items.*.usable_bytes": "a disk that others write to as well",
    "items.*.full_in_s": "reckoned from that",
    "totals.first_full_in_s": "reckoned from that",
}
"""Further fields that may differ where one source is a cluster and another no copy of it."""
RESTORED = {
    **{
        f"{where}.{name}": "of what was read since the state was restored"
        for where, names in (
            ("items.*", ("rejected", "rejected_total", "undecodable", "undecodable_total")),
            ("totals", ("rejected", "undecodable")),
        )
        for name in names
    },
    "items.*.snapshot_age_s": "of the snapshot that it was restored from",
    "totals.snapshot_age_s": "the oldest of these",
}
"""Fields that may differ when the state was kept from one command to the next."""
