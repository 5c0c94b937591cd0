"""
Scenario files: loading, and a strict reading into frozen values.

Any file of the format is taken, and nothing else: whatever the format does not name is refused with
one line that says which file, which scenario and which step. Nothing of a file is run before all of
it has been read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, NoReturn, cast

from rlmm.errors import ConfigError
from rlmm.metadata.outcomes import Level
from rlmm_conformance.answers import check_expectation
from rlmm_conformance.fields import FieldError, Json, flag_of, list_of, refuse, text_of
from rlmm_conformance.rules import ConformanceRule, Rules
from rlmm_conformance.steps import Operation, StepOperation, parse_op, parse_operation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PACKAGED = "kafka_cache_vectors.json"
"""The corpus that is carried with the package."""

_EXPECTATION_KEYS = ("expect", "expect_fixed")
_SCENARIO_KEYS = ("name", "level", "initialized", "source", "quirk", "notes", "steps")
_FREE_TEXTS = ("source", "notes", "quirk")
_NO_RULES: Rules = frozenset()
_FIXED_RULES: Rules = frozenset({ConformanceRule.KAFKA_20932})


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One operation with what is expected of it; *number* counts from 1."""

    number: int
    operation: Operation
    expected: Json
    """What an engine must answer: `expect_fixed` where the file has one, else `expect`."""
    base: Rules
    """The rules under which `expected` is the model's answer."""
    unfixed: Json
    """Kafka's own answer: `expect`."""

    @property
    def op(self) -> StepOperation:
        return self.operation.op


@dataclass(frozen=True, slots=True)
class Scenario:
    """A history from nothing, with questions in between; the order of its steps matters."""

    file: str
    name: str
    level: Level
    initialized: bool
    steps: tuple[ScenarioStep, ...]
    quirk: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """All scenarios of one file, in its order."""

    file: str
    scenarios: tuple[Scenario, ...]


def load_packaged() -> Corpus:
    """The corpus that is carried with the package."""
    text = resources.files("rlmm_conformance.data").joinpath(PACKAGED).read_text("utf-8")
    return parse_corpus(PACKAGED, parse_json(PACKAGED, text))


def load_corpus(path: Path) -> Corpus:
    """Read a scenario file; raises `ConfigError`."""
    return parse_corpus(str(path), parse_json(str(path), read_text(path)))


def read_text(path: Path) -> str:
    """The whole file as text; raises `ConfigError`."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path}: not a text in UTF-8 (byte {error.start})"
        raise ConfigError(msg) from error
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror or error}"
        raise ConfigError(msg) from error


def parse_json(file: str, text: str) -> Json:
    """Parse strict JSON: no key twice, no NaN; raises `ConfigError`."""
    try:
        return cast(
            "Json",
            json.loads(
                text, object_pairs_hook=_object_without_repeats, parse_constant=_no_constant
            ),
        )
    except (ValueError, RecursionError) as error:
        msg = f"{file}: not JSON: {error}"
        raise ConfigError(msg) from error


def _object_without_repeats(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    content: dict[str, Json] = {}
    for key, value in pairs:
        if key in content:
            msg = f"key {key!r} stands twice in one object"
            raise ValueError(msg)
        content[key] = value
    return content


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is not a number"
    raise ValueError(msg)


def parse_corpus(file: str, content: Json) -> Corpus:
    """Read the content of a scenario file; raises `ConfigError`."""
    if not isinstance(content, list):
        msg = f"{file}: must be a list of scenarios, found {type(content).__name__}"
        raise ConfigError(msg)
    if not content:
        msg = f"{file}: holds no scenario"
        raise ConfigError(msg)
    scenarios: dict[str, Scenario] = {}
    for number, entry in enumerate(content, start=1):
        scenario = _scenario(file, number, entry)
        if scenario.name in scenarios:
            msg = f"{file}: scenario '{scenario.name}': the name stands twice"
            raise ConfigError(msg)
        scenarios[scenario.name] = scenario
    return Corpus(file, tuple(scenarios.values()))


def _scenario(file: str, number: int, entry: Json) -> Scenario:
    where = f"{file}: scenario {number}"
    try:
        if not isinstance(entry, dict):
            raise refuse("scenario", "an object", entry)
        name = text_of("name", _required(entry, "name"))
        where = f"{file}: scenario '{name}'"
        level, initialized = _level(entry)
        quirk = _quirk(entry)
        steps = _listed_steps(entry)
    except FieldError as error:
        raise ConfigError(f"{where}: {error}") from error
    return Scenario(
        file=file,
        name=name,
        level=level,
        initialized=initialized,
        steps=tuple(_step(where, at, step, level) for at, step in enumerate(steps, start=1)),
        quirk=quirk,
    )


def _quirk(entry: dict[str, Json]) -> str | None:
    """What is said to be odd; on the way, fields that a scenario does not have are refused."""
    for key in entry:
        if key not in _SCENARIO_KEYS:
            raise FieldError(f"a scenario has no field '{key}'")
    for key in _FREE_TEXTS:
        # Written for readers: whatever stands there, no answer depends on it.
        if not isinstance(entry.get(key), str | bool | None):
            raise refuse(key, "text", entry[key])
    quirk = entry.get("quirk")
    return None if quirk is None else str(quirk)


def _listed_steps(entry: dict[str, Json]) -> list[Json]:
    steps = list_of("steps", _required(entry, "steps"))
    if not steps:
        raise FieldError("has no steps")
    return steps


def _required(entry: dict[str, Json], key: str) -> Json:
    if key not in entry:
        raise FieldError(f"misses '{key}'")
    return entry[key]


def _level(entry: dict[str, Json]) -> tuple[Level, bool]:
    """The level, and whether a cache starts initialised: only if it is said."""
    value = _required(entry, "level")
    if not isinstance(value, str) or value not in set(Level):
        raise refuse("level", " or ".join(f"'{level}'" for level in Level), value)
    level = Level(value)
    initialized = "initialized" in entry and flag_of("initialized", entry["initialized"])
    return level, initialized and level is Level.CACHE  # a store's partitions have their own


def _step(scenario: str, number: int, step: Json, level: Level) -> ScenarioStep:
    where = f"{scenario}: step {number}"
    try:
        if not isinstance(step, dict):
            raise refuse("step", "an object", step)
        op = parse_op(step)
        where = f"{where} ({op})"
        asked = {key: value for key, value in step.items() if key not in _EXPECTATION_KEYS}
        operation = parse_operation(asked, level)
        unfixed = check_expectation(op, _required(step, "expect"))
        if "expect_fixed" not in step:
            return ScenarioStep(number, operation, unfixed, _NO_RULES, unfixed)
        fixed = check_expectation(op, step["expect_fixed"])
        return ScenarioStep(number, operation, fixed, _FIXED_RULES, unfixed)
    except FieldError as error:
        raise ConfigError(f"{where}: {error}") from error
