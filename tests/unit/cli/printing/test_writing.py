"""Answers written item by item: when rows appear, and how a closed pipe ends the output."""

from __future__ import annotations

import asyncio
import errno
import json
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from rlmm.cli.printing.answer import Column, CommandAnswer
from rlmm.cli.printing.printers import HELD_CHARACTERS, document_of, write_answer
from rlmm.cli.printing.settings import PrintSettings
from rlmm.errors import ConfigError, NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.views.values import View

COLUMNS = (Column("n", "N"),)
OUTPUTS = ["table", "json", "jsonl", "csv", "tsv", "yaml"]


class Watched(StringIO):
    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.is_written = asyncio.Event()

    def write(self, text: str) -> int:
        if self._text in text:
            self.is_written.set()
        return super().write(text)


class Pipe(StringIO):
    """A stream whose other end closes after some writes; it has an encoding of its own."""

    def __init__(self, writes: int = 10**9, error: int = errno.EPIPE) -> None:
        super().__init__()
        self._left = writes
        self._error = error

    @property
    def encoding(self) -> str:  # type: ignore[override]  # of a stream that has one
        return "ascii"

    def write(self, text: str) -> int:
        if self._left == 0:
            raise OSError(self._error, "gone")
        self._left -= 1
        return super().write(text)


@pytest.mark.parametrize("output", OUTPUTS)
async def test_item_when_the_next_one_takes_its_time_is_seen_all_the_same(output: str) -> None:
    """The writer prints a row before the next one is known."""
    go_on, stream = asyncio.Event(), Watched("first")

    async def items() -> AsyncIterator[View]:
        yield {"n": "first"}
        await go_on.wait()
        yield {"n": "second"}

    answer = CommandAnswer("things", COLUMNS, items())
    writing = asyncio.create_task(write_answer(answer, PrintSettings(output), stream))
    async with asyncio.timeout(10):
        await stream.is_written.wait()
    assert "second" not in stream.getvalue()
    go_on.set()
    await writing
    assert "second" in stream.getvalue()


@pytest.mark.parametrize("output", OUTPUTS)
async def test_items_when_they_are_many_are_written_while_they_come(output: str) -> None:
    """A long answer is never held whole: it is written a piece at a time."""
    stream = StringIO()
    held: list[int] = []
    written = 0

    async def items() -> AsyncIterator[View]:
        nonlocal written
        for n in range(50_000):
            yield {"n": f"{n:08d}"}
            written += 1
            held.append(written * 9 - len(stream.getvalue()) if n % 1_000 == 0 else 0)

    await write_answer(CommandAnswer("things", COLUMNS, items()), PrintSettings(output), stream)
    assert max(held) <= HELD_CHARACTERS


async def test_pipe_when_nobody_reads_any_more_ends_the_answer_quietly() -> None:
    """A closed pipe ends the output with the answer's exit code, and closes the items first."""
    seen: list[str] = []

    async def items() -> AsyncIterator[View]:
        try:
            while True:
                seen.append("item")
                yield {"n": "x" * 1_000}
        finally:
            seen.append("closed")

    code = await write_answer(
        CommandAnswer("things", COLUMNS, items()), PrintSettings("jsonl"), Pipe(writes=1),
        on_nobody=lambda: seen.append("nobody"),
    )  # fmt: skip
    assert (code, seen.count("closed"), seen.count("nobody")) == (0, 1, 1)
    assert len(seen) < 1_000


async def test_pipe_when_the_exit_code_depends_on_the_items_goes_through_them_all() -> None:
    """A check reads all items for its exit code even when its reader closes the pipe early."""
    seen: list[int] = []

    async def items() -> AsyncIterator[View]:
        for n in range(3):
            seen.append(n)
            yield {"n": "x" * HELD_CHARACTERS}

    answer = CommandAnswer("things", COLUMNS, items(), exit_code=lambda: len(seen))
    assert await write_answer(answer, PrintSettings("jsonl"), Pipe(writes=0)) == 3


async def test_stream_when_it_takes_nothing_is_an_error() -> None:
    """The writer reports a full disk as an error, not as a reader that has closed the pipe."""
    stream = Pipe(writes=0, error=errno.ENOSPC)
    with pytest.raises(ConfigError, match="cannot be written"):
        await write_answer(
            CommandAnswer("things", COLUMNS, [{"n": 1}]), PrintSettings("csv"), stream
        )


async def test_text_when_the_stream_cannot_say_it_is_escaped() -> None:
    """A name that the locale cannot write does not end the command."""
    stream = Pipe()
    await write_answer(
        CommandAnswer("things", COLUMNS, [{"n": "\u00e4"}]), PrintSettings("table"), stream
    )
    assert "\\xe4" in stream.getvalue()


async def test_document_when_the_items_fail_half_way_is_not_whole() -> None:
    """The output before an error is an incomplete document."""
    stream = StringIO()

    async def items() -> AsyncIterator[View]:
        yield {"n": "x" * HELD_CHARACTERS}
        raise NotReady("behind")

    with pytest.raises(NotReady):
        await write_answer(CommandAnswer("things", COLUMNS, items()), PrintSettings("json"), stream)
    assert "items" in stream.getvalue()
    with pytest.raises(json.JSONDecodeError):
        json.loads(stream.getvalue())


async def test_document_of_an_answer_is_one_line() -> None:
    """A document is printed as one line."""
    text = await document_of(
        CommandAnswer("things", COLUMNS, [{"n": 1}], {"a": 1}, lambda: {"b": 2})
    )
    assert text == '{"schema": "rlmm/things/1", "a": 1, "items": [{"n": 1}], "b": 2}'
