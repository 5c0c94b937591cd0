"""Output of commands that answer in one piece: a table for people, or JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rlmm.base.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

OUTPUTS = ("table", "json")

_WIDTH = 100


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table without lines, followed by an empty line; numbers are right-aligned."""
    from rich.console import Console  # noqa: PLC0415  # only for tables
    from rich.table import Table  # noqa: PLC0415

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    table = Table(box=None, pad_edge=False)
    for column, name in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[column], int) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(visible(str(cell)) for cell in row))
    with console.capture() as captured:
        console.print(table, markup=False)
    click.echo(visible(title))
    for line in captured.get().splitlines():
        click.echo(line.rstrip())
    click.echo()
