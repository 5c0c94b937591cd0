"""The documents agree with the code: commands, options, error codes, versions, capabilities."""

import ast
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
import pytest

import rlmm
import rlmm.errors
from rlmm.cli.common.commands import SUBCOMMANDS
from rlmm.config.key_table import KEYS
from rlmm.http.routes import ROUTES
from rlmm.metrics.table import METRICS
from tests.support.repository import documented_commands, rules, tree
from tests.support.repository.capabilities import read_capabilities
from tools import documents

THROUGH_THE_SOCKET = ("tests/integration/sidecar/", "tests/integration/broker_adapter/")
CHANGE_KINDS = ["Security", "Removed", "Deprecated", "Added", "Changed", "Fixed"]


def option_names() -> list[str]:
    return sorted(
        {
            name
            for context in documents.commands()
            for parameter in context.command.get_params(context)
            if isinstance(parameter, click.Option) and not parameter.hidden
            for name in parameter.opts
        }
    )


def error_codes() -> list[str]:
    return sorted({error.code for error in documents.errors()})


# What the code knows by name, and the page that has to know it too.
DOCUMENTED: dict[str, tuple[Callable[[], list[str]], str, str]] = {
    "commands": (lambda: [one.command_path for one in documents.commands()], "cli.md", "## `{}`"),
    "options": (option_names, "cli.md", "{}"),
    "settings": (
        lambda: [
            name
            for key in KEYS.values()
            for name in (key.path, key.env, *(() if key.is_secret else (key.flag,)))
        ],
        "configuration.md",
        "`{}`",
    ),
    "error codes": (error_codes, "errors.md", "| `{}` |"),
    "metrics": (lambda: [metric.name for metric in METRICS], "metrics.md", "| `{}` |"),
    "paths": (lambda: [f"{one.method} {one.path}" for one in ROUTES], "http.md", "| `{}` |"),
}


@pytest.mark.parametrize("kind", DOCUMENTED)
def test_everything_with_a_name_is_documented(kind: str) -> None:
    """Every command, option, setting, error code, metric and path stands on its page."""
    names, page, form = DOCUMENTED[kind]
    text = tree.read(Path("docs", page))
    assert names()
    assert not [name for name in names() if form.format(name) not in text]


def test_every_setting_has_a_reason() -> None:
    """The docstring of each setting has its purpose and the reason of its default."""
    assert not [key.path for key in KEYS.values() if not key.reason]


def test_error_codes_are_distinct() -> None:
    """No two errors share a code, so that a code on the wire says which one it was."""
    assert len(error_codes()) == len(list(documents.errors()))


def test_changelog_and_version_agree() -> None:
    """The newest version of the changelog is the version of the code, and versions only rise."""
    headings = re.findall(
        r"^## (\d+)\.(\d+)\.(\d+)\b", tree.read(Path("CHANGELOG.md")), re.MULTILINE
    )
    versions = [tuple(map(int, heading)) for heading in headings]
    assert versions, "the changelog names no version"
    assert ".".join(map(str, versions[0])) == rlmm.__version__
    assert versions == sorted(set(versions), reverse=True)


