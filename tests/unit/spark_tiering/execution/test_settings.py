"""Settings of an engine."""

from __future__ import annotations

import pytest

from rlmm.errors import ConfigError
from spark_tiering.execution.settings import (
    ExecutionSettings,
    is_submitted,
    retrying,
    seconds_of,
    standalone_masters,
)


def test_settings_when_they_cannot_be_meant_then_are_refused() -> None:
    """A number of slots below one, or a master with a blank, is refused."""
    with pytest.raises(ConfigError, match="0 slots"):
        ExecutionSettings(slots=0)
    with pytest.raises(ConfigError, match="no master"):
        ExecutionSettings("local [2]")


def test_process_when_spark_submit_has_started_it_then_knows_that() -> None:
    """The variable with the port of the Java process shows that spark-submit started us."""
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not is_submitted({})


@pytest.mark.parametrize(
    ("master", "repeating", "is_here", "is_connect", "places"),
    [
        (None, None, False, False, None),
        ("local", "local[1,4]", True, False, []),
        ("local[3]", "local[3,4]", True, False, []),
        ("local[*]", "local[*,4]", True, False, []),
        ("local[3,1]", "local[3,1]", True, False, []),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]", True, False, []),
        ("spark://host:7077", "spark://host:7077", False, False, [("host", 7077)]),
        ("spark://one:7,two:8", "spark://one:7,two:8", False, False, [("one", 7), ("two", 8)]),
        ("spark://[::1]:7077", "spark://[::1]:7077", False, False, [("::1", 7077)]),
        ("spark://host", "spark://host", False, False, []),
        ("spark://host:70777", "spark://host:70777", False, False, []),
        ("yarn", "yarn", False, False, []),
        ("k8s://https://host:6443", "k8s://https://host:6443", False, False, []),
        ("sc://host", "sc://host", False, True, []),
    ],
)
def test_master_when_read_then_says_where_spark_runs(
    master: str | None,
    repeating: str | None,
    is_here: bool,
    is_connect: bool,
    places: list[tuple[str, int]] | None,
) -> None:
    """A master tells where Spark runs, and a local one lets Spark repeat tasks as others do."""
    settings = ExecutionSettings(master)
    assert (settings.is_on_this_machine, settings.is_connect) == (is_here, is_connect)
    if master is not None:
        assert (retrying(master), standalone_masters(master)) == (repeating, places)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2s", 2.0),
        ("1500ms", 1.5),
        ("250", 0.25),
        (" 3 MIN ", 180.0),
        ("1h", 3_600.0),
        ("2 weeks", 0.0),
        ("soon", 0.0),
    ],
)
def test_duration_when_it_is_said_in_a_unit_then_is_in_seconds(text: str, seconds: float) -> None:
    """Spark's durations are read in seconds, and a number without unit is milliseconds."""
    assert seconds_of(text) == pytest.approx(seconds)
