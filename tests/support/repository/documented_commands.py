"""Fenced blocks of README and docs, and the commands in them, as a reader would type them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_GENERATED = {"cli.md"}
"""The help of every command; its examples are those of `--help`."""
SHELL = ("console", "sh")


@dataclass(frozen=True, slots=True)
class DocumentedCommand:
    text: str
    """As it is typed, without the prompt; it may have several lines."""
    shown: list[str] = field(default_factory=list)
    """The output that the page shows."""


@dataclass(frozen=True, slots=True)
class DocumentedBlock:
    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def first_line(self) -> str:
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")

    @property
    def commands(self) -> list[DocumentedCommand]:
        """Return the commands: lines behind a `$`, or all lines of a block without output."""
        lines = self.text.splitlines()
        has_prompt = any(line.startswith("$ ") for line in lines)
        if not has_prompt and self.language not in SHELL and not self._is_script(lines):
            return []
        found: list[DocumentedCommand] = []
        is_going_on = False
        for line in lines:
            if is_going_on:
                found[-1] = DocumentedCommand(f"{found[-1].text}\n{line}")
            elif line.startswith("$ ") or (not has_prompt and line.strip()):
                if line.startswith("#"):
                    continue
                found.append(DocumentedCommand(line.removeprefix("$ ")))
            elif found and line.strip():
                found[-1].shown.append(line)
            is_going_on = bool(found) and line.endswith("\\")
        return found

    def _is_script(self, lines: list[str]) -> bool:
        return self.language == "" and any(line.startswith("rlmm ") for line in lines)


def pages() -> list[Path]:
    found = [tree.ROOT / "README.md", *sorted((tree.ROOT / "docs").glob("*.md"))]
    return [page for page in found if page.name not in _GENERATED]


def blocks_of(page: Path) -> Iterator[DocumentedBlock]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        indent = re.compile(f"^{found[1]}", re.MULTILINE)
        line = text[: found.start()].count("\n") + 1
        yield DocumentedBlock(page.name, line, found[2], indent.sub("", found[3]))


def blocks() -> list[DocumentedBlock]:
    return [block for page in pages() for block in blocks_of(page)]


_EXEC = "tests/conformance/test_exec_engine.py"
_DEMO = "tests/integration/rlmm_demo/test_demo.py"
_DUCKDB = "for DuckDB, which is no dependency"
_SNAPSHOTS = "tests/property/test_snapshot_format.py"
ELSEWHERE = {
    ("README.md", "__remote_log_metadata"): "a drawing",
    ("README.md", "$ make demo"): _DEMO,
    ("README.md", "✓ 198,000 of 198,000 records"): _DEMO,
    ("README.md", "$ make test"): "what runs these tests",
    ("configuration.md", "rlmm: config: RLMM_PUMP_READ_BYTES"): (
        "tests/integration/examples/test_documented_commands.py"
    ),
    ("conformance.md", "$ rlmm conformance run"): "tests/conformance/test_command.py",
    ("conformance.md", "> {"): _EXEC,
    ("conformance.md", "import json"): _EXEC,
    ("http.md", '$ curl -s -H "$token" localhost:7405/v1/broker-log/'): (
        "tests/integration/http/test_broker_log.py"
    ),
    ("security.md", "umask 077"): "tests/integration/access/test_serve_access.py",
    ("security.md", "[sidecar]"): "tests/integration/access/test_serve_access.py",
    ("snapshot-format.md", ""): _SNAPSHOTS,
    ("tier-care-export.md", "SELECT topic, partition"): _DUCKDB,
    ("tier-care-export.md", "CREATE TABLE hive.tier.plans ("): "for a Trino of the user's",
    ("tier-care-export.md", "CREATE TABLE plan ("): "for a Flink of the user's",
    ("tier-care-export.md", "from spark_tiering.decoding import"): (
        "tests/integration/spark_tiering/test_export_readers.py"
    ),
    ("tier-care-rebuild.md", "-- DuckDB"): _DUCKDB,
    ("tier-care-verify.md", '{"format": "rlmm-key-ring"'): (
        "tests/unit/spark_tiering/layout/test_encryption.py"
    ),
    ("wire-protocol.md", "client: hello"): "tests/unit/wire/test_golden_frames.py",
    ("operating.md", ""): "tests/integration/incidents/test_incidents.py",
    ("switching.md", ""): "tests/integration/plugin/test_switching_kafka.py",
}
"""Page and the begin of a block -> the test that carries it out, or why none can."""
NOT_RUN = {
    r"--bootstrap-server": "asks the brokers of the user",
    r"--source-sidecar https://": "asks the services of the user's brokers",
    r"^kafka-\w+(-\w+)*\.sh ": "a tool of Kafka",
    r"^sudo ": "needs the rights of root",
    r"--inventory s3://": "needs the inventory of a bucket",
    r"^less ": "shows a file that a command above it writes beside a cluster",
    r"--master 'local": "runs on Spark, as other tests do",
    r"^(python3\.13 -m venv|env/bin/)": "downloads packages",
}  # fmt: skip
"""A command that matches -> why it is parsed only, or not even that."""


def why_not_run(command: DocumentedCommand) -> str:
    """Return the reason why *command* is not run; an empty text where it is."""
    return next((why for form, why in NOT_RUN.items() if re.search(form, command.text)), "")


def reason_elsewhere(block: DocumentedBlock) -> str:
    """Return the test that carries *block* out, or why none can; empty where its page does."""
    return next(
        (
            why
            for (page, begin), why in ELSEWHERE.items()
            if page == block.page and block.first_line.startswith(begin)
        ),
        "",
    )
