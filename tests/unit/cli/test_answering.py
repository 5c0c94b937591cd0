"""From flags to an exit code: the work of a command around its question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from rlmm.cli import main
from rlmm.cli.common import commands
from rlmm.cli.common.query_run import QueryContext, answer
from rlmm.cli.common.source_choice import at_option, output_options, source_options
from rlmm.cli.printing.answer import Column, CommandAnswer
from rlmm.errors import (
    ConfigError,
    InvalidArgument,
    LogNotPermitted,
    LogUnavailable,
    NotFound,
    NotPermitted,
    NotReady,
    RlmmError,
    SidecarUnavailable,
    UnknownPartition,
)
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.selectors import parse_partition
from rlmm.metadata.ids import Uuid
from tests.support.builders import TOPIC_ID, finished, started, tp
from tests.support.cli.memory_source import MemorySource, commands_ask, looking_at
from tests.support.cli.metadata_history import History

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from click.testing import Result

    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.state_sources.protocol import StateSource
    from rlmm.views.values import View

SEEN: list[QueryContext] = []
TO_DO: list[Callable[[], CommandAnswer]] = []


@click.command("ask")
@source_options
@at_option
@output_options
def ask(asked: SourceChoice) -> None:
    """Ask."""
    answer(asked, ask_answer)


async def ask_answer(looking: QueryContext) -> CommandAnswer:
    SEEN.append(looking)
    return TO_DO[0]()


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    SEEN.clear()
    TO_DO.clear()
    monkeypatch.setitem(commands.SUBCOMMANDS, "ask", f"{__name__}:ask")


def run(
    make: Callable[[], CommandAnswer], *words: str, before: tuple[str, ...] = (), **environ: str
) -> tuple[Result, MemorySource]:
    sources: list[MemorySource] = []
    TO_DO[:] = [make]

    async def open_source() -> StateSource:
        sources.append(MemorySource(History()))
        return sources[0]

    with commands_ask(open_source):
        result = CliRunner().invoke(main.cli, [*before, "ask", *words], env=environ)
    return result, sources[0]


def failing(error: BaseException) -> Callable[[], CommandAnswer]:
    def fail() -> CommandAnswer:
        raise error

    return fail


def found(exit_code: int = 0) -> CommandAnswer:
    return CommandAnswer("things", (Column("n", "N"),), [{"n": 1}], exit_code=exit_code)


@pytest.mark.parametrize("exit_code", [0, 1, 4])
def test_answer_when_printed_ends_with_its_exit_code_and_a_closed_source(exit_code: int) -> None:
    """Data on standard output, nothing on the other."""
    result, source = run(lambda: found(exit_code), "--output", "jsonl")
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, '{"n": 1}\n', "")
    assert source.is_closed


@pytest.mark.parametrize(
    ("error", "exit_code", "hint"),
    [
        (NotReady("replaying"), 4, "--wait 30s"),
        (NotReady("behind", reason="replaying"), 4, "--wait 30s"),
        (NotReady("not yet", reason="assignment-unknown"), 4, "--wait 30s"),
        (NotReady("no folder", reason="absent"), 4, "--log-dirs"),
        (NotReady("not ours", reason="not-assigned"), 4, "--bootstrap-server"),
        (NotReady("poison", reason="not-understood"), 4, "--verdict undecodable"),
        (SidecarUnavailable("nobody there"), 3, "--sidecar"),
        (LogUnavailable("no broker"), 3, "--bootstrap-server"),
        (LogNotPermitted("denied"), 3, "READ and DESCRIBE"),
        (NotPermitted("reader"), 3, "--token-file"),
        (ConfigError("wrong"), 2, ""),
        (InvalidArgument("no"), 2, ""),
        (UnknownPartition("orders-3"), 1, ""),
        (NotFound("no event about it"), 1, ""),
    ],
)
def test_error_when_it_ends_a_command_is_one_line_with_the_way_out(
    error: RlmmError, exit_code: int, hint: str
) -> None:
    """The error is one line with a remedy that helps, without output, and the source is closed."""
    result, source = run(failing(error))
    assert (result.exit_code, result.stdout) == (exit_code, "")
    (line,) = result.stderr.splitlines()
    start = f"rlmm: {error.code}: {error}"
    assert line.startswith(start)
    assert hint in line
    assert (line == start) is (hint == "")
    assert ("--wait" in line) == (hint == "--wait 30s")
    assert source.is_closed


def test_not_ready_when_numbers_are_known_says_them() -> None:
    """The error names the metadata partition, its position, its target and the records left."""
    error = NotReady("not yet", metadata_partition=7, position=12, target=40)
    result, _ = run(failing(error))
    assert "metadata partition 7 is at 12 of 40, 28 records are left" in result.stderr
    said = NotReady("at 12 of 40", metadata_partition=7, position=12, target=40)
    result, _ = run(failing(said))
    assert "28" not in result.stderr


@pytest.mark.parametrize(
    ("before", "words", "environ"),
    [(("--debug",), [], {}), ((), ["--quiet", "--debug"], {}), ((), [], {"RLMM_DEBUG": "1"})],
)
def test_error_when_debugging_shows_where_it_comes_from(
    before: tuple[str, ...], words: list[str], environ: dict[str, str]
) -> None:
    """A debug flag, anywhere, or variable prints a traceback before the error line."""
    result, _ = run(failing(NotReady("x")), *words, before=before, **environ)
    assert "Traceback" in result.stderr
    assert "ask_answer" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("rlmm: not-ready: x")
    assert result.exit_code == 4


def test_error_when_the_items_meet_it_ends_the_command_as_well() -> None:
    """An error while items are printed ends the command with the exit code of that error."""

    async def items() -> AsyncIterator[View]:
        yield {"n": 1}
        raise NotReady("half-way")

    result, source = run(lambda: CommandAnswer("things", (), items()))
    assert result.exit_code == 4
    assert "half-way" in result.stderr
    assert source.is_closed


def test_interruption_when_it_comes_ends_quietly_with_130() -> None:
    """Ctrl-C ends the command quietly with exit code 130."""
    result, source = run(failing(KeyboardInterrupt()))
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "")
    assert source.is_closed


def test_bug_when_there_is_one_keeps_its_trace() -> None:
    """An unexpected exception keeps its traceback."""
    result, _ = run(failing(ZeroDivisionError()))
    assert isinstance(result.exception, ZeroDivisionError)


def test_question_is_asked_of_what_the_flags_say() -> None:
    """Moment, patience and deadline; one clock for all of it."""
    run(found, "--at", "1:5,2:6", "--wait", "3s", "--timeout", "7s")
    looking = SEEN[0]
    assert looking.bound == ReplayEnd({1: 5, 2: 6})
    assert (looking.wait_s, looking.timeout_s, looking.offset) == (3.0, 7.0, None)
    assert not looking.is_now
    run(found, "--at", "15")
    assert (SEEN[1].offset, SEEN[1].bound, SEEN[1].is_now) == (15, ReplayEnd(), False)
    run(found, "--at", "-1h")
    assert SEEN[2].bound == ReplayEnd(time_ms=SEEN[2].now_ms - 3_600_000)
    run(found)
    assert SEEN[3].is_now


# -------------------------------------------------------------------------------------- Looking


async def history_of_two() -> History:
    history = History()
    await history.add(started("a", 0, 99), finished("a"), started("b", 100, 199))
    return history


async def test_moment_when_an_offset_alone_is_meant_needs_one_metadata_partition() -> None:
    """Inclusive: the state once the event at that offset is applied."""
    history = await history_of_two()
    looking = looking_at(history, offset=1)
    place = await looking.place_of(tp())
    moment = await looking.moment([place])
    assert moment.positions == {place: 2}
    for places in (None, [0, 1]):
        with pytest.raises(InvalidArgument, match="--at PARTITION:1"):
            await looking.moment(places)


async def test_moment_when_the_present_is_meant_is_the_sources_own() -> None:
    """The source gives its present state without a replay."""
    looking = looking_at(await history_of_two())
    place = await looking.place_of(tp())
    assert (await looking.moment()).positions[place] == 3


async def test_partition_when_named_is_looked_for_at_the_present() -> None:
    """A partition's name is looked up at present, also for a past moment."""
    history = await history_of_two()
    looking = looking_at(history, bound=ReplayEnd(time_ms=0))
    assert await looking.partition(parse_partition("orders-7")) == tp()
    assert await looking.partition(parse_partition(f"{TOPIC_ID}:7")) == tp()
    other = parse_partition(f"{Uuid(bytes(16))}:absent-1")
    assert await looking.partition(other) == other.whole
    with pytest.raises(UnknownPartition):
        await looking.partition(parse_partition("absent-1"))
