"""How units become jobs by mapInArrow."""

from __future__ import annotations

from itertools import chain

from spark_tiering.execution.arrow import JOB_BYTES_MAX, portions_of


def test_units_when_they_are_small_then_are_one_job() -> None:
    """Small units form one job, since between jobs most slots are idle."""
    parcels = [(number, b"x") for number in range(1_000)]
    assert portions_of(parcels, JOB_BYTES_MAX) == [parcels]
    assert portions_of([], JOB_BYTES_MAX) == []


def test_units_when_they_are_many_bytes_then_no_job_has_more_than_its_limit() -> None:
    """No job has more bytes of units than the limit, and a unit above it is a job alone."""
    sizes = [40, 60, 1, 99, 1, 101, 5]
    parcels = [(number, bytes(size)) for number, size in enumerate(sizes)]
    jobs = portions_of(parcels, 100)
    assert [[len(unit) for _, unit in job] for job in jobs] == [[40, 60], [1, 99], [1], [101], [5]]
    assert list(chain(*jobs)) == parcels
