"""The flags that all commands share which read the state: their meaning and their sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from rlmm.cli import main
from rlmm.cli.common import commands as commands_module
from rlmm.cli.common.parameter_types import POSITIVE_SIZE, SIZE, TIME
from rlmm.cli.common.shared_flags import (
    ALONE,
    WITH_VALUE,
    SharedOption,
    flag_of,
    flags_behind,
    is_of_commands,
)
from rlmm.cli.common.source_choice import (
    SourceChoice,
    at_option,
    local_sidecar,
    output_options,
    source_options,
)
from rlmm.cli.printing.settings import PrintSettings
from rlmm.config.key_table import KEYS
from rlmm.inspection.selectors import MomentSelector
from rlmm.state_sources.settings import SourceSettings

if TYPE_CHECKING:
    from click.testing import Result

SEEN: list[SourceChoice] = []
VALUES = {
    "output": ("csv", "tsv"), "wait": ("7s", "9s"), "timeout": ("7s", "9s"),
    "at": ("7", "9"), "partition_count": ("7", "9"),
}  # fmt: skip
NEEDS = {
    "partition_count": ["--log-dirs", "f"], "key_file": ["--cert-file", "c"],
    "command_config": ["--bootstrap-server", "b:1"],
    "command_property": ["--bootstrap-server", "b:1"],
}  # fmt: skip


@click.command("look")
@source_options
@at_option
@output_options
@click.option("--by", "grouping", help="Called otherwise in the program.")
def look(asked: SourceChoice, grouping: str | None) -> None:
    """Look."""
    SEEN.append(asked)
    click.echo(f"by {grouping}")


@click.group("nested")
def nested() -> None:
    """Hold one."""


@nested.command("deep-look")
@source_options
@output_options
def deep_look(asked: SourceChoice) -> None:
    """Look deeper."""
    SEEN.append(asked)


@pytest.fixture(autouse=True)
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [one for one in os.environ if one.startswith("RLMM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(commands_module.SUBCOMMANDS, "look", f"{__name__}:look")
    monkeypatch.setitem(commands_module.SUBCOMMANDS, "nested", f"{__name__}:nested")


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main.cli, list(arguments), env=dict(environ))


def asked(*arguments: str, **environ: str) -> SourceChoice:
    SEEN.clear()
    result = run("look", *arguments, **environ)
    assert result.exit_code == 0, result.output
    return SEEN[0]


def test_source_when_none_is_named_is_the_service_of_this_machine() -> None:
    """Without a source flag the command asks the service of this machine."""
    assert asked().settings.sidecar == str(Path("rlmm-data") / "rlmm.sock")


def test_service_of_this_machine_is_where_its_own_variables_say(tmp_path: Path) -> None:
    """A shell beside the service has the service's variables, as in a container."""
    assert local_sidecar({"RLMM_SIDECAR_UNIX_PATH": "/x.sock"}) == "/x.sock"
    assert local_sidecar({"RLMM_DATA_DIR": str(tmp_path)}) == str(tmp_path / "rlmm.sock")


def test_flags_of_a_source_are_its_settings() -> None:
    """Each flag sets its setting."""
    found = asked(
        "--sidecar", "host:1", "--cluster", "abc", "--token-file", "t", "--tls", "--ca-file", "ca",
        "--cert-file", "cert", "--key-file", "key", "--bootstrap-server", "b:9092",
        "--command-config", "c.properties", "--command-property", "a=b",
        "--command-property", "c=d", "--snapshot-cache", "cache", "--timeout", "5s", "--wait", "1m",
    )  # fmt: skip
    assert found.settings == SourceSettings(
        sidecar="host:1", cluster_id="abc", token_file=Path("t"), is_tls=True, ca_file=Path("ca"),
        certificate_file=Path("cert"), key_file=Path("key"), bootstrap_servers="b:9092",
        command_config=Path("c.properties"), command_properties=("a=b", "c=d"),
        snapshot_cache=Path("cache"), timeout_s=5.0,
    )  # fmt: skip
    assert found.wait_s == 60.0


def test_folders_when_named_are_all_meant() -> None:
    """Repeated on the command line, with colons in between in a variable."""
    by_flags = asked("--log-dirs", "a", "--log-dirs", "b", "--partition-count", "5")
    assert by_flags.settings.log_dirs == (Path("a"), Path("b"))
    assert by_flags.settings.partition_count == 5
    assert asked(RLMM_LOG_DIRS="a:b").settings.log_dirs == (Path("a"), Path("b"))


