"""Screens: a claim is shown only where something was checked, and everything checked held."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, cast

import pytest

from rlmm.cli.common.parameter_types import POSITIVE_TIME
from rlmm.errors import EngineFailed
from rlmm_demo.report.story import Comparison, Figure, PreferredDirection
from rlmm_demo.screens.disaster import _audit, _names
from rlmm_demo.screens.stage import DemoStage, figure_text
from rlmm_demo.screens.watching import stalls_of
from rlmm_demo.world.made_up_world import MadeUpWorld
from spark_tiering.maintenance.audit.object_set_verdict import AuditRules

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm_demo.world.world import DemoWorld


def test_screen_when_everything_checked_holds_then_is_shown_and_kept() -> None:
    """A shown screen keeps its commands, their output and its figures, in order."""
    stage, pace = DemoStage(), Figure("pace", 3.0, "MB/s")
    with stage.screen("first", "It works.") as screen:
        screen.command("rlmm status")
        screen.tell("two\nlines")
        screen.figure(pace)
        screen.check("it is so", holds=True)
    with stage.screen("second", "It works, too.") as screen:
        screen.check("it is so", holds=True)
    first, second = stage.screens
    assert (first.number, first.title, first.commands) == (1, "first", ["rlmm status"])
    assert (first.lines, first.figures) == (["two", "lines"], [pace])
    assert second.number == 2
    assert stage.is_shown


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (None, "not so: two"),
        (EngineFailed("the disk is gone"), "the disk is gone"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (
            subprocess.TimeoutExpired("rlmm", 120),
            "TimeoutExpired: Command 'rlmm' timed out after 120 seconds",
        ),
        (KeyError("clusters"), "KeyError: 'clusters'"),
    ],
    ids=["a-check", "ours", "disk", "command", "bug"],
)
def test_screen_when_a_check_or_anything_else_fails_then_is_not_shown_and_says_why(
    capsys: pytest.CaptureFixture[str], error: Exception | None, trouble: str
) -> None:
    """The first failed check or any error fails the screen, and stands in the report."""
    stage = DemoStage()
    with stage.screen("first", "It works.") as screen:
        screen.check("one", holds=True)
        if error is not None:
            raise error
        screen.check("two", holds=False)
        screen.check("three", holds=True)
    assert not stage.is_shown
    assert stage.screens[0].trouble.endswith(trouble)
    assert trouble.removeprefix("not so: ") in capsys.readouterr().out


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
    ids=["number", "text", "compared"],
)
def test_figure_when_told_then_names_what_it_is_held_against(figure: Figure, expected: str) -> None:
    """A figure and its comparison stand in one line."""
    assert figure_text(figure) == expected


@pytest.mark.parametrize(
    ("found", "is_right"),
    [
        ("  warning TIER-ORPHAN (1): objects\n    payments-0: segment a: nobody's\n", True),
        ("  warning TIER-ORPHAN (1): objects\n    clicks-0: segment a: nobody's\n", False),
        ("  warning TIER-ORPHAN (2): objects\n    payments-0: segment a\n    clicks-0: b\n", False),
        ("  warning TIER-UNREFERENCED (1): objects\n    payments-0: segment a\n", False),
        ("", False),
    ],
    ids=["planted", "another", "both", "not-proved", "nothing"],
)
def test_audit_when_it_names_an_orphan_then_the_planted_one(found: str, is_right: bool) -> None:
    """The check fails for any orphan but the planted one."""
    assert _names(f"Dirty: 30 objects\nfindings, the worst first:\n{found}") is is_right


@pytest.mark.parametrize(
    ("asked_s", "took_ms", "points"),
    [
        (11.0, 5.0, [(1.0, 5.0)]),
        (9.9, 500.0, [(0.0, 500.0)]),
        (11.9, 4_000.0, [(1.9, 4_000.0)]),
        (9.0, 5.0, None),
        (12.1, 5.0, None),
    ],
    ids=["within", "begun-before", "answered-after", "before", "after"],
)
def test_stalls_when_any_part_of_the_replay_falls_into_a_look_up_then_it_counts(
    asked_s: float, took_ms: float, points: list[tuple[float, float]] | None
) -> None:
    """A look-up counts when any part of the replay falls into it."""
    found = stalls_of([(asked_s, took_ms)], 10.0, 2.0)
    assert (found and [(round(at_s, 3), ms) for at_s, ms in found.points]) == points


def test_local_bytes_when_a_file_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that the broker deletes meanwhile counts as zero bytes."""
    world = MadeUpWorld(tmp_path, tmp_path / "socket")
    kept, gone = tmp_path / "00.log", tmp_path / "01.log"
    kept.write_bytes(b"12345")
    monkeypatch.setattr(world, "log_files", lambda: [kept, gone])
    assert world.local_bytes() == 5


class AuditedWorld:
    """Keeps the words of the audit."""

    def __init__(self) -> None:
        self.store = self
        self.words: list[str] = []

    def flags(self) -> list[str]:
        return []

    def metadata_flags(self) -> tuple[str, ...]:
        return "--log-dirs", "topic"

    def run(self, words: list[str], *_: str, finds: bool) -> str:
        assert finds, "an orphan is a finding"
        self.words = words
        return ""


def test_audit_when_the_orphan_was_planted_this_instant_then_counts_it() -> None:
    """The audit's limit of age is below the time that any process takes to start."""
    stage, world = DemoStage(), AuditedWorld()
    with stage.screen("disaster", "An orphan is found.") as screen:
        _audit(screen, cast("DemoWorld", world))
    limit = world.words[world.words.index("--min-age") + 1]
    min_age_ms = POSITIVE_TIME.convert(limit, None, None)
    rules = AuditRules(now_ms=1_001, seen_ms=1_001, min_age_ms=min_age_ms)
    assert rules.is_old(1_000)
