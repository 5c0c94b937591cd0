"""The judge of capabilities: a row that was not shown turns any run red."""

import pytest

from tests.support.repository.capabilities import Capability, read_capabilities

pytestmark = pytest.mark.slow

HEAD = "| capability | command or call | test |\n| --- | --- | --- |\n"
TESTS = """
import pytest

def test_good(): pass
def test_bad(): assert False
def test_skipped(): pytest.skip("no")
@pytest.mark.parametrize("case", [1, 2])
def test_table(case): pass
@pytest.mark.parametrize("case", [1, 2])
def test_half(case): assert case == 1
@pytest.fixture
def broken():
    yield
    raise OSError
def test_teardown(broken): pass
"""


def run(pytester: pytest.Pytester, name: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_sample=TESTS)
    pytester.makefile(".md", page=f"{HEAD}| Answers | `ask` | `test_sample.py::{name}` |\n")
    return pytester.runpytest(
        "-p",
        "tests.support.repository.capabilities",
        "--capabilities=page.md",
        "-p",
        "no:randomly",
        "-p",
        "no:asyncio",
        *options,
    )


@pytest.mark.parametrize("name", ["test_good", "test_table"])
def test_run_when_the_row_was_shown_is_green(pytester: pytest.Pytester, name: str) -> None:
    """A row is shown by a test that passed, or by a table of cases that all passed."""
    result = run(pytester, name, "-k", name)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*capabilities not shown*")


@pytest.mark.parametrize(
    ("name", "code"),
    [("test_table", pytest.ExitCode.OK), ("test_gone", pytest.ExitCode.TESTS_FAILED)],
)
def test_run_when_distributed_is_judged_where_reports_come_together(
    pytester: pytest.Pytester, name: str, code: pytest.ExitCode
) -> None:
    """Two workers give the same verdict as one process, though each ran only part of the tests."""
    assert run(pytester, name, "-n", "2", "-k", "test_good or test_table").ret == code


@pytest.mark.parametrize(
    ("name", "selected"),
    [
        pytest.param("test_good", "test_table", id="not-run"),
        pytest.param("test_skipped", "test_good or test_skipped", id="skipped"),
        pytest.param("test_gone", "test_good", id="does-not-exist"),
        pytest.param("test_bad", "test_bad", id="failed"),
        pytest.param("test_half", "test_half", id="one-case-failed"),
        pytest.param("test_teardown", "test_teardown", id="failed-afterwards"),
    ],
)
def test_run_when_the_row_was_not_shown_is_red(
    pytester: pytest.Pytester, name: str, selected: str
) -> None:
    """A test that did not run, was skipped or failed turns the run red."""
    result = run(pytester, name, "-k", selected)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*capabilities not shown*", f"Answers: test_sample.py::{name} *"])


def test_run_when_the_page_is_missing_is_refused(pytester: pytest.Pytester) -> None:
    """A page that cannot be read stops the run before any test."""
    result = pytester.runpytest(
        "-p", "tests.support.repository.capabilities", "-p", "no:asyncio", "--capabilities=gone.md"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*gone.md*"])


def test_read_capabilities_gives_the_rows_in_order() -> None:
    """A row may name several tests, and an escaped bar does not end a cell."""
    page = f"# Page\n\n{HEAD}| A \\| B | `x` | `t.py::a`, `t.py::b` |\n"
    assert read_capabilities(page) == [Capability("A \\| B", "`x`", ("t.py::a", "t.py::b"))]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("no table\n", id="no-table"),
        pytest.param("| a | b | c |\n| --- | --- | --- |\n", id="other-columns"),
        pytest.param(HEAD + "| A | `x` | later |\n", id="no-test"),
        pytest.param(HEAD + "| A | `t.py::a` |\n", id="cell-missing"),
    ],
)
def test_read_capabilities_when_a_row_proves_nothing_is_refused(page: str) -> None:
    """A page without the table, or with a row that names no test, is an error."""
    with pytest.raises(ValueError, match=r"table|row"):
        read_capabilities(page)
