"""The pinned versions fit the project file: none is missing, too old, or pinned in two ways."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.support.repository import tree
from tools.constraints import (
    development_requirements,
    group_requirements,
    runtime_requirements,
)

DEV = "constraints/dev.txt"
PROJECT = tomllib.loads(tree.read(Path("pyproject.toml")))
RUNTIME = runtime_requirements(PROJECT)
DEVELOPMENT = [*development_requirements(PROJECT), *PROJECT["build-system"]["requires"]]


def pinned(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", tree.read(Path(name)), re.MULTILINE))


@pytest.mark.parametrize(
    ("name", "requirements"),
    [("constraints/runtime.txt", RUNTIME), (DEV, DEVELOPMENT)],
    ids=["runtime", "dev"],
)
def test_constraints_pin_every_requirement(name: str, requirements: list[str]) -> None:
    """Each direct dependency is pinned at a version that its lower bound allows."""
    versions = pinned(name)
    wanted = [Requirement(text) for text in requirements]
    assert not [
        str(requirement)
        for requirement in wanted
        if versions.get(requirement.name, "") not in requirement.specifier
    ]


def test_constraints_when_python_is_any_tested_one_then_can_be_installed() -> None:
    """No pinned package refuses a Python that the project supports, which pip finds out late."""
    pythons = [f"3.{minor}.0" for minor in (11, 12, 13)]
    wanted = {name: metadata(name).get_all("Requires-Python", [""])[0] for name in pinned(DEV)}
    assert not {
        name: text
        for name, text in wanted.items()
        if len(list(SpecifierSet(text).filter(pythons))) < len(pythons)
    }


def test_constraints_agree_on_what_they_share() -> None:
    """Both files of constraints have the same version of each shared package."""
    development = pinned(DEV)
    assert pinned("constraints/runtime.txt").items() <= development.items()


def test_group_requirements_includes_groups_of_groups() -> None:
    """A group that includes others stands for all that they ask for."""
    groups: dict[str, list[Any]] = {
        "a": ["x>=1"],
        "b": [{"include-group": "a"}, "y"],
        "c": [{"include-group": "b"}],
    }
    assert group_requirements(groups, "c") == ["x>=1", "y"]
