r"""
Separated values, for spreadsheets, `cut` and `awk`: every column, each line a row.

CSV is quoted as in RFC 4180. Both write tabs and line breaks as `\t`, `\n` and `\r`, and other
control characters as `\x1b`; TSV writes a backslash as `\\`. An apostrophe stands before a text
that a spreadsheet would take for a formula; no name that Kafka accepts is one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlmm.base.visible_text import visible
from rlmm.cli.printing.answer import Printer, ValueFormat
from rlmm.cli.printing.cells import epochs_text, plain_text, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.cli.printing.settings import PrintSettings
    from rlmm.views.values import View

_BREAKS = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})
_FORMULA = re.compile(r"[=+@\uff1d\uff0b\uff20\uff0d]|-(?![A-Za-z0-9._-]*\Z)")


def csv_field(text: str) -> str:
    text = visible(text.translate(_BREAKS))
    if any(character in text for character in ',"') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def tsv_field(text: str) -> str:
    return visible(text.replace("\\", "\\\\").translate(_BREAKS))


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
    if value is None or isinstance(value, bool | int | float):
        return plain_text(value)
    text = value.hex() if isinstance(value, bytes) else plain_text(value)
    return f"'{text}" if _FORMULA.match(text) else text
