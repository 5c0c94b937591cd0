"""Screens: a claim is shown only where something was checked, and everything checked held."""

from __future__ import annotations

import subprocess

import pytest

from rlmm.errors import EngineFailed
from rlmm_demo.report.story import Comparison, Figure, PreferredDirection
from rlmm_demo.screens.stage import DemoStage, figure_text


def test_screen_when_everything_checked_holds_then_is_shown_and_kept() -> None:
    """A shown screen keeps its commands, their output and its figures, in order."""
    stage = DemoStage()
    with stage.screen("first", "It works.") as screen:
        screen.command("rlmm status")
        screen.tell("two\nlines")
        screen.figure(Figure("pace", 3.0, "MB/s"))
        screen.check("it is so", holds=True)
    with stage.screen("second", "It works, too.") as screen:
        screen.check("it is so", holds=True)
    first, second = stage.screens
    assert (first.number, first.title, first.commands) == (1, "first", ("rlmm status",))
    assert first.output == "two\nlines"
    assert [one.name for one in first.figures] == ["pace"]
    assert second.number == 2
    assert stage.is_shown


def test_screen_when_one_check_fails_then_is_not_shown_and_says_which(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One failed check makes the claim fail, whatever the other checks say."""
    stage = DemoStage()
    with stage.screen("first", "It works.") as screen:
        screen.check("one", holds=True)
        screen.check("two", holds=False)
        screen.check("three", holds=True)
    assert not stage.is_shown
    assert stage.screens[0].trouble == "not so: two"
    assert "two" in capsys.readouterr().out


def test_screen_when_something_of_ours_fails_then_is_not_shown_and_says_why() -> None:
    """An error of ours fails the screen and stands in the report."""
    stage = DemoStage()
    with stage.screen("first", "It works.") as screen:
        screen.check("one", holds=True)
        raise EngineFailed("the disk is gone")
    assert stage.screens[0].trouble.endswith("the disk is gone")
    assert not stage.is_shown


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        subprocess.TimeoutExpired("rlmm", 120),
        KeyError("clusters"),
    ],
)
def test_screen_when_anything_else_fails_then_is_not_shown_and_the_story_ends_in_order(
    error: Exception,
) -> None:
    """Any other error fails the screen and stands in the report."""
    stage = DemoStage()
    with stage.screen("first", "It works.") as screen:
        screen.check("one", holds=True)
        raise error
    assert stage.screens[0].trouble == f"{type(error).__name__}: {error}"


def test_screen_when_nothing_was_checked_then_is_not_shown() -> None:
    """A screen without a check is not shown."""
    stage = DemoStage()
    with stage.screen("first", "It works."):
        pass
    assert not stage.is_shown


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (Figure("ready after", 0.5, "s"), "ready after: 0.5\N{NO-BREAK SPACE}s"),
        (Figure("who", "Spark"), "who: Spark"),
        (
            Figure("pace", 10.0, "MB/s", Comparison("plain", 20.0), PreferredDirection.HIGHER),
            "pace: 10\N{NO-BREAK SPACE}MB/s (plain: 20\N{NO-BREAK SPACE}MB/s, 0.5 times it)",
        ),
    ],
)
def test_figure_when_told_then_names_what_it_is_held_against(figure: Figure, expected: str) -> None:
    """A figure and its comparison stand in one line."""
    assert figure_text(figure) == expected
