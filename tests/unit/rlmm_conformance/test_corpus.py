"""Scenario files: accepted forms, and refusals of wrong ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.errors import ConfigError
from rlmm.metadata.outcomes import Level
from rlmm_conformance.corpus import load_corpus, load_packaged, parse_corpus
from rlmm_conformance.steps import (
    AddStep,
    PartitionCall,
    StepOperation,
    UpdateStep,
    parse_operation,
    request_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm_conformance.fields import Json

ADD: dict[str, Json] = {
    "op": "add", "id": "a", "start": 0, "end": 9, "epochs": {"0": 0}, "expect": "applied",
}  # fmt: skip
GET: dict[str, Json] = {"op": "get", "epoch": 0, "offset": 5, "expect": None}


def file_of(*steps: Json, **changes: Json) -> list[Json]:
    entry: dict[str, Json] = {"name": "one", "level": "store", "source": "derived"}
    return [entry | {"steps": list(steps)} | changes]


def without(step: dict[str, Json], key: str) -> dict[str, Json]:
    return {name: value for name, value in step.items() if name != key}


BAD_FILES: dict[str, tuple[str, str]] = {
    "not JSON": ("{", "not JSON"),
    "not a list": ("{}", "list of scenarios"),
    "no scenario": ("[]", "no scenario"),
    "NaN": ("[NaN]", "NaN"),
    "key twice": ('[{"name": "one", "name": "two"}]', "'name' stands twice"),
    "too deep": ("[" * 100_000, "not JSON"),
    "number too long": ("1" * 5_000, "not JSON"),
}
"""Text of a file -> what the message says beside the file."""

BAD_SCENARIOS: dict[str, tuple[Json, str]] = {
    "not an object": ([1], "scenario 1: "),
    "no name": ([{"level": "store", "steps": [GET]}], "scenario 1: Object missing required field"),
    "name with line feed": (file_of(GET, name="a\nb"), "scenario 1: Expected a printable text"),
    "no level": ([{"name": "one", "steps": [GET]}], "'one': Object missing required field"),
    "unknown level": (file_of(GET, level="shelf"), "'shelf' - at `$.level`"),
    "level of wrong type": (file_of(GET, level=["store"]), "got `array` - at `$.level`"),
    "no steps": ([{"name": "one", "level": "store"}], "required field `steps`"),
    "empty steps": (file_of(), "`array` of length >= 1 - at `$.steps`"),
    "steps of wrong type": (file_of(GET, steps={}), "got `object` - at `$.steps`"),
    "unknown field": (file_of(GET, colour="red"), "'one': Object contains unknown field `colour`"),
    "initialized of wrong type": (file_of(GET, level="cache", initialized=1), "`$.initialized`"),
    "quirk of wrong type": (file_of(GET, quirk=5), "got `int` - at `$.quirk`"),
    "name twice": (file_of(GET) * 2, "'one': the name stands twice"),
}
"""Content of a file -> what the message says beside the file."""

BAD_STEPS: dict[str, tuple[Json, str]] = {
    "not an object": ("get", "Expected `object`, got `str`"),
    "no op": ({"expect": None}, "names no 'op'"),
    "unknown op": (GET | {"op": "fetch"}, "unknown op 'fetch'"),
    "op of wrong type": (GET | {"op": ["get"]}, "unknown op"),
    "missing argument": (without(GET, "offset"), "(get): Object missing required field `offset`"),
    "unknown field": (GET | {"colour": 1}, "(get): Object contains unknown field `colour`"),
    "no expect": (without(GET, "expect"), "(get): Object missing required field `expect`"),
    "unknown error kind": (GET | {"expect": {"error": "bang"}}, "'bang' - at `$.error`"),
    "expect of wrong type": (GET | {"expect": 5}, "(get): 'expect'"),
    "expect_fixed of wrong type": (GET | {"expect_fixed": 5}, "(get): 'expect'"),
    "epoch as text": (GET | {"epoch": "0"}, "got `str` - at `$.epoch`"),
    "epoch as bool": (GET | {"epoch": True}, "got `bool` - at `$.epoch`"),
    "epoch too large": (GET | {"epoch": 2**31}, "<= 2147483647 - at `$.epoch`"),
    "offset as float": (GET | {"offset": 5.0}, "got `float` - at `$.offset`"),
    "offset too large": (GET | {"offset": 2**63}, "<= 9223372036854775807"),
    "tp of wrong type": (GET | {"tp": 0}, "(get): Expected `str`, got `int`"),
    "id empty": (ADD | {"id": ""}, "of length >= 1 - at `$.id`"),
    "unknown state": (ADD | {"state": "COPIED"}, "Invalid enum value 'COPIED'"),
    "state of another kind": (
        ADD | {"state": "DELETE_PARTITION_MARKED"},
        "(add): Invalid enum value",
    ),
    "unknown partition state": (
        {"op": "partition_delete", "state": "COPY_SEGMENT_STARTED", "expect": "applied"},
        "(partition_delete): Invalid enum value",
    ),
    "epochs of wrong type": (ADD | {"epochs": [0]}, "got `array` - at `$.epochs`"),
    "epoch key not decimal": (ADD | {"epochs": {"01": 0}}, "matching regex"),
    "epoch key too large": (ADD | {"epochs": {"2147483648": 0}}, "leader epoch of 32 bits"),
    "epoch offset of wrong type": (ADD | {"epochs": {"0": "0"}}, "`$.epochs[...]`"),
    "custom not hex": (ADD | {"custom": "0g"}, "matching regex"),
    "txn_empty as number": (ADD | {"txn_empty": 0}, "got `int` - at `$.txn_empty`"),
    "null with a field": ({"op": "add", "null": True, "id": "a", "expect": "applied"}, "alone"),
    "null for another op": (GET | {"null": True}, "Object contains unknown field `null`"),
    "null as number": (ADD | {"null": 1}, "Expected `bool`, got `int`"),
}
"""The second step of a scenario -> what the message says beside file, scenario and step."""


@pytest.mark.parametrize(
    ("content", "place", "says"),
    [
        *(pytest.param(text, ": ", says, id=name) for name, (text, says) in BAD_FILES.items()),
        *(
            pytest.param(json.dumps(content), ": scenario ", says, id=f"scenario, {name}")
            for name, (content, says) in BAD_SCENARIOS.items()
        ),
        *(
            pytest.param(
                json.dumps(file_of(ADD, step)), ": scenario 'one': step 2", says, id=f"step, {name}"
            )
            for name, (step, says) in BAD_STEPS.items()
        ),
    ],
)
def test_file_when_a_part_is_not_of_the_format_is_refused_with_its_place(
    tmp_path: Path, content: str, place: str, says: str
) -> None:
    """One line names file, scenario and step, the exit code is 2, and no result is printed."""
    path = tmp_path / "bad.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_corpus(path)
    message = " ".join(str(caught.value).split())
    result = CliRunner().invoke(cli, ["conformance", "run", "--vectors", str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"rlmm: config: {message}\n"
    assert message.startswith(f"{path}{place}")
    assert says in message


@pytest.mark.parametrize("op", ["load", "clear", "partition_delete", "partition_state"])
def test_step_when_it_needs_the_store_is_refused_at_cache_level(op: str) -> None:
    """Loading, clearing and deleting partitions exist at store level only."""
    with pytest.raises(ConfigError, match=f"'one': step 1 .*'{op}' exists at store level only"):
        parse_corpus("f", file_of({"op": op, "expect": "ok"}, level="cache"))


def test_tp_when_named_at_cache_level_is_refused() -> None:
    """A cache holds one user partition, which has no name."""
    with pytest.raises(ConfigError, match="Object contains unknown field `tp`"):
        parse_corpus("f", file_of(GET | {"tp": "tp1"}, level="cache"))


def test_file_when_it_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are no text end with 2 and one line."""
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    for name in ("missing.json", "", "bytes.json"):
        path = tmp_path / name
        result = CliRunner().invoke(cli, ["conformance", "run", "--vectors", str(path)])
        assert result.exit_code == 2
        assert result.stderr.startswith(f"rlmm: config: {path}: ")
        assert result.stderr.count("\n") == 1


