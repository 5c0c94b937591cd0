"""Settings of printing. Plain values."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import Final

OUTPUTS: Final = ("table", "json", "jsonl", "csv", "tsv", "yaml")
WIDTH: Final = 80


@dataclass(frozen=True, slots=True)
class PrintSettings:
    output: str = "table"
    is_wide: bool = False
    """Extra columns, in tables; CSV and TSV always have all of them."""
    has_headers: bool = True
    is_quiet: bool = False
    """Nothing but data: no totals below a table, nothing on standard error but errors."""
    width: int = WIDTH
    is_styled: bool = False
    """Bold titles: on a terminal, unless NO_COLOR says otherwise."""

    @classmethod
    def of_terminal(
        cls, output: str | None, *, is_wide: bool, has_headers: bool, is_quiet: bool
    ) -> PrintSettings:
        """Combine the flags with the terminal behind standard output."""
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        return cls(
            output or ("table" if is_terminal else "json"),
            is_wide,
            has_headers,
            is_quiet,
            shutil.get_terminal_size((WIDTH, 24)).columns if is_terminal else WIDTH,
            is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        )
