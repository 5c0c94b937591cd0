"""
Printers write an answer, item by item, to a stream. Output is buffered for a moment at most. After
the reader has gone nothing more is written; all items still determine the exit code.
"""

from __future__ import annotations

import asyncio
import errno
import sys
import time
from collections.abc import AsyncIterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TextIO

from rlmm.cli.printing.documents import document_head, json_text
from rlmm.errors import ConfigError
from rlmm.views.values import plain

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable

    from rlmm.cli.printing.answer import CommandAnswer, Printer
    from rlmm.cli.printing.settings import PrintSettings
    from rlmm.views.values import View, ViewObject


def printer_for(answer: CommandAnswer, settings: PrintSettings) -> Printer:
    from rlmm.cli.printing import documents, separated, table  # noqa: PLC0415  # one is needed

    match settings.output:
        case "json":
            return documents.JsonPrinter(answer)
        case "jsonl":
            return documents.JsonLines()
        case "yaml":
            return documents.YamlPrinter(answer)
        case "csv":
            return separated.SeparatedPrinter(answer, settings, ",", separated.csv_field)
        case "tsv":
            return separated.SeparatedPrinter(answer, settings, "\t", separated.tsv_field)
    kind = table.TablePrinter if answer.text is None else table.ScreenPrinter
    return kind(answer, settings)


HELD_S: Final = 0.1
"""Longest time that a finished line is held back."""
HELD_CHARACTERS: Final = 64 * 1024


class ReaderGone(Exception):
    """The reader of the output has closed it."""


class AnswerStream:
    """A buffered stream; raises `ReaderGone` if its reader has closed it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = sys.stdout if stream is None else stream
        self._held: list[str] = []
        self._characters = 0
        self._since_s = 0.0

    @property
    def is_due(self) -> bool:
        return bool(self._held) and (
            self._characters >= HELD_CHARACTERS or time.monotonic() - self._since_s >= HELD_S
        )

    def add(self, texts: Iterable[str]) -> None:
        for text in texts:
            if not self._held:
                self._since_s = time.monotonic()
            self._held.append(text)
            self._characters += len(text)

    def flush(self) -> None:
        """Write the buffer. Raises `ConfigError` on failure, as on a full disk."""
        text = "".join(self._held)
        self._held.clear()
        self._characters = 0
        if self._stream is None or self._stream.closed:
            raise ReaderGone
        encoding = self._stream.encoding or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self._stream.flush()
        except OSError as error:
            if error.errno in {errno.EPIPE, errno.EBADF}:
                raise ReaderGone from error
            msg = f"the output cannot be written: {error.strerror}"
            raise ConfigError(msg) from error


async def write_answer(
    answer: CommandAnswer,
    settings: PrintSettings,
    stream: TextIO | None = None,
    *,
    on_nobody: Callable[[], None] | None = None,
) -> int:
    """Print *answer* and return the exit code; *on_nobody* is called when the reader has gone."""
    printer, out = printer_for(answer, settings), AnswerStream(stream)
    async with aclosing(_each(answer.items)) as items:
        try:
            out.add(printer.begin())
            await _write_items(items, printer, out)
            out.add(printer.end(answer.foot_fields()))
            out.flush()
        except ReaderGone:
            if on_nobody is not None:
                on_nobody()
            if not callable(answer.exit_code):
                return answer.exit_code
            async for _ in items:
                pass
    return answer.exit_code() if callable(answer.exit_code) else answer.exit_code


async def document_of(answer: CommandAnswer) -> str:
    """Return all of *answer* as one line of JSON."""
    async with aclosing(_each(answer.items)) as items:
        every = [item async for item in items]
    foot = answer.foot_fields()
    return json_text({**document_head(answer), "items": every, **foot})


async def _write_items(items: AsyncIterator[View], printer: Printer, out: AnswerStream) -> None:
    """Write items as they come; flush while waiting for the next one."""
    loop = asyncio.get_running_loop()
    trouble: list[BaseException] = []
    timer: asyncio.TimerHandle | None = None

    def write_held() -> None:
        nonlocal timer
        if timer is not None:
            timer.cancel()
            timer = None
        try:
            out.add(printer.pause())
            out.flush()
        except (ReaderGone, ConfigError) as error:
            trouble.append(error)

    try:
        async for item in items:
            out.add(printer.item(item))
            if out.is_due:
                write_held()
            elif timer is None:
                timer = loop.call_later(HELD_S, write_held)
            if trouble:
                raise trouble[0]
    finally:
        if timer is not None:
            timer.cancel()
    if trouble:
        raise trouble[0]


async def _each(
    items: Iterable[ViewObject | View] | AsyncIterable[ViewObject | View],
) -> AsyncGenerator[View, None]:
    if not isinstance(items, AsyncIterable):
        for item in items:
            yield plain(item)
        return
    try:
        async for item in items:
            yield plain(item)
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
