"""
Separated values, for spreadsheets, `cut` and `awk`: every column, values unchanged.

CSV is quoted as in RFC 4180, with line feeds; TSV writes tab, line feed and backslash as `\t`, `\n`
and `\\`, so that each line is a row and each tab separates columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.cli.printing.answer import Printer, ValueFormat
from rlmm.cli.printing.cells import epochs_text, plain_text, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.cli.printing.settings import PrintSettings
    from rlmm.views.values import View

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def csv_field(text: str) -> str:
    if any(character in text for character in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def tsv_field(text: str) -> str:
    return text.translate(_ESCAPES)


class SeparatedPrinter(Printer):
    def __init__(
        self,
        answer: CommandAnswer,
        settings: PrintSettings,
        between: str,
        field: Callable[[str], str],
    ) -> None:
        self._columns = [one for one in answer.columns if one.made_of is None]
        self._has_headers = settings.has_headers
        self._between = between
        self._field = field

    def begin(self) -> Iterable[str]:
        """Print the JSON names as headers."""
        return [self._row(one.key for one in self._columns)] if self._has_headers else []

    def item(self, item: View) -> Iterable[str]:
        return [self._row(_text(value_at(item, one.key), one.form) for one in self._columns)]

    def _row(self, texts: Iterable[str]) -> str:
        row = self._between.join(self._field(text) for text in texts)
        return f"{row}\n" if row or self._between == "\t" else '""\n'  # no row is an empty line


def _text(value: object, form: ValueFormat) -> str:
    if form is ValueFormat.EPOCHS and isinstance(value, list):
        return epochs_text(value)
    return value.hex() if isinstance(value, bytes) else plain_text(value)