def test_source_on_the_command_line_stands_above_another_one_of_the_environment() -> None:
    """A flag replaces another source and its flags; the cluster stays, for its own facts."""
    found = asked("--log-dirs", "a", RLMM_SIDECAR="host:1").settings
    assert (found.sidecar, found.log_dirs) == ("", (Path("a"),))
    found = asked("--bootstrap-server", "b:1", RLMM_SIDECAR="host:1").settings
    assert (found.sidecar, found.bootstrap_servers) == ("", "b:1")
    found = asked("--sidecar", "host:1", RLMM_BOOTSTRAP_SERVER="b:1").settings
    assert (found.sidecar, found.bootstrap_servers) == ("host:1", "b:1")
    found = asked("--sidecar", "h:1", RLMM_COMMAND_CONFIG="c", RLMM_PARTITION_COUNT="3").settings
    assert (found.command_config, found.partition_count) == (None, None)


def test_two_sources_at_once_are_refused() -> None:
    """The command refuses two sources, because it cannot choose one."""
    result = run("look", "--sidecar", "host:1", "--log-dirs", "a")
    assert result.exit_code == 2
    assert result.stderr.startswith("rlmm: config: ")
    assert len(result.stderr.splitlines()) == 1


def test_moment_when_named_is_understood() -> None:
    """An offset, or a time relative to the one clock that the command looked at."""
    assert asked("--at", "15").at == MomentSelector(offset=15)
    found = asked("--at", "-1h")
    assert found.at == MomentSelector(time_ms=found.now_ms - 3_600_000)
    assert asked().at is None
    assert run("look", "--at", "soon").exit_code == 2


def test_output_when_nobody_looks_is_json() -> None:
    """Without a terminal the output is one JSON document."""
    assert asked().printing == PrintSettings("json")
    assert asked("--output", "table").printing == PrintSettings("table")


