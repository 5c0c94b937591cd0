"""
Table for people: aligned columns, or one screen. Widths come from titles and the first page; a
later, wider value shifts its own line. Only the last column is wrapped, so that ids can be copied.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

from rlmm.base.visible_text import visible
from rlmm.cli.printing.answer import Printer, ValueFormat
from rlmm.cli.printing.cells import RIGHT, cell, value_at
from rlmm.cli.printing.documents import head_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.cli.printing.answer import Column, CommandAnswer
    from rlmm.cli.printing.settings import PrintSettings
    from rlmm.views.values import View

PAGE: Final = 100
"""Rows that the widths are made from."""
GAP: Final = "  "
WRAPPED_MIN: Final = 24
"""Least width in which a text goes on below itself."""

_NAME = re.compile(r"\s*(?:[^\s:]|:(?=\S))+(?: (?:[^\s:]|:(?=\S))+)*(?:\s{2,}|: )")
_LONG_WORD = re.compile(r"(?<!\S)[a-z]+(?:-[a-z]+)+[:;,.]?(?!\S)")
"""Words of ours, such as the reasons of verdicts: no id is made of small letters alone."""
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


class TablePrinter(Printer):
    def __init__(self, answer: CommandAnswer, settings: PrintSettings) -> None:
        self._answer = answer
        self._settings = settings
        self._columns = [one for one in answer.columns if settings.is_wide or not one.is_extra]
        self._page: list[list[str]] = []
        self._widths: list[int] | None = None

    def item(self, item: View) -> Iterable[str]:
        row = [cell(_value(item, one), one.form) for one in self._columns]
        if self._widths is not None:
            return [self._line(row, self._widths)]
        self._page.append(row)
        return self._first_page() if len(self._page) >= PAGE else ()

    def pause(self) -> Iterable[str]:
        return self._first_page() if self._page else ()

    def end(self, foot: View) -> Iterable[str]:
        yield from self._first_page()
        if self._settings.is_quiet:
            return
        said = list(summary_lines(self._answer, foot))
        if said:
            yield "\n"
        for line in said:
            yield from wrapped(visible(line), self._settings.width)

    def _first_page(self) -> Iterator[str]:
        if self._widths is not None:
            return
        titles = [one.title for one in self._columns] if self._settings.has_headers else []
        rows = [titles, *self._page] if titles else self._page
        self._widths = [max(map(len, texts)) for texts in zip(*rows, strict=True)]
        if titles:
            line = self._line(titles, self._widths)
            yield f"{_BOLD}{line.rstrip()}{_PLAIN}\n" if self._settings.is_styled else line
        for row in self._page:
            yield self._line(row, self._widths)
        self._page.clear()

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = [
            text.rjust(width) if one.form in RIGHT else text.ljust(width)
            for text, width, one in zip(row, widths, self._columns, strict=True)
        ]
        line = GAP.join(cells).rstrip()
        if (
            len(line) <= self._settings.width
            or not cells
            or self._columns[-1].form is not ValueFormat.TEXT
        ):
            return f"{line}\n"
        before = GAP.join(cells[:-1]) + GAP if len(cells) > 1 else ""
        left = self._settings.width - len(before)
        if left < WRAPPED_MIN:
            return f"{line}\n"
        text = _LONG_WORD.sub(lambda found: _broken(found[0], left), row[-1])
        pieces = textwrap.wrap(text, left, break_long_words=False, break_on_hyphens=False)
        return f"\n{' ' * len(before)}".join([f"{before}{pieces[0]}", *pieces[1:]]) + "\n"


def _broken(word: str, width: int) -> str:
    """Insert blanks behind hyphens of a long *word* so that it can wrap."""
    parts = [""]
    for piece in word.split("-") if len(word) > width else ():
        joined = f"{parts[-1]}-{piece}" if parts[-1] else piece
        parts[-1:] = [joined] if len(joined) < width or not parts[-1] else [f"{parts[-1]}-", piece]
    return " ".join(parts) or word


def _value(item: View, column: Column) -> object:
    return value_at(item, column.key) if column.made_of is None else column.made_of(item)


def summary_lines(answer: CommandAnswer, foot: View) -> Iterable[str]:
    if answer.summary is None:
        return ()
    return answer.summary({**answer.head_fields(), **foot})


class ScreenPrinter(Printer):
    """Prints one screen from the whole document; long lines wrap."""

    def __init__(self, answer: CommandAnswer, settings: PrintSettings) -> None:
        self._answer = answer
        self._width = settings.width
        self._items: list[View] = []

    def item(self, item: View) -> Iterable[str]:
        self._items.append(item)
        return ()

    def end(self, foot: View) -> Iterable[str]:
        assert self._answer.text is not None, self._answer
        document = {**head_of(self._answer), "items": self._items, **foot}
        for line in self._answer.text(document):
            yield from wrapped(visible(line), self._width)


def wrapped(line: str, width: int) -> Iterator[str]:
    """Wrap *line* at *width*, with an indent of two or that of a short name; words stay whole."""
    if len(line) <= width:
        yield f"{line}\n"
        return
    name = _NAME.match(line)
    begin = len(line) - len(line.lstrip())
    if name is not None and name.end() <= width // 3:
        before, behind = line[: name.end()], name.end()
    else:
        before, behind = line[:begin], begin + 2
    pieces = textwrap.wrap(
        line[len(before) :], width,
        initial_indent=before, subsequent_indent=" " * behind,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    if pieces and pieces[0].strip() == before.strip():  # the first word has no room beside it
        pieces[:2] = [before + pieces[1].lstrip()]
    yield from (f"{piece}\n" for piece in pieces or [before.rstrip()])
