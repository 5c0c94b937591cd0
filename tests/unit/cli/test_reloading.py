"""`rlmm config`, and the reload of a configuration while the service runs."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, cast

import click
import pytest
from click.testing import CliRunner

from rlmm.base.threads import left_behind
from rlmm.cli.common.config_options import config, config_options
from rlmm.cli.main import cli
from rlmm.cli.service.config_reload import READ_S_MAX, RELOAD_SIGNAL, ConfigReload, EarlySignals
from rlmm.config.key_table import KEYS
from rlmm.config.loading import load
from rlmm.errors import ConfigError
from rlmm.telemetry.logs import LogLines, set_up
from rlmm.telemetry.settings import LogFormat, LoggingSettings
from tests.support.engines import until
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from click.testing import Result

    from rlmm.cli.common.config_options import ConfigurationSources
    from rlmm.config.key_table import Key
    from rlmm.config.loading import LoadedConfiguration

DEADLINE_S = 30.0
"""Never reached, unless something is broken."""
NOTHING = "the configuration was read again, and nothing changes: "
SETTINGS = LoggingSettings(format=LogFormat.JSON, repeats_max=1)


class Said:
    def __init__(self, load: Callable[[], LoadedConfiguration]) -> None:
        self.load = load


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def lines(stream: io.StringIO) -> Iterator[LogLines]:
    with set_up(SETTINGS, stream, now_ms=lambda: 0) as lines:
        yield lines


def reloading(
    load_again: Callable[[], LoadedConfiguration],
    lines: LogLines,
    early: EarlySignals | None = None,
) -> ConfigReload:
    return ConfigReload(cast("ConfigurationSources", Said(load_again)), load(), lines, early=early)


@pytest.mark.parametrize("error", [ValueError("no number"), RecursionError("deep"), KeyError("x")])
def test_reload_when_reading_fails_in_a_way_of_its_own_then_is_told_each_time(
    error: Exception, stream: io.StringIO, lines: LogLines
) -> None:
    """A failed reload leaves the service running, and each failure is reported."""

    def broken() -> LoadedConfiguration:
        raise error

    async def ask() -> None:
        again = reloading(broken, lines)
        for _ in range(12):
            await again.read_again()

    asyncio.run(ask())
    assert stream.getvalue().count(f"{NOTHING}{type(error).__name__}: ") == 12


def test_reload_when_the_file_hangs_then_is_given_up_and_named(
    stream: io.StringIO, lines: LogLines
) -> None:
    """A reload gives up a pipe without a writer, and starts no second thread."""
    released, loads = threading.Event(), []

    def hanging() -> LoadedConfiguration:
        loads.append(1)
        assert released.wait(DEADLINE_S)
        return load()

    async def ask() -> None:
        again = reloading(hanging, lines)
        await again.read_again()
        assert left_behind() == ["configuration"]
        await again.read_again()

    try:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(ask())
    finally:
        released.set()
    assert f"{NOTHING}it could not be read within {READ_S_MAX:g} s" in stream.getvalue()
    assert f"{NOTHING}it still hangs from the last time" in stream.getvalue()
    assert loads == [1]


def test_reload_when_asked_for_before_anybody_could_then_is_done_as_soon_as_one_can(
    stream: io.StringIO, lines: LogLines
) -> None:
    """Between the first reading and the start the file may have changed."""
    before = signal.getsignal(RELOAD_SIGNAL)
    early = EarlySignals()

    async def serve() -> None:
        again = reloading(load, lines, early)
        with again.heeding():
            running = asyncio.create_task(again.run())
            await until(lambda: "was read again" in stream.getvalue(), DEADLINE_S)
            running.cancel()
            await asyncio.wait([running])

    try:
        early.remember()
        os.kill(os.getpid(), RELOAD_SIGNAL)
        asyncio.run(serve())
    finally:
        signal.signal(RELOAD_SIGNAL, before)
    assert stream.getvalue().count("the configuration was read again") == 1


SECRET = {"RLMM_KAFKA_SASL_PASSWORD": "s3cret", "RLMM_KAFKA_BOOTSTRAP_SERVERS": "one:9092"}


def show(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(config, ["show", *arguments], env=env)


def shown(*arguments: str, env: dict[str, str] | None = None) -> dict[str, tuple[Any, str]]:
    result = show("--output", "json", *arguments, env=env)
    assert result.exit_code == 0, result.output
    settings = json.loads(result.stdout)["settings"]
    return {found["key"]: (found["value"], found["source"]) for found in settings}


def test_show_when_nothing_is_configured_then_shows_the_defaults() -> None:
    """The command prints every key with its value and source."""
    found = shown()
    assert found["data_dir"] == ("rlmm-data", "default")
    assert found["files.retention_ms"] == (None, "default")
    assert found["partitions"] == ([], "default")
    assert found["files.sync"] == ("each-group", "default")
    assert "kafka.bootstrap.servers" not in found


def test_show_when_values_come_from_everywhere_then_names_each_source(tmp_path: Path) -> None:
    """Flag, environment and file, merged."""
    file = tmp_path / "rlmm.toml"
    file.write_text("[write]\npending_max = 5\n")
    found = shown(
        "--config", str(file), "--mode", "observer", env={"RLMM_ASSIGNMENT": "none"}
    )  # fmt: skip
    assert found["write.pending_max"] == (5, str(file))
    assert found["mode"] == ("observer", "flag")
    assert found["assignment"] == ("none", "environment")


def test_show_when_there_are_secrets_then_masks_them() -> None:
    """The command masks every password in every form."""
    assert shown(env=SECRET)["kafka.sasl.password"] == ("***", "environment")
    for output in ("table", "json"):
        result = show("--output", output, env=SECRET)
        assert result.exit_code == 0
        assert "s3cret" not in result.output


SECRET_KEYS = [key for key in KEYS.values() if key.is_secret]


@pytest.mark.parametrize("key", SECRET_KEYS, ids=lambda key: key.path)
def test_secret_when_given_as_a_flag_then_refused_with_the_variable(key: Key) -> None:
    """A secret on the command line is refused, unrepeated, with the variable that takes it."""
    for flag in ((key.flag, "s3cret"), (f"{key.flag}=s3cret",)):
        result = CliRunner().invoke(cli, ["config", "show", *flag])
        assert result.exit_code == 2
        assert f"{key.flag}: secrets are no flags" in result.stderr
        assert f"set {key.env}, or {key.path}" in result.stderr
        assert "s3cret" not in result.output


@pytest.mark.parametrize(
    "name", ["sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.password"]
)
@pytest.mark.parametrize("command", [("config", "show"), ("status",)], ids=" ".join)
def test_secret_when_given_as_a_property_then_refused_on_the_command_line_alone(
    command: tuple[str, ...], name: str
) -> None:
    """`--command-property` takes no secret, which a file of `--command-config` holds."""
    result = CliRunner().invoke(cli, [*command, "--command-property", f"{name}=s3cret"])
    assert result.exit_code == 2
    assert f"--command-property {name}: secrets are no flags" in result.stderr
    assert "--command-config" in result.stderr
    assert "s3cret" not in result.output


def test_show_when_read_by_people_then_is_a_table() -> None:
    """The table has one line for each key and marks unset keys."""
    lines = [line.split() for line in show("--files-segment-bytes", "1MiB").stdout.splitlines()]
    assert ["key", "value", "source"] in lines
    assert ["files.segment_bytes", "1048576", "flag"] in lines
    assert ["files.retention_ms", "unset", "default"] in lines


def test_show_when_a_java_file_has_more_then_tells_it_beside_the_answer(tmp_path: Path) -> None:
    """The command names unused keys on standard error and leaves the answer as it is."""
    java = tmp_path / "client.properties"
    java.write_text("acks=all\n")
    result = show("--command-config", str(java), "--bootstrap-server", "one:9092")
    assert result.stderr == (
        f"rlmm: {java}: 1 of its keys have no equivalent and are not used: acks\n"
    )


def test_show_when_a_value_is_wrong_then_is_a_configuration_error() -> None:
    """The command raises a ConfigError that names the flag of the wrong value."""
    result = show("--pump-read-bytes", "0")
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith("--pump-read-bytes (flag) must be")


def test_flag_of_a_key_when_asked_for_then_is_there() -> None:
    """Every key has a flag, shown in the help or not."""
    flags = {flag for parameter in config.commands["show"].params for flag in parameter.opts}
    assert {key.flag for key in KEYS.values()} <= flags


def test_help_when_asked_then_shows_the_few_that_everybody_needs() -> None:
    """The help shows only the flags that most operators need."""
    text = show("--help").output
    assert "--bootstrap-server" in text
    assert "--pump-read-bytes" not in text


def test_options_when_put_on_another_command_then_hand_it_the_configuration() -> None:
    """Any command becomes configurable, and keeps the options of its own."""
    handed: list[tuple[LoadedConfiguration, str]] = []

    @click.command()
    @config_options
    @click.option("--mine")
    def command(*, configuration: LoadedConfiguration, mine: str) -> None:
        handed.append((configuration, mine))

    arguments = ["--mine", "x", "--log-kind", "memory", "--command-property", "acks=1"]
    result = CliRunner().invoke(command, arguments)
    assert str(result.exception) == "--command-property acks (flag) has no equivalent here"
    result = CliRunner().invoke(command, arguments[:-2])
    assert result.exit_code == 0, result.output
    ((configuration, mine),) = handed
    assert (configuration.config.log.kind, mine) == ("memory", "x")
