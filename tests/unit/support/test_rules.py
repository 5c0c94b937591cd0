"""The rules of the repository tests: each finds its case and leaves the rest alone."""

import ast

import pytest

from tests.support.repository import rules


def lines(count: int) -> str:
    return "def long():\n" + "    pass\n" * (count - 1)


def test_long_functions_when_over_the_wall_are_found() -> None:
    """A function, method or async function of 71 lines is found, one of 70 is not."""
    assert rules.long_functions(ast.parse(lines(70))) == []
    assert rules.long_functions(ast.parse(lines(71))) == ["line 1: long has 71 lines"]
    assert rules.long_functions(ast.parse("async " + lines(71)))


def test_calls_when_plain_or_an_attribute_are_found() -> None:
    """A call is found by the last part of its name; a mere mention is not a call."""
    source = "create_task(x)\nloop.create_task(x)\ncreate_task\n'create_task()'\n"
    assert rules.calls(ast.parse(source), "create_task") == [
        "line 1: create_task()",
        "line 2: create_task()",
    ]


def test_prints_when_the_builtin_is_called_are_found() -> None:
    """The builtin is found; a method of the same name is not it."""
    assert rules.prints(ast.parse("console.print(x)\nprint(x)\n")) == ["line 2: print()"]


def test_imported_gives_full_names() -> None:
    """Both forms of import give the full name."""
    source = "import aiokafka.client\nfrom aiokafka import record\n"
    assert list(rules.imported(ast.parse(source))) == [
        (1, "aiokafka.client"),
        (2, "aiokafka.record"),
    ]


def test_derived_classes_when_a_base_is_named_are_found() -> None:
    """A class is found by the last part of a base's name."""
    source = "class A(errors.Root): pass\nclass B(Other): pass\n"
    assert rules.derived_classes(ast.parse(source), {"Root"}) == [
        "line 1: A derives from errors.Root"
    ]


def test_undocumented_tests_when_they_state_nothing_are_found() -> None:
    """The rule finds a test without a sentence and nothing else."""
    source = "def test_a(): pass\ndef test_b():\n    'A fact.'\ndef build(): pass\n"
    assert rules.undocumented_tests(ast.parse(source)) == ["line 1: test_a states no fact"]


@pytest.mark.parametrize(
    "name", ["LogManager", "FrameHandler", "Utils", "SegmentInfo", "StoreImpl"]
)
def test_empty_names_when_a_class_only_assists_are_found(name: str) -> None:
    """A class name that ends in an empty word is found."""
    assert rules.empty_names(ast.parse(f"class {name}: pass"))


@pytest.mark.parametrize("name", ["SegmentMetadata", "RemoteLogMetadataManager", "Shard"])
def test_empty_names_when_a_name_says_something_are_left_alone(name: str) -> None:
    """Kafka's own name and words that merely contain an empty one are allowed."""
    assert not rules.empty_names(ast.parse(f"class {name}: pass"))


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