def test_changes_stand_in_the_order_that_matters_to_an_operator() -> None:
    """Within a version, kinds of changes are known ones, in their order, each with one heading."""
    for section in re.split(r"^## ", tree.read(Path("CHANGELOG.md")), flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert kinds == sorted(set(kinds), key=CHANGE_KINDS.index)


def missing_tests(named: Iterable[str]) -> list[str]:
    """Return those of the tests, each `FILE.py::NAME`, that do not exist."""
    missing = []
    for test in sorted(named):
        file, _, name = test.partition("::")
        path = Path(file)
        if path not in tree.files() or name not in {
            function.name for function in rules.functions(tree.parse(path))
        }:
            missing.append(test)
    return missing


def test_capabilities_name_tests_that_exist() -> None:
    """Every row of the table of capabilities names tests that are there."""
    capabilities = read_capabilities(tree.read(Path("docs/capabilities.md")))
    named = {test for capability in capabilities for test in capability.tests}
    assert named
    assert not missing_tests(named)


def test_architecture_names_files_that_exist() -> None:
    """Every path in the map and in the invariants is there."""
    named = re.findall(r"`((?:\w+/)+[\w.]*)`", tree.read(Path("ARCHITECTURE.md")))
    assert named
    assert not [path for path in named if not (tree.ROOT / path).exists()]


def test_architecture_names_classes_and_methods_that_exist() -> None:
    """Every `Class` and `Class.method` of the map and the walks is there."""
    defined: dict[str, set[str]] = {}
    for path in tree.python_files(*tree.PACKAGES):
        for node in ast.walk(tree.parse(path)):
            if isinstance(node, ast.ClassDef):
                inside = set(re.findall(r"\w+", " ".join(map(ast.unparse, node.bases))))
                inside.update(one.name for one in node.body if isinstance(one, rules.Function))
                defined.setdefault(node.name, set()).update(inside)
    text = tree.read(Path("ARCHITECTURE.md"))
    named = re.findall(r"`(?:[a-z_]+\.)*([A-Z]\w*[a-z]\w*)(?:\.(\w+))?`", text)

    def methods(name: str) -> set[str]:
        inside = defined.get(name, set())
        return inside.union(*(methods(base) for base in inside & defined.keys()))

    assert named
    assert not [
        (name, method)
        for name, method in named
        if name not in defined or (method and method not in methods(name))
    ]


def test_failures_that_clients_meet_are_shown_through_the_socket_by_tests_that_exist() -> None:
    """Each row's first test goes through the socket, or the row says why it does not."""
    rows = re.findall(
        r"^\| F(\d+) \| .+? \| (.+?) \| (`.+`) \|$",
        tree.read(Path("docs/failure-scenarios.md")),
        re.MULTILINE,
    )
    assert [int(number) for number, _, _ in rows] == [
        *range(20, 35),
        *range(50, 62),
        *range(85, 102),
    ]
    shown = {number: re.findall(r"`([^`]+\.py::[^`]+)`", tests) for number, _, tests in rows}
    assert not missing_tests(test for tests in shown.values() for test in tests)
    for number, told, _ in rows:
        is_by_socket = shown[number][0].startswith(THROUGH_THE_SOCKET)
        assert is_by_socket != ("Not through the socket: " in told), f"F{number}"


def test_failures_that_operators_are_shown_name_tests_and_commands_that_exist() -> None:
    """Each has the command that shows it, and a test that has its number in its name."""
    rows = re.findall(
        r"^\| (?:`rlmm ([a-z]+)`|all) \| F(\d+) \| .+ \| (`[^|]+`) \|$",
        tree.read(Path("docs/failure-scenarios.md")),
        re.MULTILINE,
    )
    numbers = [int(number) for _, number, _ in rows]
    assert numbers == [44, 57, 65, 70, 78, 79, 80, 99, 102, 114, 116, 117]
    assert {command for command, _, _ in rows if command} <= set(SUBCOMMANDS)
    for _, number, tests in rows:
        named = re.findall(r"`([^`]+\.py::[^`]+)`", tests)
        assert named, f"F{number}"
        assert all(f"_f{number}_" in test for test in named)
        assert not missing_tests(named)


def test_failures_on_a_stock_broker_name_tests_that_exist() -> None:
    """Each has a test on a real broker that has its number in its name."""
    rows = re.findall(
        r"^\| (?:copying|reading|deleting) \| F(\d+) \| .+ \| `([^|`]+)` \|$",
        tree.read(Path("docs/failure-scenarios.md")),
        re.MULTILINE,
    )
    wanted = {33, 57, 60, 102, 104, 106, 108, 110, 111, 112, 116}
    assert wanted <= {int(number) for number, _ in rows}
    assert all(f"_f{number}_" in test and "_kafka.py::" in test for number, test in rows)
    assert not missing_tests(test for _, test in rows)


def test_error_tree_that_is_drawn_names_every_error() -> None:
    """The picture at the head of the error module shows each class once, under its parent."""
    drawn = re.findall(r"^ {4}[│ ├└─]*(\w+)", rlmm.errors.__doc__ or "", re.MULTILINE)
    assert drawn == [error.__name__ for error in documents.errors()]


def test_size_of_the_installation_is_told_alike() -> None:
    """The first page and the script that installs say the same of room and time."""
    told = [
        re.search(r"about ([\d.]+ [MG]B)[^,]*, ([a-z ]*minutes)", tree.read(Path(page)))
        for page in ("README.md", "tools/setup.sh")
    ]
    assert told[0] is not None
    assert told[1] is not None
    assert told[0].groups() == told[1].groups()


@pytest.mark.parametrize("picture", sorted((tree.ROOT / "docs/pictures").glob("*.svg")), ids=str)
def test_picture_when_shown_without_css_variables_then_has_its_colours(picture: Path) -> None:
    """A picture names its colours itself: package indexes and editors resolve no variables."""
    text = picture.read_text(encoding="utf-8")
    assert "var(--" not in text.partition("</style>")[2]
    assert re.search(r"fill: #[0-9a-f]{6}", text)


def test_ports_in_documents_when_named_then_are_those_of_the_settings() -> None:
    """Every page has one port for frames, 7404, and one for HTTP, 7405."""
    place = re.compile(r"\b(?:rlmm|rlmm\.example|0\.0\.0\.0):(\d{4,5})\b")
    named = {
        (path.name, port)
        for path in (tree.ROOT / "README.md", *(tree.ROOT / "docs").glob("*.md"))
        for port in place.findall(path.read_text(encoding="utf-8"))
    }
    assert {port for _, port in named} <= {"7404", "7405"}, named


def test_blocks_when_not_carried_out_by_their_page_then_have_a_reason() -> None:
    """A block that another test carries out, or none, is listed with that test or the reason."""
    blocks = documented_commands.blocks()
    for (page, begin), why in documented_commands.ELSEWHERE.items():
        assert any(one.page == page and one.first_line.startswith(begin) for one in blocks), begin
        assert not why.startswith("tests/") or (tree.ROOT / why).is_file(), why


def test_blocks_when_carried_out_then_have_commands_or_a_language_that_a_test_runs() -> None:
    """Every other block has commands, or is in a language that the test of the documents runs."""
    left = [
        one.place
        for one in documented_commands.blocks()
        if not documented_commands.reason_elsewhere(one)
        and not one.commands
        and one.language not in {"python", "toml", "sql"}
    ]
    assert not left
