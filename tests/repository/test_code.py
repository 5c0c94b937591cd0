"""Rules for every source of the tree that no linter checks."""

import ast
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.repository import rules, tree
from tools import documents

MAY_CREATE_TASKS = {
    "broker_adapter/client.py",
    "rlmm/access/handshakes.py",
    "rlmm/base/loop_call.py",
    "rlmm/cli/service/data_folder.py",
    "rlmm/engine/engine.py",
    "rlmm/inspection/replay.py",
    "rlmm/engine/snapshot_wiring.py",
    "rlmm/library/remote_log_metadata.py",
    "rlmm/kafka_client/connections/task_set.py",
    "rlmm/process/snapshot_once.py",
    "rlmm/engine/part_group.py",
    "rlmm/pump/pump.py",
    "rlmm/process/run.py",
    "rlmm/sidecar/cluster_discovery.py",
    "rlmm/sidecar/waiting_requests.py",
    "rlmm/state_sources/replayed_states.py",
}
"""Sources that may start a task, since the group or the object that owns it waits for its end."""
MAY_READ_PIPES = {
    "rlmm/config/layers.py",
    "rlmm/cli/tier/command.py",
    "rlmm/cli/tier_maintenance/audit.py",
}
"""Sources of the service that open a file that an operator names to a command."""
AIOKAFKA_PART = "aiokafka.record"
"""The part of the Kafka client that the record layer may use: its compiled reader does no I/O."""


def findings(per_file: dict[Path, list[str]]) -> list[str]:
    """Return findings of many files as lines that name the file."""
    return [f"{path}: {finding}" for path, found in per_file.items() for finding in found]


def test_tasks_are_created_only_in_listed_sources() -> None:
    """No task escapes: only the listed sources start one."""
    assert not findings(
        {
            path: rules.calls(tree.parse(path), "create_task", "ensure_future")
            for path in tree.python_files(*tree.PACKAGES)
            if str(path) not in MAY_CREATE_TASKS
        }
    )


def test_loggers_are_named_as_modules() -> None:
    """A logger that a source names by a text is a module's, so that its level is set by module."""
    modules = {".".join(path.with_suffix("").parts) for path in tree.python_files(*tree.PACKAGES)}
    assert not [
        f"{path}:{line}: {name}"
        for path in tree.python_files(*tree.PACKAGES)
        for line, name in rules.first_texts(tree.parse(path), "getLogger")
        if name.partition(".")[0] in tree.PACKAGES and name not in modules
    ]


def test_modules_are_imported_under_their_names() -> None:
    """An alias of a module of ours is its name with `_module`, or `kinds` for one of findings."""
    modules = {".".join(path.with_suffix("").parts) for path in tree.python_files(*tree.PACKAGES)}
    assert not [
        f"{path}:{line}: {name} as {alias}"
        for path in tree.python_files()
        for line, name, alias in rules.aliases(tree.parse(path))
        if name in modules
        and alias != f"{name.rpartition('.')[2]}_module"
        and not (name.endswith("_findings") and alias.endswith("kinds"))
    ]


@pytest.mark.parametrize(
    ("rule", "folders"),
    [
        pytest.param(rules.prints, (), id="nothing-prints"),
        pytest.param(rules.long_functions, (), id="functions-are-short"),
        pytest.param(rules.empty_names, (), id="class-names-say-something"),
        pytest.param(rules.undocumented_tests, ("tests",), id="tests-state-a-fact"),
    ],
)
def test_sources_keep_the_rule(
    rule: Callable[[ast.Module], list[str]], folders: Sequence[str]
) -> None:
    """No source prints, has a long function or an empty class name, and each test has a fact."""
    assert not findings({path: rule(tree.parse(path)) for path in tree.python_files(*folders)})


def test_modules_are_short() -> None:
    """No module, of the product or of its tests, is longer than the wall."""
    lengths = {path: len(tree.read(path).splitlines()) for path in tree.python_files()}
    assert not {path: length for path, length in lengths.items() if length > rules.MODULE_LINES_MAX}


def test_modules_say_what_lives_in_them() -> None:
    """Every module begins with a docstring."""
    assert not [path for path in tree.python_files() if ast.get_docstring(tree.parse(path)) is None]


def test_module_names_say_something() -> None:
    """No module is named with a word that only says that it assists."""
    assert not [path for path in tree.python_files() if rules.is_empty_module_name(path.stem)]


def test_of_aiokafka_only_the_record_reader_is_used_outside_the_kafka_log() -> None:
    """Only the Kafka client and the demonstration import the network parts of aiokafka."""
    assert not [
        f"{path}:{line}: {name}"
        for path in tree.python_files(*tree.PACKAGES)
        if not path.match("rlmm_demo/broker/*") and path.parts[:2] != ("rlmm", "kafka_client")
        for line, name in rules.imported(tree.parse(path))
        if name.split(".")[0] == "aiokafka" and not name.startswith(AIOKAFKA_PART)
    ]


def test_files_of_the_service_are_read_in_one_way() -> None:
    """A source reads a file by `private_files`, where a pipe in its place keeps no reader."""
    assert not [
        path
        for path in tree.python_files("rlmm")
        if str(path) not in MAY_READ_PIPES and '.open("rb")' in tree.read(path)
    ]


def test_errors_stand_in_one_tree() -> None:
    """Every error class of ours is defined in one package, where a reader finds all of them."""
    names = {error.__name__ for error in documents.errors()}
    assert not findings(
        {
            path: rules.derived_classes(tree.parse(path), names)
            for path in tree.python_files(*tree.PACKAGES)
            if path.parent != Path("rlmm/errors")
        }
    )
