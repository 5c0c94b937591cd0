"""
A pytest plugin: `--capabilities=FILE` fails unless every test named in the table ran and passed.

Results are judged on the controller of a distributed run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

COLUMNS = ["capability", "command or call", "test"]
_TEST = re.compile(r"`([^`]+\.py::[^`]+)`")


@dataclass(frozen=True, slots=True)
class Capability:
    what: str
    call: str
    tests: tuple[str, ...]


def read_capabilities(text: str) -> list[Capability]:
    """Return the rows of the table in *text*. Raises ValueError for no table or a malformed row."""
    lines = [_cells(line) for line in text.splitlines() if line.startswith("|")]
    if len(lines) < 2 or lines[0] != COLUMNS:
        message = f"no table with the columns {' | '.join(COLUMNS)}"
        raise ValueError(message)
    rows = []
    for cells in lines[2:]:
        if len(cells) != len(COLUMNS) or not _TEST.findall(cells[2]):
            message = f"a row needs {len(COLUMNS)} cells, the last with `FILE.py::TEST`: {cells}"
            raise ValueError(message)
        rows.append(Capability(cells[0], cells[1], tuple(_TEST.findall(cells[2]))))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


class CapabilityJudge:
    def __init__(self, capabilities: list[Capability]) -> None:
        self._capabilities = capabilities
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of one test; all cases of a table count for their test."""
        test = report.nodeid.partition("[")[0].partition("@")[0]
        if report.failed:
            self._failed.add(test)
        elif report.when == "call" and report.passed:
            self._passed.add(test)

    def not_shown(self) -> list[str]:
        return [
            f"{capability.what}: {test} {'failed' if test in self._failed else 'did not run'}"
            for capability in self._capabilities
            for test in capability.tests
            if test not in self._passed or test in self._failed
        ]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.not_shown() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        missing = self.not_shown()
        if missing:
            terminalreporter.section("capabilities not shown by this run", red=True)
            for line in missing:
                terminalreporter.line(line)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--capabilities",
        metavar="FILE",
        help="fail unless every test that a row of this page names ran and passed",
    )


def pytest_configure(config: pytest.Config) -> None:
    page = config.getoption("capabilities")
    if page is None or hasattr(config, "workerinput") or config.getoption("collectonly"):
        return
    path = Path(config.rootpath, page)
    try:
        capabilities = read_capabilities(path.read_text())
    except (OSError, ValueError) as error:
        message = f"--capabilities {path}: {error}"
        raise pytest.UsageError(message) from error
    config.pluginmanager.register(CapabilityJudge(capabilities), "capability-judge")
