"""The register of findings: codes are an interface, and each of them is met in a test."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import pytest

import rlmm.findings
import rlmm.inspection
from rlmm.cli.common.commands import SUBCOMMANDS
from rlmm.cli.tier.command import tier
from rlmm.findings.finding import FindingKind
from rlmm.inspection.finding_kinds import BY_COMMAND, KINDS
from rlmm.inspection.verify import broken_rules

if TYPE_CHECKING:
    from rlmm.metadata.shard import Shard

TESTS = Path(__file__).resolve().parents[2]


def registered() -> dict[FindingKind, str]:
    found = {}
    for package in (rlmm.findings, rlmm.inspection):
        for module in pkgutil.iter_modules(package.__path__):
            values = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            found.update(
                {one: name for name, one in values.items() if isinstance(one, FindingKind)}
            )
    return found


def test_kinds_when_collected_then_are_all_there_are_and_each_once() -> None:
    """A module that is forgotten here is forgotten on the page, too."""
    assert set(registered()) == set(KINDS)
    assert [code for code, count in Counter(one.code for one in KINDS).items() if count > 1] == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.code)
def test_kind_when_read_then_is_a_code_and_three_texts(kind: FindingKind) -> None:
    """The texts of a kind end without a full stop, because messages join them."""
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*", kind.code)
    for text in (kind.title, kind.reason, kind.fix):
        assert text
        assert not text.endswith(".")
        assert text == " ".join(text.split())


def test_kinds_when_they_name_a_command_then_there_is_one() -> None:
    """Every command in a text exists, with its flags."""
    named = {
        command
        for kind in KINDS
        for command in re.findall(r"`rlmm ((?:tier )?[a-z-]+)", f"{kind.reason} {kind.fix}")
    }
    assert named
    of_tier = {f"tier {name}" for name in tier.list_commands(click.Context(tier))}
    assert named | set(BY_COMMAND) <= set(SUBCOMMANDS) | of_tier


def test_kinds_when_looked_for_in_the_tests_then_each_is_met() -> None:
    """The tests meet each kind by its code or its constant."""
    names = registered()
    text = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    words = set(re.findall(r"[A-Z][A-Z0-9_-]+", text))
    assert [one.code for one in KINDS if not {one.code, names[one]} & words] == []


class Contradicting:
    """A shard whose own check finds a fault."""

    partition = 7

    def validate(self) -> list[str]:
        return ["a slot refers to a segment that is not there"]


def test_broken_rules_when_a_shard_contradicts_itself_then_names_its_metadata_partition() -> None:
    """The finding BROKEN-RULE names the metadata partition and asks the operator to report it."""
    (found,) = broken_rules(cast("Shard", Contradicting()))
    assert found.kind.code == "BROKEN-RULE"
    assert found.subject == "__remote_log_metadata-7"
    assert "a slot refers to" in found.detail