def test_output_on_a_terminal_is_a_table_as_wide_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR, and a terminal that can do nothing, are heeded."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for name, value, is_styled in (
        ("COLUMNS", "132", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.delenv("NO_COLOR", raising=False)
            patch.setenv("TERM", "xterm")
            patch.setenv("COLUMNS", "132")
            patch.setenv(name, value)
            found = PrintSettings.of_terminal(None, is_wide=False, has_headers=True, is_quiet=False)
            assert found == PrintSettings("table", width=132, is_styled=is_styled)


def test_flags_of_printing_arrive() -> None:
    """Each flag of printing, and `--debug`, sets its setting."""
    found = asked("--wide", "--no-headers", "--quiet", "--debug")
    assert found.printing == PrintSettings("json", is_wide=True, has_headers=False, is_quiet=True)
    assert found.is_debug


@pytest.mark.parametrize("name", WITH_VALUE)
def test_variable_of_a_shared_flag_that_takes_a_value_counts_as_the_flag(name: str) -> None:
    """`RLMM_SIDECAR` for all commands, `RLMM_LOOK_SIDECAR` for this one, which counts more."""
    value, other = VALUES.get(name, ("x", "y"))
    needs = NEEDS.get(name, [])
    variable = name.upper()
    by_flag = asked(flag_of(name), value, *needs)
    assert _same(asked(*needs, **{f"RLMM_{variable}": value}), by_flag)
    both = {f"RLMM_{variable}": other, f"RLMM_LOOK_{variable}": value}
    assert _same(asked(*needs, **both), by_flag)
    assert not _same(asked(flag_of(name), other, *needs, **both), by_flag)


@pytest.mark.parametrize("name", ALONE)
def test_variable_of_a_shared_flag_that_stands_alone_counts_as_the_flag(name: str) -> None:
    """`RLMM_WIDE=1`."""
    by_flag = asked(flag_of(name))
    assert _same(asked(**{f"RLMM_{name.upper()}": "1"}), by_flag)
    assert _same(asked(**{f"RLMM_LOOK_{name.upper()}": "true"}), by_flag)
    assert not _same(asked(**{f"RLMM_{name.upper()}": "0"}), by_flag)


def test_variable_of_a_commands_own_flag_is_called_as_the_flag_is() -> None:
    """The variable has the name of the flag, not the name of the parameter in the code."""
    assert run("look", RLMM_LOOK_BY="topic").stdout == "by topic\n"
    assert run("look", RLMM_LOOK_GROUPING="topic").stdout == "by None\n"


def test_variable_of_a_command_below_another_has_both_names() -> None:
    """Dashes are underscores."""
    SEEN.clear()
    assert run("nested", "deep-look", RLMM_NESTED_DEEP_LOOK_OUTPUT="yaml").exit_code == 0
    assert SEEN[0].printing.output == "yaml"


def test_shared_flags_are_those_of_the_list_and_of_nothing_else() -> None:
    """Commands take exactly the shared flags on the list, with or without a value as listed."""
    flags = {one.name: one for one in look.params if isinstance(one, SharedOption)}
    assert set(flags) == {*WITH_VALUE, *ALONE}
    for name in ALONE:
        assert flags[name].is_flag
    for name in WITH_VALUE:
        assert not flags[name].is_flag


@pytest.mark.parametrize(
    "words", ["--sidecar h:1 --wide nested deep-look", "--sidecar=h:1 nested deep-look --wide"]
)
def test_shared_flags_are_taken_before_the_command_as_well(words: str) -> None:
    """Shared flags may stand before the command, as in Kafka's tools."""
    SEEN.clear()
    assert run(*words.split()).exit_code == 0
    assert (SEEN[0].settings.sidecar, SEEN[0].printing.is_wide) == ("h:1", True)


def test_own_flags_come_first_in_help() -> None:
    """The help lists a command's own flags above the shared ones."""
    lines = run("look", "--help").stdout
    assert lines.index("--by") < lines.index("--sidecar") < lines.index("--at")
    assert lines.index("--at") < lines.index("--output")


def test_configuration_of_a_service_passes_over_variables_of_commands() -> None:
    """A container has both: neither is a mistake in the other."""
    result = run(
        "config", "show", "--output", "json",
        RLMM_SIDECAR="host:1", RLMM_OUTPUT="csv", RLMM_STATUS_WATCH="1", RLMM_TIER_RUN_STORE="x",
        RLMM_DEBUG="1",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    result = run("config", "show", RLMM_SNAPSHOT_INTERVALL_MS="1")
    assert result.exit_code == 2
    assert "RLMM_SNAPSHOT_INTERVAL_MS" in result.stderr


def test_no_variable_of_a_command_is_one_of_the_configuration() -> None:
    """No variable of a command is one of the configuration."""
    commands = commands_module.COMMANDS_OF_VARIABLES
    assert [key.env for key in KEYS.values() if is_of_commands(key.env, commands)] == []


def _same(one: SourceChoice, other: SourceChoice) -> bool:
    return (one.settings, one.printing, one.at, one.wait_s, one.is_debug) == (
        other.settings, other.printing, other.at, other.wait_s, other.is_debug,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("12", 12),
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        ("1.5GiB", 3 * 2**29),
        ("2TiB", 2**41),
    ],
)
def test_size_when_written_with_a_unit_then_is_bytes(text: str, size_bytes: int) -> None:
    """Decimal units count in thousands, those with an i in 1024s."""
    assert SIZE.convert(text, None, None) == size_bytes


@pytest.mark.parametrize(
    ("text", "time_ms"), [("250ms", 250), ("30s", 30_000), ("1.5h", 5_400_000), ("7d", 604_800_000)]
)
def test_time_when_written_with_a_unit_then_is_milliseconds(text: str, time_ms: int) -> None:
    """A time needs a unit, and the parser returns milliseconds."""
    assert TIME.convert(text, None, None) == time_ms


@pytest.mark.parametrize("text", ["", "-1", "5 parsecs", "1e3MB", "MB", "9" * 400, "nan", "inf"])
def test_size_when_it_is_none_then_is_refused(text: str) -> None:
    """The parser refuses texts that are no size, and sizes out of range."""
    with pytest.raises(click.BadParameter):
        SIZE.convert(text, None, None)


def test_amounts_when_they_lack_a_unit_or_are_nothing_then_are_refused() -> None:
    """A time without a unit, and nothing where something is needed."""
    with pytest.raises(click.BadParameter, match="30s, 12h or 7d is one"):
        TIME.convert("7", None, None)
    with pytest.raises(click.BadParameter, match="too small"):
        POSITIVE_SIZE.convert("0", None, None)


COMMANDS = ("status", "segments", "support-bundle")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("status", "status"),
        ("--sidecar x status", "status --sidecar x"),
        ("--sidecar=x --wide status --at 5", "status --at 5 --sidecar=x --wide"),
        ("--debug --quiet status", "--debug status --quiet"),
        ("--log-dirs a --log-dirs b segments list", "segments list --log-dirs a --log-dirs b"),
        ("--output json segments describe -- -abc", "segments describe --output json -- -abc"),
        ("--sidecar status segments list", "segments list --sidecar status"),
        ("--help", "--help"),
        ("--version status", "--version status"),
        ("--sidecar x", "--sidecar x"),
        ("--sidecar", "--sidecar"),
        ("--unknown status", "--unknown status"),
        ("", ""),
    ],
)
def test_shared_flags_before_a_command_stand_behind_it(words: str, expected: str) -> None:
    """Shared flags move with their values behind the command, and a double dash ends them."""
    assert " ".join(flags_behind(words.split(), COMMANDS)) == expected


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("RLMM_SIDECAR", True),
        ("RLMM_BOOTSTRAP_SERVER", True),
        ("RLMM_DEBUG", True),
        ("RLMM_STATUS_WATCH", True),
        ("RLMM_SUPPORT_BUNDLE_OUTPUT", True),
        ("RLMM_STATUSES", False),
        ("RLMM_SIDECAR_LISTEN", False),
        ("RLMM_MODE", False),
        ("SIDECAR", False),
    ],
)
def test_variable_of_a_flag_is_told_from_others(variable: str, expected: bool) -> None:
    """A shared flag has one variable for all commands, and an own flag has the command's prefix."""
    assert is_of_commands(variable, COMMANDS) is expected