def test_scenario_when_initialized_is_not_said_starts_without() -> None:
    """A cache starts uninitialised unless the scenario says otherwise."""
    entry = file_of(GET, level="cache")
    assert not parse_corpus("f", entry).scenarios[0].initialized


def test_step_when_defaults_are_left_out_gets_them() -> None:
    """A short step means the same as one with every default written out."""
    short = parse_operation(without(ADD, "expect"), Level.STORE)
    assert request_of(short, Level.STORE) == {
        "op": "add", "tp": "tp0", "id": "a", "start": 0, "end": 9, "epochs": {"0": 0},
        "state": "COPY_SEGMENT_STARTED", "size": 1_048_576, "broker": 0, "event_ts": 0,
        "max_ts": -1, "custom": None, "txn_empty": False,
    }  # fmt: skip


def test_step_when_null_means_a_null_argument() -> None:
    """Add and update may pass a null argument, in any user partition."""
    assert parse_operation({"op": "add", "null": True}, Level.CACHE) == AddStep("tp0", None)
    step: dict[str, Json] = {"op": "update", "null": True, "tp": "x"}
    assert parse_operation(step, Level.STORE) == UpdateStep("x", None)


def test_operation_when_sent_and_read_again_is_the_same() -> None:
    """Every operation of the packaged corpus survives the way over a pipe."""
    for scenario in load_packaged().scenarios:
        for step in scenario.steps:
            request = request_of(step.operation, scenario.level)
            assert parse_operation(request, scenario.level) == step.operation


def test_operations_when_no_file_uses_them_are_still_taken() -> None:
    """Operations and kinds of error that the packaged corpus never combines are of the format."""
    steps: list[Json] = [
        {"op": "epoch_state", "epoch": -1, "tp": "other", "expect": {"error": "not_ready"}},
        {"op": "clear", "expect": {"error": "illegal_state"}},
        {"op": "partition_state", "expect": {"error": "null_argument"}},
        {"op": "update", "null": True, "expect": {"error": "null_pointer"}},
        {"op": "list_epoch", "epoch": 0, "expect": ["a", ["b", "c"], "d"], "expect_fixed": []},
    ]
    scenario = parse_corpus("f", file_of(*steps)).scenarios[0]
    assert [step.number for step in scenario.steps] == [1, 2, 3, 4, 5]
    assert scenario.steps[1].operation == PartitionCall(StepOperation.CLEAR, "tp0")
    assert scenario.steps[4].expected == []


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"notes": "two\nlines and a\ttab"}, id="notes of several lines"),
        pytest.param({"notes": ""}, id="empty notes"),
        pytest.param({"quirk": True}, id="quirk as a mere mark"),
        pytest.param({"source": None}, id="null source"),
        pytest.param({"initialized": False}, id="initialized at store level"),
    ],
)
def test_scenario_when_written_for_readers_too_is_taken(extra: dict[str, Json]) -> None:
    """Texts for readers in a scenario do not matter."""
    assert len(parse_corpus("file.json", file_of(GET, **extra)).scenarios) == 1
