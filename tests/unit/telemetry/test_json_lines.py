"""A log line as one JSON object."""

from __future__ import annotations

import json
import logging

import pytest

from rlmm.telemetry.json_lines import JsonLineFormatter


def line(**changes: object) -> dict[str, object]:
    record = logging.makeLogRecord(
        {"name": "rlmm.pump", "levelname": "WARNING", "msg": "at %d", "args": (7,), "created": 0.5}
    )
    vars(record).update(changes)
    found: dict[str, object] = json.loads(JsonLineFormatter().format(record))
    return found


def test_line_when_it_has_fields_then_the_common_ones_stand_in_front() -> None:
    """Time, level, logger and message come first, then the place of the line, then the rest."""
    found = line(path="/data", offset=3, cluster="a", detail=None)
    assert list(found.items()) == [
        ("time", "1970-01-01T00:00:00.500Z"), ("level", "warning"), ("logger", "rlmm.pump"),
        ("message", "at 7"), ("cluster", "a"), ("offset", 3), ("path", "/data"), ("detail", None),
    ]  # fmt: skip


def test_line_when_a_field_bears_the_name_of_a_common_one_then_does_not_hide_it() -> None:
    """No field of a line passes for its time, level or logger."""
    found = line(time="never", level="none", logger="nobody")
    assert found == line()


def test_line_when_a_value_is_no_json_then_is_shown_as_python_does() -> None:
    """A value of any type makes a line."""
    assert line(folder={1, 2})["folder"] == "{1, 2}"


def test_line_when_an_error_belongs_to_it_then_has_its_traceback_last() -> None:
    """The traceback is one field, without a newline at its end."""
    with pytest.raises(ValueError, match="wrong") as caught:
        int("wrong")
    error = caught.value
    found = line(exc_info=(type(error), error, error.__traceback__), cluster="a")
    name, text = list(found.items())[-1]
    assert name == "exception"
    assert str(text).startswith("Traceback (most recent call last):\n")
    assert str(text).endswith("'wrong'")
