"""Printer of answers: its protocol, and the choice of a printer by output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.cli.printing.settings import PrintSettings
    from rlmm.views.values import View


class Printer(Protocol):
    """Converts one answer to text. Each call returns the text that can be written now."""

    def begin(self) -> Iterable[str]:
        """Return the text before the items."""
        ...

    def item(self, item: View) -> Iterable[str]: ...

    def pause(self) -> Iterable[str]:
        """Return text that was held back; the next item may take long."""
        ...

    def end(self, foot: View) -> Iterable[str]: ...


def printer_for(answer: CommandAnswer, settings: PrintSettings) -> Printer:
    from rlmm.cli.printing.documents import (  # noqa: PLC0415  # one of them is needed
        JsonLines,
        JsonPrinter,
        YamlPrinter,
    )
    from rlmm.cli.printing.separated import CsvPrinter, TsvPrinter  # noqa: PLC0415
    from rlmm.cli.printing.table import ScreenPrinter, TablePrinter  # noqa: PLC0415

    match settings.output:
        case "json":
            return JsonPrinter(answer)
        case "jsonl":
            return JsonLines()
        case "yaml":
            return YamlPrinter(answer)
        case "csv":
            return CsvPrinter(answer, settings)
        case "tsv":
            return TsvPrinter(answer, settings)
    if answer.text is not None:
        return ScreenPrinter(answer, settings)
    return TablePrinter(answer, settings)
