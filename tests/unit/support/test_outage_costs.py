"""Bounds for a broker's log lines in an outage."""

from __future__ import annotations

import pytest

from tests.support.plugin.outage_costs import COMPLAINT, Account, Lived
from tests.support.plugin.outage_plans import Moment, Outage, Step

STEP = Step(Outage.SIDECAR_KILLED, Moment.RECORD_READ, 1, 0, is_waited_for=True)
TIERING = (
    "12:00:00.000 ERROR [remote-log-reader-1] org.apache.kafka.server.log.remote.storage.X - e"
)
OURS = "12:00:00.000 WARN  [rlmm-link-1] io.rlmm.kafka.link.Link - The connection is lost"
OTHER = "12:00:00.000 ERROR [main] kafka.server.X - of its own"


@pytest.mark.parametrize(
    ("errors", "warnings", "is_too_much"),
    [
        pytest.param([TIERING] * 30, [OURS], False, id="two-readers-of-3-s"),
        pytest.param([TIERING] * 41, [], True, id="a-storm"),
        pytest.param([OTHER] * 4, [], True, id="others"),
        pytest.param([], [OURS] * 5, True, id="warnings"),
    ],
)
def test_an_outage_when_judged_then_a_storm_in_the_log_is_told_with_its_figures(
    errors: list[str], warnings: list[str], *, is_too_much: bool
) -> None:
    """Errors of tiering are bounded by the time that it lasted, all others by the outages."""
    told = Account([Lived([STEP], 3.0, errors, warnings)]).too_much()
    assert bool(told) == is_too_much
    assert all("more than" in line and "in 3.0 s" in line for line in told)


@pytest.mark.parametrize(("line", "is_one"), [(TIERING, True), (OURS, True), (OTHER, False)])
def test_line_when_of_tiering_then_is_a_complaint(line: str, *, is_one: bool) -> None:
    """Lines of the broker about itself are no complaint."""
    assert bool(COMPLAINT.search(line)) == is_one
