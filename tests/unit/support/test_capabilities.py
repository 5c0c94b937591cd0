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


PLUGIN = ("-p", "tests.support.repository.capabilities", "-p", "no:asyncio")


@pytest.mark.parametrize(
    ("name", "selected", "is_shown"),
    [
        pytest.param("test_good", "test_good", True, id="passed"),
        pytest.param("test_table", "test_table", True, id="all-cases-passed"),
        pytest.param("test_good", "test_table", False, id="not-run"),
        pytest.param("test_skipped", "test_good or test_skipped", False, id="skipped"),
        pytest.param("test_gone", "test_good", False, id="does-not-exist"),
        pytest.param("test_bad", "test_bad", False, id="failed"),
        pytest.param("test_half", "test_half", False, id="one-case-failed"),
        pytest.param("test_teardown", "test_teardown", False, id="failed-afterwards"),
        pytest.param("test_table", "test_good or test_table -n 2", True, id="distributed"),
        pytest.param("test_gone", "test_good or test_table -n 2", False, id="distributed-gone"),
    ],
)
def test_run_when_the_row_was_not_shown_is_red(
    pytester: pytest.Pytester, name: str, selected: str, is_shown: bool
) -> None:
    """A row needs a test that ran and passed with all its cases, on any number of workers."""
    pytester.makepyfile(test_sample=TESTS)
    pytester.makefile(".md", page=f"{HEAD}| Answers | `ask` | `test_sample.py::{name}` |\n")
    chosen, *workers = selected.split(" -n ")
    options = ["-k", chosen, *(["-n", *workers] if workers else [])]
    run = pytester.runpytest(*PLUGIN, "--capabilities=page.md", "-p", "no:randomly", *options)
    if is_shown:
        assert run.ret == pytest.ExitCode.OK
        run.stdout.no_fnmatch_line("*capabilities not shown*")
    else:
        assert run.ret == pytest.ExitCode.TESTS_FAILED
        lines = ["*capabilities not shown*", f"Answers: test_sample.py::{name} *"]
        run.stdout.fnmatch_lines(lines)


def test_run_when_the_page_is_missing_is_refused(pytester: pytest.Pytester) -> None:
    """A page that cannot be read stops the run before any test."""
    result = pytester.runpytest(*PLUGIN, "--capabilities=gone.md")
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
