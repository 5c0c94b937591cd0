"""The root of the command line: version, quick help, completion, and exit codes of errors."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import BuiltinImporter

import click
import pytest
from click import Context
from click.testing import CliRunner

import rlmm
from rlmm.base import native_core
from rlmm.cli import main
from rlmm.cli.common import commands as commands_module
from rlmm.errors import ConfigError, EngineFailed, NotReady, RlmmError


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """A subcommand `fail` that raises the one exception of the list."""
    raised: list[BaseException] = []

    @click.command()
    def fail() -> None:
        raise raised[0]

    monkeypatch.setattr(sys.modules[__name__], "fail_command", fail, raising=False)
    monkeypatch.setitem(commands_module.SUBCOMMANDS, "fail", f"{__name__}:fail_command")
    return raised


@pytest.fixture
def engine_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a command chooses from the process of the tests."""
    monkeypatch.setattr(native_core, "_PROCESS", native_core._Process())


@pytest.mark.usefixtures("engine_of_its_own")
def test_version_is_printed_when_asked() -> None:
    """`--version` prints the version that stands in the package, and what holds the state."""
    version = rlmm.__version__
    asked = CliRunner().invoke(main.cli, ["--version"], env={"RLMM_ENGINE": "python"})
    assert (asked.exit_code, asked.stdout) == (0, f"rlmm {version}, engine python {version}\n")


@pytest.mark.usefixtures("engine_of_its_own")
def test_version_when_the_engine_cannot_be_had_then_is_still_printed() -> None:
    """A wrong `RLMM_ENGINE` is a configuration error of `--version` and of every command."""
    asked = CliRunner().invoke(main.cli, ["--version"], env={"RLMM_ENGINE": "rust"})
    words = "rlmm: config: RLMM_ENGINE must be one of auto, python, native, got 'rust'\n"
    assert (asked.exit_code, asked.stdout) == (2, f"rlmm {rlmm.__version__}\n")
    assert asked.stderr == words
    asked = CliRunner().invoke(main.cli, ["config", "show"], env={"RLMM_ENGINE": "rust"})
    assert (asked.exit_code, asked.stdout, asked.stderr) == (2, "", words)


HOSTILE = "\x1b]0;pwned\x07\x1b[31mEVIL\x9b31m\u202egnp"


@pytest.mark.parametrize("flags", [(), ("--debug",)], ids=["line", "traceback"])
def test_error_when_its_words_move_the_cursor_then_escaped(
    failing: list[BaseException], flags: tuple[str, ...]
) -> None:
    """The words of a service reach the terminal without an escape, in the line and traceback."""
    failing.append(ConfigError(f"the service says: {HOSTILE}"))
    result = CliRunner().invoke(main.cli, [*flags, "fail"])
    assert "\\x1b]0;pwned\\x07\\x1b[31mEVIL\\x9b31m\\x202egnp" in result.stderr
    assert [letter for letter in "\x1b\x07\x9b\u202e" if letter in result.stderr] == []


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (ConfigError("no such file:\n  x.json"), 2, "rlmm: config: no such file: x.json\n"),
        (EngineFailed("hung"), 3, "rlmm: engine-failed: hung\n"),
        (NotReady("3 records to go"), 4, "rlmm: not-ready: 3 records to go\n"),
    ],
    ids=["configuration", "connection", "not-ready"],
)
def test_error_leaves_as_one_line_and_its_exit_code(
    failing: list[BaseException], error: RlmmError, exit_code: int, line: str
) -> None:
    """An error of ours is one line on standard error and the exit code that its class names."""
    failing.append(error)
    result = CliRunner().invoke(main.cli, ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", line)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("matplotlib", "matplotlib, which is not installed: pip install 'rlmm[demo]'"),
        ("pyspark", "pyspark, which is not installed: pip install 'rlmm[spark]'"),
        ("boto3", "boto3, which is not installed: pip install 'rlmm[s3]'"),
        ("zstandard", "zstandard, which is not installed: pip install 'rlmm[tiering]'"),
        ("rlmm_conformance", "rlmm_conformance, which is not installed: pip install 'rlmm'"),
    ],
    ids=["matplotlib", "pyspark", "boto3", "zstandard", "own package"],
)
def test_missing_library_leaves_as_one_line_that_names_the_extra(
    failing: list[BaseException], module: str, line: str
) -> None:
    """A command whose library is not installed says in one line how to install it."""
    failing.append(ModuleNotFoundError(name=module))
    result = CliRunner().invoke(main.cli, ["fail"])
    assert result.stderr == f"rlmm: engine-unfit: this command needs {line}\n"
    assert result.exit_code == 3


@pytest.mark.parametrize("command", ["demo", "conformance"])
def test_subcommand_when_its_package_is_missing_leaves_as_one_line(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """An installation of the service alone names the package that it lacks."""
    package = f"rlmm_{command}"
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [BuiltinImporter])
    result = CliRunner().invoke(main.cli, [command])
    assert f"this command needs {package}, which is not installed: pip install" in result.stderr
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 1)


