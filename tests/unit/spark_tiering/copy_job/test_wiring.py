"""The parts of a job, opened in order and closed the other way round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pytest

from rlmm.errors import StoreAbsent
from spark_tiering.copy_job import wiring
from spark_tiering.copy_job.request import ClusterAccess
from spark_tiering.copy_job.wiring import open_surroundings
from spark_tiering.execution.settings import ExecutionSettings
from spark_tiering.job_registry.ids import began_ms
from tests.support.tier.job_parts import NOW_MS, job_parts

if TYPE_CHECKING:
    from types import TracebackType

REQUEST = replace(
    job_parts().request,
    cluster=ClusterAccess("a:9092", "/client.properties", 7.0),
    engine=ExecutionSettings("local[1]"),
)


class Part:
    def __init__(self, name: str, told: list[str]) -> None:
        self.name = name
        self._told = told
        told.append(f"open {name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._told.append(f"close {self.name}")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    parts = {
        "open_source": "source",
        "open_store": "store",
        "TierCluster": "cluster",
        "open_metadata_access": "metadata",
        "open_engine": "engine",
    }
    for opener, name in parts.items():
        monkeypatch.setattr(wiring, opener, lambda *_, name=name: Part(name, told))
    return told


def test_parts_when_opened_then_are_closed_the_other_way_round(told: list[str]) -> None:
    """Parts close in the reverse order of their opening."""
    with open_surroundings(REQUEST, now_ms=lambda: NOW_MS) as at:
        assert began_ms(at.job_id) == NOW_MS
        assert told == ["open source", "open store", "open cluster", "open metadata"]
    closed = ["close metadata", "close cluster", "close store", "close source"]
    assert told[4:] == closed


def test_cluster_when_none_is_named_then_none_is_reached(told: list[str]) -> None:
    """Without a named cluster the job contacts none."""
    with open_surroundings(replace(REQUEST, cluster=None)) as at:
        assert at.cluster is None
    assert not [one for one in told if "cluster" in one]


def test_engine_when_it_is_first_needed_then_is_opened_once_and_ends_first(told: list[str]) -> None:
    """The engine opens once, at its first use, and closes first."""
    with open_surroundings(REQUEST) as at:
        assert "open engine" not in told
        engine = at.engine()
        assert at.engine() is engine
        assert at.with_request(replace(REQUEST, prefix="x/")).engine() is engine
    assert told.count("open engine") == 1
    assert told[-5:][0] == "close engine"


def test_engine_that_is_given_when_the_job_is_over_then_stays_open(told: list[str]) -> None:
    """An engine that the caller passed in stays open after the job."""
    given: Any = Part("given", told)
    with open_surroundings(REQUEST, engine=given) as at:
        assert at.engine() is given
    assert "close given" not in told
    assert "open engine" not in told


def test_unopened_part_closes_earlier(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that cannot be opened closes the earlier ones and raises its own error."""

    def fail(*_: object) -> Part:
        msg = "nobody made it"
        raise StoreAbsent(msg)

    monkeypatch.setattr(wiring, "open_store", fail)
    with pytest.raises(StoreAbsent), open_surroundings(REQUEST):
        pytest.fail("it was opened")
    assert told == ["open source", "close source"]


def test_parts_for_another_request_when_made_then_are_the_same_ones(told: list[str]) -> None:
    """Parts made for another request share store, metadata and job id."""
    with open_surroundings(REQUEST) as at:
        other = at.with_request(replace(REQUEST, prefix="x/"))
        assert (other.job_id, other.store, other.metadata) == (at.job_id, at.store, at.metadata)
        assert (other.source, other.cluster) == (at.source, at.cluster)
        assert other.request.prefix == "x/"
        assert other.jobs.jobs_folder == "x/rlmm-jobs/jobs/"
        own = at.open_own_store()
        assert own is not at.store
