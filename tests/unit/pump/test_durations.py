"""How long something took: a histogram that Prometheus can read."""

import pytest

from rlmm.base.duration_histogram import BOUNDS_S, Durations


@pytest.mark.parametrize(
    ("duration_s", "bound"),
    [(0.0, "0.001"), (0.001, "0.001"), (0.0011, "0.0025"), (30.0, "30"), (30.1, "+Inf")],
)
def test_duration_when_added_then_counts_from_its_bound_on(duration_s: float, bound: str) -> None:
    """A bound holds all that took no longer, itself included."""
    durations = Durations()
    durations.add(duration_s)
    up_to = durations.statistics().up_to()
    assert next(name for name, count in up_to.items() if count) == bound


def test_durations_when_many_are_added_then_add_up() -> None:
    """Each bound counts all durations below it, and the last one counts all."""
    durations = Durations()
    for bound in (*BOUNDS_S, 1_000.0):
        durations.add(bound)
    found = durations.statistics()
    assert found.count == len(BOUNDS_S) + 1
    assert found.sum_s == pytest.approx(sum(BOUNDS_S) + 1_000.0)
    assert list(found.up_to().values()) == list(range(1, len(BOUNDS_S) + 2))
    assert list(found.up_to())[-1] == "+Inf"
