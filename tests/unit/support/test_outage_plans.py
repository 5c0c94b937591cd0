"""Plans of outages: decided by the seed alone, every kind in its turn."""

from __future__ import annotations

from collections import Counter

from tests.support.plugin.outage_plans import BROKER_OUTAGES, SIDECAR_OUTAGES, Moment, Outage, plan

ALL = BROKER_OUTAGES + SIDECAR_OUTAGES


def test_a_plan_when_made_from_the_same_seed_then_is_the_same_and_from_another_is_not() -> None:
    """One seed gives one plan."""
    assert plan(7, 20, ALL) == plan(7, 20, ALL)
    assert plan(7, 20, ALL) != plan(8, 20, ALL)


def test_a_plan_when_long_enough_then_has_every_outage_and_every_moment_equally_often() -> None:
    """Chance decides the order, not whether something is left out."""
    steps = plan(7, 6 * len(Moment), ALL)
    assert set(Counter(step.outage for step in steps).values()) == {len(Moment)}
    assert set(Counter(step.moment for step in steps).values()) == {6}


def test_a_plan_when_it_ends_then_waits_until_all_is_well_again() -> None:
    """The last outage waits until all is well."""
    plans = [plan(seed, 3, ALL) for seed in range(50)]
    assert all(steps[-1].is_waited_for for steps in plans)
    assert any(not step.is_waited_for for steps in plans for step in steps)


def test_outages_when_told_apart_then_each_ends_the_broker_the_service_or_both() -> None:
    """The outage that kills both counts for the broker and the service."""
    assert all(one.ends_broker or one.ends_sidecar for one in Outage)
    assert [one for one in Outage if one.ends_broker and one.ends_sidecar] == [Outage.BOTH_KILLED]
