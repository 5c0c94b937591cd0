"""What `bench hostile` makes of a shape that misses a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import hostile
from bench.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

SHAPE = next(hostile.shapes(has_tls=False))


def judged(
    monkeypatch: pytest.MonkeyPatch, values: Sequence[float], times: hostile.Times
) -> tuple[float, int]:
    """Return the value that counts, and how many of *values* were measured."""
    left = list(values)

    def measured(*_: Any, **__: Any) -> list[Figure]:
        return [Figure("ping p99", left.pop(0), "ms", at_most=20.0)]

    monkeypatch.setattr(hostile, "measure_shape", measured)
    (figure,) = hostile._judged(times, SHAPE, has_tls=False)
    return figure.value, len(values) - len(left)


def test_shape_when_it_misses_a_limit_then_the_median_of_three_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first measurement counts where it meets the limits, and in a short run."""
    assert judged(monkeypatch, (19.0, 30.0, 30.0), hostile.FULL) == (19.0, 1)
    assert judged(monkeypatch, (30.0, 21.0, 5.0), hostile.FULL) == (21.0, 3)
    assert judged(monkeypatch, (30.0, 4.0, 5.0), hostile.FULL) == (5.0, 3)
    assert judged(monkeypatch, (30.0, 4.0, 5.0), hostile.QUICK) == (30.0, 1)
