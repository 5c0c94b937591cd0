"""Settings of an engine."""

from __future__ import annotations

import pytest

from rlmm.errors import ConfigError
from spark_tiering.execution.settings import (
    ExecutionSettings,
    is_submitted,
    retrying,
    standalone_masters,
)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3,1]", "local[3,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
        ("k8s://https://host:6443", "k8s://https://host:6443"),
    ],
)
def test_master_when_it_is_this_machine_then_tasks_are_tried_again(said: str, meant: str) -> None:
    """A local master lets Spark repeat a task; other masters keep their own number."""
    assert retrying(said) == meant


def test_settings_when_they_cannot_be_meant_then_are_refused() -> None:
    """A number of slots below one, or a master with a blank, is refused."""
    with pytest.raises(ConfigError, match="0 slots"):
        ExecutionSettings(slots=0)
    with pytest.raises(ConfigError, match="no master"):
        ExecutionSettings("local [2]")


@pytest.mark.parametrize(
    ("master", "is_here", "is_connect"),
    [
        (None, False, False),
        ("local[2]", True, False),
        ("local-cluster[2,1,1024]", True, False),
        ("yarn", False, False),
        ("sc://host", False, True),
    ],
)
def test_settings_tell_where_spark_is(master: str | None, is_here: bool, is_connect: bool) -> None:
    """The settings tell whether Spark runs here, in a cluster or behind a connect address."""
    settings = ExecutionSettings(master)
    assert (settings.is_on_this_machine, settings.is_connect) == (is_here, is_connect)


def test_process_when_spark_submit_has_started_it_then_knows_that() -> None:
    """The variable with the port of the Java process shows that spark-submit started us."""
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not is_submitted({})


@pytest.mark.parametrize(
    ("master", "places"),
    [
        ("spark://host:7077", [("host", 7077)]),
        ("spark://one:7077,two:7078", [("one", 7077), ("two", 7078)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("spark://host", []),
        ("spark://host:70777", []),
        ("k8s://https://host:6443", []),
        ("yarn", []),
        ("local[2]", []),
    ],
)
def test_standalone_master_has_its_addresses(master: str, places: list[tuple[str, int]]) -> None:
    """A standalone master gives each host's address; a wrong one is left for Spark to refuse."""
    assert standalone_masters(master) == places
