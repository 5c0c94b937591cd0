"""The command `rlmm conformance run`: its output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm_conformance.corpus import PACKAGED
from tests.conformance.play import add, ask, copied

if TYPE_CHECKING:
    from click.testing import Result

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    steps = [
        *copied("a", 0, 200),
        *copied("b", 0, 100),
        ask("get", None, epoch=0, offset=150),
        ask("get", "a", epoch=0, offset=50),
    ]
    path = tmp_path / "v.json"
    path.write_text(json.dumps([{"name": "one", "level": "cache", "steps": steps}]))
    return path


def run(*options: str) -> Result:
    return CliRunner().invoke(cli, ["conformance", "run", *options])


def test_run_when_nothing_fails_prints_what_the_document_shows() -> None:
    """The command prints the output shown in the document and exits with 0."""
    result = run()
    assert result.exit_code == 0
    assert f"$ rlmm conformance run\n{result.stdout}```" in DOCUMENT.read_text("utf-8")


def test_run_when_a_step_fails_names_it_and_exits_with_one(vectors: Path) -> None:
    """A failed step is one line with its place and both answers, and exit code 1."""
    result = run("--vectors", str(vectors))
    assert result.exit_code == 1
    assert (
        f'FAILED {vectors}: scenario \'one\': step 6 (get): expected "a", actual "b"\n'
        "4 passed, 1 documented differences, 1 failed\n"
    ) in result.stdout
    assert "records" not in result.stdout


def test_run_when_asked_for_json_prints_every_difference(vectors: Path) -> None:
    """The JSON form holds counts by rule and each difference with its place, in one document."""
    result = run("--vectors", str(vectors), "--output", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    place = {"file": str(vectors), "case": "one", "op": "get"}
    assert report == {
        "engine": "python",
        "passed": 4,
        "documented": 1,
        "failed": 1,
        "documented_by_rule": {"cover-lookup": 1},
        "suites": [
            {
                "suite": "scenarios",
                "cases": 1,
                "answers": 6,
                "passed": 4,
                "documented": 1,
                "failed": 1,
                "not_asked": 0,
            }
        ],
        "not_offered": [],
        "differences": [
            place | {"step": 5, "rules": ["cover-lookup"], "expected": None, "actual": "a"}
        ],
        "failures": [place | {"step": 6, "rules": [], "expected": "a", "actual": "b"}],
    }


def test_run_when_given_several_files_runs_them_all(vectors: Path, tmp_path: Path) -> None:
    """Each of several files is a corpus of its own, so names may repeat between files."""
    other = tmp_path / "w.json"
    steps = [add("a", 0, 9), ask("list", [])]
    other.write_text(json.dumps([{"name": "one", "level": "cache", "steps": steps}]))
    result = run("--vectors", str(vectors), "--vectors", str(other))
    assert result.exit_code == 1
    assert f"FAILED {other}: scenario 'one': step 2 (list)" in result.stdout
    assert "5 passed, 1 documented differences, 2 failed" in result.stdout


def test_run_when_given_a_suite_runs_that_alone() -> None:
    """The command runs only the records or the partitioner where the caller names them."""
    done = run("--suite", "partitioner", "--suite", "records", "--output", "json")
    report = json.loads(done.stdout)
    assert [(one["suite"], one["passed"]) for one in report["suites"]] == [
        ("records", 154),
        ("partitioner", 65),
    ]


def test_run_when_files_are_given_for_another_suite_is_a_usage_error(vectors: Path) -> None:
    """The command refuses scenario files that no suite would read."""
    assert run("--vectors", str(vectors), "--suite", "records").exit_code == 2


def test_run_when_given_the_packaged_file_by_path_finds_the_same() -> None:
    """The packaged corpus given by path runs with the same result."""
    path = Path(__file__).parents[2] / "rlmm_conformance" / "data" / PACKAGED
    report = json.loads(run("--vectors", str(path), "--output", "json").stdout)
    assert (report["passed"], report["documented"], report["failed"]) == (964, 5, 0)
