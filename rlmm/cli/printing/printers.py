"""What every printer does, and which one is meant by an output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.cli.printing.settings import PrintSettings
    from rlmm.views.values import View


class Printer(Protocol):
    """Makes text of one answer. Each call gives what can be written now."""

    def begin(self) -> Iterable[str]:
        """What stands before the items."""
        ...

    def item(self, item: View) -> Iterable[str]: ...

    def pause(self) -> Iterable[str]:
        """The next item takes its time: what was held back until now."""
        ...

    def end(self, foot: View) -> Iterable[str]: ...


def printer_for(answer: CommandAnswer, settings: PrintSettings) -> Printer:
    """The printer of the output that is meant."""
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
