"""Help, versions and completions are quick: they import next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click import Context

from rlmm.cli import main
from rlmm.cli.common import commands as commands_table

HEAVY = {
    "aiohttp", "aiokafka", "asyncio", "boto3", "cramjam", "msgpack", "pydantic",
    "pydantic_settings", "rich", "structlog", "pyspark", "rlmm.metadata.python_shard",
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
    assert not HEAVY & modules
    commands = {target.partition(":")[0] for target in commands_table.SUBCOMMANDS.values()}
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
    heavy = {"pydantic", "rich", "aiohttp", "structlog", "rlmm.log.kafka.kafka_log"}
    assert not heavy & set(done.stdout.split())


def test_line_of_each_command_is_what_the_command_says_of_itself() -> None:
    """The table of lines that keeps help quick is as the commands are."""
    context = Context(main.cli)
    lines = {}
    for name in commands_table.SUBCOMMANDS:
        command = main.cli.get_command(context, name)
        assert command is not None
        lines[name] = command.get_short_help_str(limit=LINE_MAX)
    assert lines == commands_table.SHORT_HELP
