"""Stage: how the demonstration shows each screen, and what it keeps for the report."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from rlmm.errors import RlmmError
from rlmm_demo.report.numbers import amount_text, number_text
from rlmm_demo.report.story import DemoStory, ScreenResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm_demo.report.story import Figure

SCREENS: Final = 9
_WIDTH: Final = 96


class DemoScreen(ScreenResult):
    checks = 0

    def command(self, text: str) -> None:
        for line in text.splitlines():
            self.commands.append(line)
            click.echo(f"  $ {line}")

    def tell(self, text: str = "") -> None:
        for line in text.splitlines() or [""]:
            self.lines.append(line)
            click.echo(f"    {line}".rstrip())

    def figure(self, figure: Figure) -> None:
        self.figures.append(figure)
        click.echo(f"    {figure_text(figure)}")

    def check(self, what: str, *, holds: bool) -> None:
        self.checks += 1
        click.echo(f"  {tick(is_shown=holds)} {what}")
        if not holds and not self.trouble:
            self.trouble = f"not so: {what}"

    def check_equal(self, what: str, expected: dict[str, Any], actual: dict[str, Any]) -> None:
        same = sum(actual.get(name) == value for name, value in expected.items())
        self.check(f"{same} of {len(expected)} {what}", holds=actual == expected)

    def fail(self, why: str) -> None:
        self.trouble = self.trouble or why
        click.echo(f"  {tick(is_shown=False)} {why}")


class DemoStage(DemoStory):
    @contextmanager
    def screen(self, title: str, claim: str) -> Iterator[DemoScreen]:
        """Open the next screen. An error, or a screen without a check, ends it as not shown."""
        number, begun_s = len(self.screens) + 1, time.monotonic()
        head = f"{number} of {SCREENS} · {title} "
        click.echo(f"\n{head}{'─' * max(2, _WIDTH - len(head))}" if _is_wide() else f"\n{head}")
        click.echo(f"  {claim}\n")
        screen = DemoScreen(number, title, claim)
        try:
            yield screen
        except RlmmError as error:
            screen.fail(f"{error.code}: {error}")
        except (OSError, subprocess.SubprocessError) as error:
            screen.fail(f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001  # whatever it is, the claim was not shown
            traceback.print_exc()
            screen.fail(f"{type(error).__name__}: {error}")
        if not screen.checks and not screen.trouble:
            screen.fail("nothing was shown")
        screen.seconds = time.monotonic() - begun_s
        click.echo(f"  {screen.seconds:.1f} s")
        self.screens.append(screen)


def tick(*, is_shown: bool) -> str:
    if _is_wide():
        return "✓" if is_shown else "✗"
    return "[ok]" if is_shown else "[FAILED]"


def _is_wide() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def figure_text(figure: Figure) -> str:
    value = figure.value
    text = value if isinstance(value, str) else amount_text(value, figure.unit)
    other = figure.compared_with
    if other is None:
        return f"{figure.name}: {text}"
    ratio = "" if figure.ratio is None else f", {number_text(figure.ratio)} times it"
    return f"{figure.name}: {text} ({other.name}: {amount_text(other.value, figure.unit)}{ratio})"
