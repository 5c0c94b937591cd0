"""The root of the command line: version, help, completion, and errors that become exit codes."""

import subprocess
import sys
from importlib.machinery import BuiltinImporter

import click
import pytest
from click.testing import CliRunner

import rlmm
from rlmm.cli import main
from rlmm.cli.common import commands as commands_table
from rlmm.errors import ConfigError, EngineFailed, NotReady, RlmmError


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """A subcommand `fail` that raises the one exception of the list."""
    raised: list[BaseException] = []

    @click.command()
    def fail() -> None:
        raise raised[0]

    monkeypatch.setattr(sys.modules[__name__], "fail_command", fail, raising=False)
    monkeypatch.setitem(commands_table.SUBCOMMANDS, "fail", f"{__name__}:fail_command")
    return raised


def test_version_is_printed_when_asked() -> None:
    """`--version` prints the name and the version that stands in the package."""
    result = CliRunner().invoke(main.cli, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"rlmm {rlmm.__version__}\n")


def test_version_when_asked_imports_no_subcommand() -> None:
    """The version is quick: no subcommand is imported for it."""
    loaded = {
        name for name in sys.modules if name in {"rlmm_demo.command", "rlmm_conformance.command"}
    }
    CliRunner().invoke(main.cli, ["--version"])
    after = {
        name for name in sys.modules if name in {"rlmm_demo.command", "rlmm_conformance.command"}
    }
    assert after == loaded


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


def test_error_when_not_ours_is_left_alone(failing: list[BaseException]) -> None:
    """A bug keeps its traceback: only errors raised on purpose are turned into a line."""
    failing.append(ZeroDivisionError())
    assert isinstance(CliRunner().invoke(main.cli, ["fail"]).exception, ZeroDivisionError)


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


def test_missing_module_of_ours_is_left_alone(failing: list[BaseException]) -> None:
    """A module that no installation brings is a bug, and keeps its traceback."""
    failing.append(ModuleNotFoundError(name="rlmm_demo.nowhere"))
    result = CliRunner().invoke(main.cli, ["fail"])
    assert isinstance(result.exception, ModuleNotFoundError)


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_root_flags_import_no_library_of_an_extra(flag: str) -> None:
    """Version and help stay quick: they import no command, no chart library, no Spark."""
    names = ("rlmm_demo", "rlmm_conformance", "spark_tiering", "matplotlib", "pyspark", "boto3")
    program = (
        "import sys; from rlmm.cli.main import cli; cli([sys.argv[1]], standalone_mode=False); "
        f"print(*(name for name in {names} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, flag], capture_output=True, text=True, check=True
    )
    assert done.stderr == "\n"


def test_file_that_cannot_be_opened_is_wrong_usage(failing: list[BaseException]) -> None:
    """A named file that cannot be opened ends with 2, never with the findings' code."""
    failing.append(click.FileError("x.json", "gone"))
    assert CliRunner().invoke(main.cli, ["fail"]).exit_code == 2


@pytest.mark.parametrize("arguments", [["nothing"], ["--nothing"]], ids=["command", "option"])
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    """An unknown command or option ends with 2."""
    assert CliRunner().invoke(main.cli, arguments).exit_code == 2


def test_subcommands_are_listed_without_being_run() -> None:
    """Every subcommand is found under its name and has a line of help."""
    context = click.Context(main.cli)
    for name in main.cli.list_commands(context):
        command = main.cli.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_given_when_a_shell_asks(shell: str) -> None:
    """The variable that a shell sets gets the completion script of that shell."""
    result = CliRunner().invoke(
        main.cli, prog_name="rlmm", env={"_RLMM_COMPLETE": f"{shell}_source"}
    )
    assert result.exit_code == 0
    assert "rlmm" in result.stdout


def test_interruption_ends_any_command_with_130(failing: list[BaseException]) -> None:
    """Ctrl-C prints nothing and gives an exit code of its own."""
    failing.append(KeyboardInterrupt())
    result = CliRunner().invoke(main.cli, ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "")


def test_error_when_debugging_shows_its_trace_before_its_line(
    failing: list[BaseException],
) -> None:
    """`--debug` shows the traceback for commands without a source, too."""
    failing.append(NotReady("3 records to go"))
    result = CliRunner().invoke(main.cli, ["--debug", "fail"])
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1] == "rlmm: not-ready: 3 records to go"
    assert result.exit_code == 4