def test_interrupt_when_it_comes_twice_then_ends_without_a_traceback(
    failing: list[BaseException],
) -> None:
    """A second Ctrl-C, which the event loop meets while it ends, is an interrupt as well."""
    failing.append(RuntimeError("Event loop stopped before Future completed."))
    failing[0].__context__ = KeyboardInterrupt()
    result = CliRunner().invoke(main.cli, ["fail"])
    assert (result.exit_code, result.output) == (130, "")
    failing[0] = RuntimeError("a fault of ours")
    assert CliRunner().invoke(main.cli, ["fail"]).exception is failing[0]


def test_missing_module_of_ours_is_left_alone(failing: list[BaseException]) -> None:
    """A module that no installation brings is a bug, and keeps its traceback."""
    failing.append(ModuleNotFoundError(name="rlmm_demo.nowhere"))
    result = CliRunner().invoke(main.cli, ["fail"])
    assert isinstance(result.exception, ModuleNotFoundError)


@pytest.mark.parametrize(
    "word", ["nothing", "--nothing", "fail"], ids=["command", "option", "file"]
)
def test_wrong_usage_ends_with_2(failing: list[BaseException], word: str) -> None:
    """An unknown command or option, and a named file that cannot be opened, end with 2."""
    failing.append(click.FileError("x.json", "gone"))
    assert CliRunner().invoke(main.cli, [word]).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_given_when_a_shell_asks(shell: str) -> None:
    """The variable that a shell sets gets the completion script of that shell."""
    result = CliRunner().invoke(
        main.cli, prog_name="rlmm", env={"_RLMM_COMPLETE": f"{shell}_source"}
    )
    assert result.exit_code == 0
    assert "rlmm" in result.stdout


def test_error_when_debugging_shows_its_trace_before_its_line(failing: list[BaseException]) -> None:
    """`--debug` shows the traceback for commands without a source, too."""
    failing.append(NotReady("3 records to go"))
    result = CliRunner().invoke(main.cli, ["--debug", "fail"])
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1] == "rlmm: not-ready: 3 records to go"
    assert result.exit_code == 4


HEAVY = {
    "aiohttp", "aiokafka", "asyncio", "boto3", "cramjam", "msgpack", "rich", "structlog", "pyspark",
    "rlmm.metadata.python_shard",
}  # fmt: skip
LINE_MAX = 86
"""Characters of a command's line."""
_SAYS_WHAT_IS_IMPORTED = """
import sys
from rlmm.cli.main import main
try:
    main()
except SystemExit as end:
    print("\\n".join(sorted(sys.modules)), file=sys.stderr)
    sys.exit(end.code)
"""


def imported(*words: str, **environ: str) -> tuple[str, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _SAYS_WHAT_IS_IMPORTED, *words],
        capture_output=True, text=True, check=True, env={**os.environ, **environ}, timeout=60,
    )  # fmt: skip
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"]], ids=["help", "version"])
def test_root_when_asked_for_help_imports_no_command_and_nothing_heavy(words: list[str]) -> None:
    """The list of commands has its help lines without an import of the commands."""
    text, modules = imported(*words)
    assert text
    libraries = {"rlmm_demo", "rlmm_conformance", "spark_tiering", "matplotlib"}
    assert not (HEAVY | libraries) & modules
    commands = {target.partition(":")[0] for target in commands_module.SUBCOMMANDS.values()}
    assert not commands & modules


@pytest.mark.parametrize(
    "words", [["status"], ["segments"], ["segments", "list"], ["segments", "find"]]
)
def test_command_when_asked_for_help_imports_nothing_heavy(words: list[str]) -> None:
    """`--help` imports no heavy module; a command imports them when it runs."""
    text, modules = imported(*words, "--help")
    assert "Usage: " in text
    assert not HEAVY & modules


@pytest.mark.parametrize(
    ("shell", "index", "offered"),
    [("bash", "4", "plain,jsonl"), ("zsh", "4", "plain\njsonl\n"), ("fish", "", "plain,jsonl")],
)
def test_completion_when_a_shell_asks_offers_values_and_imports_nothing_heavy(
    shell: str, index: str, offered: str
) -> None:
    """Completion is light, because each press of the tab key starts the program."""
    text, modules = imported(
        _RLMM_COMPLETE=f"{shell}_complete",
        COMP_WORDS="rlmm segments list --output ",
        COMP_CWORD=index,
    )
    assert offered in text
    assert not HEAVY & modules


def test_asking_a_service_imports_no_client_of_kafka_and_no_configuration() -> None:
    """A command that asks a service imports no Kafka client, to answer within a second."""
    done = subprocess.run(
        [sys.executable, "-c", "import rlmm.cli.common.query_command, sys; "
         "import rlmm.state_sources.sidecar_source; print(*sys.modules)"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    heavy = {"rich", "aiohttp", "structlog", "rlmm.log.kafka.kafka_log"}
    assert not heavy & set(done.stdout.split())


def test_line_of_each_command_is_what_the_command_says_of_itself() -> None:
    """The table of lines that keeps help quick is as the commands are."""
    context = Context(main.cli)
    lines = {}
    for name in commands_module.SUBCOMMANDS:
        command = main.cli.get_command(context, name)
        assert command is not None
        lines[name] = command.get_short_help_str(limit=LINE_MAX)
    assert lines == commands_module.SHORT_HELP
