"""Corpus of scenario files, read strictly: a refusal names file, scenario and step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import msgspec
from msgspec import Meta

from rlmm.errors import ConfigError
from rlmm.metadata.outcomes import Level
from rlmm_conformance.answers import check_expectation
from rlmm_conformance.fields import FieldError, Form, Json, Label, read
from rlmm_conformance.rules import ConformanceRule, Rules
from rlmm_conformance.steps import Operation, StepOperation, parse_op, parse_operation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PACKAGED = "kafka_cache_vectors.json"

_EXPECTATION_KEYS = ("expect", "expect_fixed")
_FIXED_RULES: Rules = frozenset({ConformanceRule.KAFKA_20932})


class _Expected(msgspec.Struct, frozen=True):
    expect: Any


class ScenarioForm(Form, frozen=True):
    """A scenario as a file holds it; no answer depends on source, notes and quirk."""

    name: Label
    level: Level
    steps: Annotated[list[Any], Meta(min_length=1)]
    initialized: bool = False
    source: str | bool | None = None
    notes: str | bool | None = None
    quirk: str | bool | None = None


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """Holds one operation with its expectation; *number* counts from 1."""

    number: int
    operation: Operation
    expected: Json
    """The answer that an engine must give: `expect_fixed` where the file has one, else `expect`."""
    base: Rules
    """The rules under which `expected` is the model's answer."""
    unfixed: Json
    """Kafka's own answer: `expect`."""

    @property
    def op(self) -> StepOperation:
        return self.operation.op


@dataclass(frozen=True, slots=True)
class Scenario:
    """A history from an empty state, with questions in between; the order of its steps matters."""

    file: str
    name: str
    level: Level
    initialized: bool
    steps: tuple[ScenarioStep, ...]
    quirk: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    file: str
    scenarios: tuple[Scenario, ...]


def load_packaged() -> Corpus:
    text = resources.files("rlmm_conformance.data").joinpath(PACKAGED).read_text("utf-8")
    return parse_corpus(PACKAGED, parse_json(PACKAGED, text))


def load_corpus(path: Path) -> Corpus:
    return parse_corpus(str(path), parse_json(str(path), read_text(path)))


def read_text(path: Path) -> str:
    """Read the whole file as text; raises `ConfigError`."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a text in UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error


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
        raise ConfigError(f"{file}: not JSON: {error}") from error


def _object_without_repeats(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    content: dict[str, Json] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"key {key!r} stands twice in one object")
        content[key] = value
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def parse_corpus(file: str, content: Json) -> Corpus:
    """Read the content of a scenario file; raises `ConfigError`."""
    if not isinstance(content, list):
        raise ConfigError(f"{file}: must be a list of scenarios, found {type(content).__name__}")
    if not content:
        raise ConfigError(f"{file}: holds no scenario")
    scenarios: dict[str, Scenario] = {}
    for number, entry in enumerate(content, start=1):
        scenario = _scenario(file, number, entry)
        if scenario.name in scenarios:
            raise ConfigError(f"{file}: scenario '{scenario.name}': the name stands twice")
        scenarios[scenario.name] = scenario
    return Corpus(file, tuple(scenarios.values()))


def _scenario(file: str, number: int, entry: Json) -> Scenario:
    where = f"{file}: scenario {number}"
    try:
        name = entry.get("name") if isinstance(entry, dict) else None
        if name is not None:
            where = f"{file}: scenario '{read(Label, name)}'"
        form: ScenarioForm = read(ScenarioForm, entry, with_any_text=True)
    except FieldError as error:
        raise ConfigError(f"{where}: {error}") from error
    return Scenario(
        file=file,
        name=form.name,
        level=form.level,
        initialized=form.initialized
        and form.level is Level.CACHE,  # partitions of a store have their own
        steps=tuple(
            _step(where, at, step, form.level) for at, step in enumerate(form.steps, start=1)
        ),
        quirk=None if form.quirk is None else str(form.quirk),
    )


def _step(scenario: str, number: int, entry: Json, level: Level) -> ScenarioStep:
    where = f"{scenario}: step {number}"
    try:
        step: dict[str, Json] = read(dict[str, Any], entry)
        op = parse_op(step)
        where = f"{where} ({op})"
        arguments = {key: value for key, value in step.items() if key not in _EXPECTATION_KEYS}
        operation = parse_operation(arguments, level)
        unfixed = check_expectation(op, read(_Expected, step).expect)
        if "expect_fixed" not in step:
            return ScenarioStep(number, operation, unfixed, frozenset(), unfixed)
        fixed = check_expectation(op, step["expect_fixed"])
        return ScenarioStep(number, operation, fixed, _FIXED_RULES, unfixed)
    except FieldError as error:
        raise ConfigError(f"{where}: {error}") from error
