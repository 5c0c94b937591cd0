"""The rules of the repository tests: each finds its case and leaves the rest alone."""

import ast
from collections.abc import Callable, Iterable

import pytest

from tests.support.repository import rules


def lines(count: int) -> str:
    return "def long():\n" + "    pass\n" * (count - 1)


EMPTY = ("LogManager", "FrameHandler", "Utils", "SegmentInfo", "StoreImpl")
CASES: dict[str, tuple[Callable[[ast.Module], Iterable[object]], str, list[object]]] = {
    "function at the wall": (rules.long_functions, lines(70), []),
    "function over the wall": (rules.long_functions, lines(71), ["line 1: long has 71 lines"]),
    "async function over the wall": (
        rules.long_functions, f"async {lines(71)}", ["line 1: long has 71 lines"],
    ),
    "calls, no mere mentions": (
        lambda tree: rules.calls(tree, "create_task"),
        "create_task(x)\nloop.create_task(x)\ncreate_task\n'create_task()'\n",
        ["line 1: create_task()", "line 2: create_task()"],
    ),
    "print, no method": (rules.prints, "console.print(x)\nprint(x)\n", ["line 2: print()"]),
    "both forms of import": (
        rules.imported,
        "import aiokafka.client\nfrom aiokafka import record\n",
        [(1, "aiokafka.client"), (2, "aiokafka.record")],
    ),
    "base by its last part": (
        lambda tree: rules.derived_classes(tree, {"Root"}),
        "class A(errors.Root): pass\nclass B(Other): pass\n",
        ["line 1: A derives from errors.Root"],
    ),
    "test without a sentence": (
        rules.undocumented_tests,
        "def test_a(): pass\ndef test_b():\n    'A fact.'\ndef build(): pass\n",
        ["line 1: test_a states no fact"],
    ),
    "empty words": (
        rules.empty_names,
        "".join(f"class {name}: 0\n" for name in EMPTY),
        [f"line {line}: {name}" for line, name in enumerate(EMPTY, 1)],
    ),
    "words that say something": (
        rules.empty_names,
        "class SegmentMetadata: 0\nclass RemoteLogMetadataManager: 0\nclass Shard: 0",
        [],
    ),
}  # fmt: skip
"""Rule, source, and its findings."""


@pytest.mark.parametrize(("rule", "source", "expected"), CASES.values(), ids=CASES)
def test_rule_when_a_source_breaks_it_then_names_the_line_and_nothing_else(
    rule: Callable[[ast.Module], Iterable[object]], source: str, expected: list[object]
) -> None:
    """Each rule over a source finds its case, and leaves what only looks similar alone."""
    assert list(rule(ast.parse(source))) == expected


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(rules.leftovers, "# TO~DO: later", id="leftover"),
        pytest.param(rules.addresses, "see https://py~pi.org/x", id="registry"),
        pytest.param(rules.addresses, "https://files.python~hosted.org/x", id="registry-files"),
        pytest.param(rules.addresses, "pip install --index~-url x", id="index-option"),
        pytest.param(rules.addresses, "--find~-links x", id="find-links"),
        pytest.param(rules.machine_paths, 'open("/ho~me/x")', id="machine-path"),
        pytest.param(rules.machine_paths, "see ../sha~red/x.md", id="outside-the-tree"),
    ],
)
def test_text_rules_when_broken_name_the_line(rule: object, text: str) -> None:
    """Each rule over plain text finds its case, with the line."""
    text = text.replace("~", "")  # written with a break, so that the tree does not break the rule
    assert callable(rule)
    assert rule(f"first\n{text}\n") == [f"line 2: {text}"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("--no-emit-index-url", id="option-that-leaves-out"),
        pytest.param("https://kafka.apache.org/documentation", id="address-of-a-document"),
        pytest.param("/var/lib/kafka and https://example.org/home/x", id="path-of-a-system"),
        pytest.param("install with pip", id="plain-word"),
    ],
)
def test_text_rules_when_kept_find_nothing(text: str) -> None:
    """Text that only looks similar breaks no rule."""
    assert not [*rules.leftovers(text), *rules.addresses(text), *rules.machine_paths(text)]
