"""Amounts on a command line."""

from __future__ import annotations

import click
import pytest

from rlmm.cli.common.parameter_types import POSITIVE_SIZE, SIZE, TIME


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("12", 12),
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        ("1.5GiB", 3 * 2**29),
        ("2TiB", 2**41),
    ],
)
def test_size_when_written_with_a_unit_then_is_bytes(text: str, size_bytes: int) -> None:
    """Decimal units count in thousands, those with an i in 1024s."""
    assert SIZE.convert(text, None, None) == size_bytes


@pytest.mark.parametrize(
    ("text", "time_ms"), [("250ms", 250), ("30s", 30_000), ("1.5h", 5_400_000), ("7d", 604_800_000)]
)
def test_time_when_written_with_a_unit_then_is_milliseconds(text: str, time_ms: int) -> None:
    """A time needs a unit, and the parser returns milliseconds."""
    assert TIME.convert(text, None, None) == time_ms


@pytest.mark.parametrize("text", ["", "-1", "5 parsecs", "1e3MB", "MB", "9" * 400, "nan", "inf"])
def test_size_when_it_is_none_then_is_refused(text: str) -> None:
    """The parser refuses texts that are no size, and sizes out of range."""
    with pytest.raises(click.BadParameter):
        SIZE.convert(text, None, None)


def test_amounts_when_they_lack_a_unit_or_are_nothing_then_are_refused() -> None:
    """A time without a unit, and nothing where something is needed."""
    with pytest.raises(click.BadParameter, match="30s, 12h or 7d is one"):
        TIME.convert("7", None, None)
    with pytest.raises(click.BadParameter, match="too small"):
        POSITIVE_SIZE.convert("0", None, None)
