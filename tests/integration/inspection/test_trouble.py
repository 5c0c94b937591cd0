"""Errors of commands without their source: one line with fault and remedy, and an exit code."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import TYPE_CHECKING

import pytest

from rlmm.access.authentication import Authenticator
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.errors import ConfigError, NotPermitted, NotReady, SidecarUnavailable
from tests.support.builders import finished, segment_id, started
from tests.support.cli.every_question import WITHOUT_QUESTION, one_of_each, reading_commands
from tests.support.cli.service_source import served_world, world_of
from tests.support.cli.shared_history import SharedHistory, TopicIds
from tests.support.cli.state_commands import called
from tests.support.server.frame_servers import listening

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.support.cli.every_question import Question

IDS = TopicIds.made_up()
QUESTIONS = one_of_each(SharedHistory(IDS))
NEED_THE_LOG = {"history", "events", "diff", "rehearse-compaction"}
"""Commands that are nothing without the log."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


NEED_BROKERS = {"doctor", "lag", "preflight reassign"}
"""Commands that ask the cluster itself; they refuse before they ask anything else."""


def require_one_line(result: Result, exit_code: int, *words: str) -> None:
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("rlmm: ")
    assert all(word in line for word in words), line
    assert result.exit_code == exit_code


def test_questions_when_asked_of_nobody_then_are_of_every_command() -> None:
    """The tables of this module have each command."""
    commands = {name for name, _ in reading_commands()}
    others = {one for one in WITHOUT_QUESTION if one.startswith("tier")}
    assert {one.command for one in QUESTIONS} == commands - others


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.command)
def test_command_when_no_service_is_there_then_says_where_and_what_else_there_is(
    question: Question, tmp_path: Path
) -> None:
    """A missing socket and a closed port give exit code 3 and a line with the other sources."""
    code = SidecarUnavailable.exit_code
    assert code == 3
    path = str(tmp_path / "rlmm.sock")
    result = called(*question.words, "--sidecar", path)
    if question.command in NEED_BROKERS:
        require_one_line(result, ConfigError.exit_code, "--bootstrap-server")
        return
    require_one_line(result, code, path, "--bootstrap-server", "--log-dirs")
    port = str(free_port())
    result = called(*question.words, "--sidecar", f"127.0.0.1:{port}")
    require_one_line(result, code, port, "Connection refused")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.command)
def test_command_when_the_folder_is_of_something_else_then_says_what_is_looked_for(
    question: Question, tmp_path: Path
) -> None:
    """A foreign, an empty and a missing folder end with exit code 2, and nothing is made."""
    assert ConfigError.exit_code == 2
    other, empty, absent = tmp_path / "other", tmp_path / "empty", tmp_path / "absent"
    (other / "orders-0").mkdir(parents=True)
    empty.mkdir()
    if question.command in NEED_BROKERS:
        for folder in (other, empty, absent):
            result = called(*question.words, "--log-dirs", str(folder))
            require_one_line(result, ConfigError.exit_code, "--bootstrap-server")
        return
    looked_for = "__remote_log_metadata-N"
    require_one_line(called(*question.words, "--log-dirs", str(other)), 2, looked_for, "orders-0")
    require_one_line(called(*question.words, "--log-dirs", str(empty)), 2, looked_for, "empty")
    require_one_line(called(*question.words, "--log-dirs", str(absent)), 2, "does not exist")
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["empty", "orders-0", "other"]


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_command_when_no_cluster_is_there_then_says_so_once(
    command: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An unreachable cluster gives one error line and exit code 3, without log lines."""
    address = f"127.0.0.1:{free_port()}"
    result = called(command, "--bootstrap-server", address, "--timeout", "3s")
    require_one_line(result, 3, address, "no broker listens there", "--command-config")
    assert caplog.messages == []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.command)
def test_command_when_a_configuration_of_java_cannot_be_read_then_names_the_file(
    question: Question, tmp_path: Path
) -> None:
    """The error names the file, with exit code 2, before any connection."""
    path = tmp_path / "client.properties"
    flags = ("--bootstrap-server", "127.0.0.1:1", "--command-config", str(path))
    require_one_line(called(*question.words, *flags), 2, str(path))


async def test_command_when_the_token_is_wrong_then_every_one_is_refused(tmp_path: Path) -> None:
    """An unknown token gives exit code 3 for every command."""
    token = tmp_path / "token"
    token.write_text("nobody-knows-it-0123456789abcdef")
    token.chmod(0o600)
    world = world_of(started(1), finished(1))
    async with (
        world.engine() as engine,
        listening(engine, door=Authenticator(AccessSettings(), TlsSettings())) as served,
    ):
        for one in QUESTIONS:
            if one.command in NEED_BROKERS:
                continue
            flags = ("--sidecar", str(served.path), "--token-file", str(token))
            result = await asyncio.to_thread(called, *one.words, *flags)
            require_one_line(result, NotPermitted.exit_code, "token")
            assert "nobody-knows" not in result.stderr


async def test_command_when_the_role_is_reader_then_the_log_is_told_to_nobody() -> None:
    """The past needs the role admin, and the error line says so."""
    world = world_of(started(1), finished(1))
    async with served_world(world, role="reader") as (_, served):
        for one in QUESTIONS:
            if one.command not in NEED_THE_LOG:
                continue
            result = await asyncio.to_thread(called, *one.words, "--sidecar", str(served.path))
            require_one_line(result, NotPermitted.exit_code, "admin")
        result = await asyncio.to_thread(called, "status", "--sidecar", str(served.path))
        assert result.exit_code == 0


async def test_command_when_the_service_is_not_caught_up_then_none_answers_from_a_part() -> None:
    """The command ends with exit code 4 without an answer, and `status` shows the progress."""
    world = world_of(started(segment_id("o0-b", IDS.of_orders(0))))
    is_shown = {"status", "check", "support-bundle", "doctor", "lag", "preflight reassign"}
    for place in range(world.partition_count):
        world.script.stall(place)
    async with served_world(world, is_ready=False) as (_, served):
        for one in QUESTIONS:
            if one.command in is_shown | NEED_THE_LOG:
                continue
            result = await asyncio.to_thread(called, *one.words, "--sidecar", str(served.path))
            require_one_line(result, NotReady.exit_code, "--wait")
        result = await asyncio.to_thread(called, "status", "--sidecar", str(served.path))
        assert result.exit_code == NotReady.exit_code
        assert re.search(r'"is_caught_up": false', result.stdout)
