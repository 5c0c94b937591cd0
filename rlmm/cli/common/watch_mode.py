"""Watch mode repeats a query, as a screen or as lines of JSON; errors that may pass are shown."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.exit_codes import error_line
from rlmm.cli.common.query_command import discard_output, looking_of, opened, tell
from rlmm.cli.printing.printers import AnswerStream, ReaderGone, document_of, write_answer
from rlmm.cli.printing.table import summary_lines
from rlmm.errors import RlmmError
from rlmm.views.values import iso_time

if TYPE_CHECKING:
    from rich.live import Live

    from rlmm.cli.common.query_run import Ask
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.cli.printing.settings import PrintSettings
    from rlmm.state_sources.protocol import StateSource


class JsonAnswerLines:
    """Prints a line of JSON for each answer; errors go to standard error."""

    def __init__(self, out: AnswerStream | None = None) -> None:
        self._out = out or AnswerStream()

    async def show(self, answer: CommandAnswer, now_ms: int) -> None:
        dated = replace(answer, head={"at": iso_time(now_ms), **answer.head_fields()})
        self._out.add([await document_of(dated), "\n"])
        self._out.flush()

    def trouble(self, error: RlmmError) -> None:
        tell(error)


class WatchView:
    """A screen that is redrawn: sums first; a long table is cut at the terminal's height."""

    def __init__(self, live: Live, settings: PrintSettings) -> None:
        self._live = live
        self._settings = replace(settings, is_quiet=True)
        self._last = ""

    async def show(self, answer: CommandAnswer, now_ms: int) -> None:
        table = StringIO()
        await write_answer(answer, self._settings, table)
        foot = answer.foot_fields()
        above = [f"{iso_time(now_ms)}  Ctrl-C ends", *summary_lines(answer, foot)]
        self._last = "\n".join(above) + f"\n\n{table.getvalue()}"
        self._draw(self._last)

    def trouble(self, error: RlmmError) -> None:
        self._draw(f"{error_line(error)}\n\n{self._last}")

    def _draw(self, text: str) -> None:
        from rich.text import Text  # noqa: PLC0415  # for who watches on a terminal

        self._live.update(Text.from_ansi(text, no_wrap=True), refresh=True)


def watch(asked: SourceChoice, ask: Ask, interval_s: float) -> None:
    """Repeat the query every *interval_s* until Ctrl-C, or until the reader has gone."""
    try:
        asyncio.run(_watch(asked, ask, interval_s))
    except ReaderGone:
        discard_output()
    except RlmmError as error:
        tell(error, is_debug=asked.is_debug)
        click.get_current_context().exit(error.exit_code)


async def _watch(asked: SourceChoice, ask: Ask, interval_s: float) -> None:
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(opened(asked, None))
        screen: JsonAnswerLines | WatchView = JsonAnswerLines()
        if asked.printing.output == "table" and sys.stdout.isatty():
            from rich.console import Console  # noqa: PLC0415  # for who watches on a terminal
            from rich.live import Live  # noqa: PLC0415

            live = Live(console=Console(), auto_refresh=False, screen=True)
            screen = WatchView(stack.enter_context(live), asked.printing)
        await keep_asking(asked, ask, source, screen, interval_s)


async def keep_asking(
    asked: SourceChoice,
    ask: Ask,
    source: StateSource,
    screen: JsonAnswerLines | WatchView,
    interval_s: float,
    times: int | None = None,
) -> None:
    """Repeat the query *times* times, or for ever."""
    while times is None or times > 0:
        now_ms = time.time_ns() // 1_000_000
        try:
            answer = await ask(looking_of(replace(asked, now_ms=now_ms), source, None))
            await screen.show(answer, now_ms)
        except RlmmError as error:
            if not error.retriable:
                raise
            screen.trouble(error)
        times = None if times is None else times - 1
        if times != 0:
            await asyncio.sleep(interval_s)
