"""The end of `rlmm tier --help`: examples that run as they stand, and variables."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from rlmm.cli.common.option_kinds import ExplicitFlag
from rlmm.cli.main import cli
from rlmm.cli.tier.command import CARE, tier
from rlmm.cli.tier_common.examples import COLUMNS, EXAMPLES
from rlmm.cli.tier_common.object_store import store_of
from rlmm.cli.tier_common.options import request_of
from rlmm.cli.tier_maintenance.options import care_request_of
from spark_tiering.segment_sources.settings import LogDirSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def commands(group: click.Group = tier, before: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


ALL = dict(commands())


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("RLMM_", "PYSPARK_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    words = {
        word for one in EXAMPLES.values() for lines in one for word in shlex.split(" ".join(lines))
    }
    for word in words:
        if re.fullmatch(r"[a-z-]+\.[a-z.]+", word):
            (tmp_path / word).touch()


def called(words: Sequence[str], *, is_resilient: bool = False) -> click.Context:
    context = tier.make_context("tier", ["nothing"], resilient_parsing=True)
    command: click.Command = tier
    rest = [*words]
    while isinstance(command, click.Group):
        name = rest.pop(0)
        found = command.get_command(context, name)
        assert found is not None, name
        command = found
        args = rest if not isinstance(command, click.Group) else ["nothing"]
        resilient = is_resilient or isinstance(command, click.Group)
        context = command.make_context(name, [*args], context, resilient_parsing=resilient)
    return context


@pytest.mark.parametrize("name", ALL)
def test_help_when_asked_for_then_ends_with_examples_as_they_can_be_copied(name: str) -> None:
    """Each example has lines of its own, short enough to stay unbroken."""
    shown = CliRunner().invoke(cli, ["tier", *name.split(), "--help"]).stdout.splitlines()
    for lines in EXAMPLES[name]:
        for number, line in enumerate(lines):
            more = " \\" if number < len(lines) - 1 else ""
            written = f"  {'    ' * (number > 0)}{line}{more}"
            assert written in shown
            assert len(written) <= COLUMNS
    assert f"RLMM_TIER_{name.upper().replace(' ', '_')}_STORE" in " ".join(shown)


@pytest.mark.parametrize(
    "example", [" ".join(lines) for name in ALL for lines in EXAMPLES.get(name, ())]
)
def test_example_when_read_then_is_taken_as_it_stands(example: str) -> None:
    """Flags and values are known, and do not contradict each other."""
    program, group, *words = shlex.split(example)
    assert (program, group) == ("rlmm", "tier")
    context = called(words)
    params = context.params
    if words[0] in CARE:
        with context:
            prefix = care_request_of(params).prefix
    else:
        prefix = (request_of(params) if "log_dirs" in params else store_of(params)).prefix
    assert prefix in ("kafka/", "")


@pytest.mark.parametrize("name", ALL)
def test_flag_when_its_variable_is_set_then_has_its_value(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every flag of every command takes its value from the variable in its help."""
    context = called(name.split(), is_resilient=True)
    for option in context.command.params:
        if isinstance(option, ExplicitFlag):
            continue
        if isinstance(option, click.Option):
            flag = max(option.opts, key=len).removeprefix("--")
            variable = f"RLMM_TIER_{name}_{flag}".upper().replace(" ", "_").replace("-", "_")
            monkeypatch.setenv(variable, "said")
            assert option.resolve_envvar_value(context) == "said", flag
            monkeypatch.delenv(variable)


def test_flags_that_destroy_or_publish_when_a_variable_is_set_then_are_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable alone never enables a deletion."""
    aloud = []
    for name in ALL:
        context = called(name.split(), is_resilient=True)
        for option in context.command.params:
            flag = max(option.opts, key=len)
            if isinstance(option, ExplicitFlag):
                aloud.append(f"{name} {flag}")
                variable = f"RLMM_TIER_{name}_{flag[2:]}".upper().replace(" ", "_")
                monkeypatch.setenv(variable.replace("-", "_"), "1")
                assert option.resolve_envvar_value(context) is None
    assert sorted(aloud) == [
        "adopt abort --allow-shrinking-retention", "adopt resume --allow-shrinking-retention",
        "audit --delete-orphans", "backup import --apply", "expire --apply", "rebuild --apply",
        "sweep --end",
    ]  # fmt: skip


def test_variables_when_set_then_are_read_as_the_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks between values, colons between folders, 1 and 0 for switches."""
    said = {
        "LOG_DIR": "/a:/b",
        "TOPIC": "orders logs-*",
        "OFFLINE": "1",
        "NO_SPARK": "1",
        "COMPRESS": "0",
        "EMBEDDED": "archive",
        "STORE": "s3://bucket/kafka/",
    }
    for name, value in said.items():
        monkeypatch.setenv(f"RLMM_TIER_RUN_{name}", value)
    request = request_of(called(["run"]).params)
    assert isinstance(request.source, LogDirSettings)
    assert request.source.folders == ("/a", "/b")
    assert request.filters.topics == ("orders", "logs-*")
    assert (request.cluster, request.engine.master) == (None, None)
    assert request.options.is_compressed is False
