"""Which lines are repeats of one another."""

from __future__ import annotations

import logging

from rlmm.telemetry.repeats import TEMPLATES_MAX, Repeated, Repeats

AWAY = ("rlmm.pump", logging.WARNING, "broker %d is away")


def test_line_when_repeated_then_so_many_are_written_and_the_rest_counted() -> None:
    """The first ones are written; what is held back is told when the window is over, once."""
    repeats = Repeats(repeats_max=2, window_ms=100)
    assert [repeats.admits(*AWAY, now_ms) for now_ms in (0, 1, 2, 99)] == [True, True, False, False]
    assert repeats.due(99) == []
    assert repeats.due(100) == [Repeated(*AWAY, suppressed=2)]
    assert repeats.due(100) == []


def test_line_when_its_window_is_over_then_is_written_again() -> None:
    """A window begins with the first line in it."""
    repeats = Repeats(repeats_max=1, window_ms=100)
    assert repeats.admits(*AWAY, 50)
    assert not repeats.admits(*AWAY, 149)
    assert repeats.due(150)
    assert repeats.admits(*AWAY, 150)


def test_lines_when_logger_level_or_template_differ_then_are_no_repeats() -> None:
    """Only what is the same line of code is the same."""
    repeats = Repeats(repeats_max=1, window_ms=100)
    assert repeats.admits(*AWAY, 0)
    assert repeats.admits("rlmm.gate", AWAY[1], AWAY[2], 0)
    assert repeats.admits(AWAY[0], logging.ERROR, AWAY[2], 0)
    assert repeats.admits(AWAY[0], AWAY[1], "another", 0)
    assert not repeats.admits(*AWAY, 0)


def test_window_when_nothing_was_held_back_then_is_not_told() -> None:
    """Silence about silence."""
    repeats = Repeats(repeats_max=1, window_ms=100)
    assert repeats.admits(*AWAY, 0)
    assert repeats.due(1_000) == []


def test_lines_when_too_many_differ_then_are_written_uncounted() -> None:
    """The memory of templates is bounded, and what is beyond it is never lost."""
    repeats = Repeats(repeats_max=1, window_ms=100)
    for number in range(TEMPLATES_MAX):
        assert repeats.admits("x", 0, str(number), 0)
    assert all(repeats.admits(*AWAY, 0) for _ in range(3))
    assert not repeats.admits("x", 0, "1", 0)


def test_counts_when_it_ends_then_are_all_told() -> None:
    """The last lines of a process do not hide how many there were."""
    repeats = Repeats(repeats_max=1, window_ms=100)
    for _ in range(3):
        repeats.admits(*AWAY, 0)
    assert repeats.due(None) == [Repeated(*AWAY, suppressed=2)]
