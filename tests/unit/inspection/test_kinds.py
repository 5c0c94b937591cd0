"""The register of findings, whose codes are an interface, and redacted names in a bundle."""

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
from rlmm.telemetry.redaction import NameRedaction

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
    partition = 7

    def validate(self) -> list[str]:
        return ["a slot refers to a segment that is not there"]


def test_broken_rules_when_a_shard_contradicts_itself_then_names_its_metadata_partition() -> None:
    """The finding BROKEN-RULE names the metadata partition and asks the operator to report it."""
    (found,) = broken_rules(cast("Shard", Contradicting()))
    assert found.kind.code == "BROKEN-RULE"
    assert found.subject == "__remote_log_metadata-7"
    assert "a slot refers to" in found.detail


NAMES = NameRedaction(b"key", ["orders", "orders-eu", "a.b", "__remote_log_metadata"])


def test_redaction_takes_topics_hosts_paths_and_opaque_bytes_out_of_any_text() -> None:
    """Redaction removes them anywhere in a text, and leaves ids, numbers and Kafka's own topics."""
    found = NAMES.of({
        "topic": "orders-eu", "subject": "orders-3 AAAAAAAAAAAAAAAAAAAAyg", "size_bytes": 7,
        "detail": "kafka-1.example.com:9092 and 10.0.0.7:9092 hold /var/lib/kafka/orders-3/a.log",
        "custom_metadata": "c2VjcmV0", "nested": [{"topic": "__remote_log_metadata"}],
        "when": "2026-01-31T14:05:00.000Z", "local": "127.0.0.1:7407 localhost:7407",
    })  # fmt: skip
    assert isinstance(found, dict)
    text = str(found)
    for name in ("orders", "example", "10.0.0.7", "/var", "c2VjcmV0"):
        assert name not in text
    assert found["topic"].startswith("topic-")
    assert found["subject"].endswith("-3 AAAAAAAAAAAAAAAAAAAAyg")
    assert found["nested"] == [{"topic": "__remote_log_metadata"}]
    assert found["when"] == "2026-01-31T14:05:00.000Z"
    assert found["local"] == "127.0.0.1:7407 localhost:7407"
    assert (found["size_bytes"], found["custom_metadata"]) == (7, "8 characters")


def test_redaction_gives_one_name_one_stand_in_and_another_bundle_another() -> None:
    """Stand-ins differ between bundles, so trying names does not reveal one."""
    one = NAMES.of(["orders-3", {"topic": "orders"}, "of orders."])
    assert isinstance(one, list)
    standin = one[1]["topic"]
    assert one == [f"{standin}-3", {"topic": standin}, f"of {standin}."]
    other = NameRedaction(b"other", ["orders"]).of({"topic": "orders"})
    assert other != {"topic": standin}


def test_redaction_when_it_is_off_then_changes_nothing() -> None:
    """Redaction changes nothing when it is off."""
    document = {"topic": "orders", "detail": "kafka:9092"}
    assert NameRedaction(b"key", ["orders"], is_on=False).of(document) is document


def test_redaction_leaves_longer_words_that_begin_like_a_topic_alone() -> None:
    """Redaction replaces a topic's name only as a whole word."""
    assert NAMES.of("ordersX reorders orders_x") == "ordersX reorders orders_x"
