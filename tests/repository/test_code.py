"""Rules for every source of the tree that no linter checks."""

import ast
from pathlib import Path

from tests.support.repository import rules, tree
from tools import documents

MAY_CREATE_TASKS = {
    "broker_adapter/client.py",
    "rlmm/access/handshakes.py",
    "rlmm/cli/service/data_folder.py",
    "rlmm/engine/engine.py",
    "rlmm/inspection/replay.py",
    "rlmm/engine/snapshot_keeper.py",
    "rlmm/library/remote_log_metadata.py",
    "rlmm/kafka_client/connections/task_set.py",
    "rlmm/process/snapshot_once.py",
    "rlmm/engine/task_group.py",
    "rlmm/pump/pump.py",
    "rlmm/process/run.py",
    "rlmm/sidecar/cluster_discovery.py",
    "rlmm/sidecar/waiting_requests.py",
    "rlmm/state_sources/replayed_states.py",
}
"""
The only sources that may start a task. A task is born in the group that dies with it; what is
opened and closed by calls, a log or the library, waits for its tasks when it is closed.
"""

AIOKAFKA_PART = "aiokafka.record"
"""
The only part of the Kafka client that the record layer may use: its compiled reader does no I/O.
"""


def findings(per_file: dict[Path, list[str]]) -> list[str]:
    """Return findings of many files as lines that name the file."""
    return [f"{path}: {finding}" for path, found in per_file.items() for finding in found]


def test_tasks_are_created_only_in_listed_sources() -> None:
    """No task escapes: only the listed sources start one."""
    sources = [
        path for path in tree.python_files(*tree.PACKAGES) if str(path) not in MAY_CREATE_TASKS
    ]
    assert not findings(
        {path: rules.calls(tree.parse(path), "create_task", "ensure_future") for path in sources}
    )


def test_nothing_prints() -> None:
    """Output goes through the command line's output or logging, never through print."""
    assert not findings({path: rules.prints(tree.parse(path)) for path in tree.python_files()})


def test_functions_are_short() -> None:
    """No function, of the product or of its tests, is longer than the wall."""
    assert not findings(
        {path: rules.long_functions(tree.parse(path)) for path in tree.python_files()}
    )


def test_modules_are_short() -> None:
    """No module, of the product or of its tests, is longer than the wall."""
    lengths = {path: len(tree.read(path).splitlines()) for path in tree.python_files()}
    assert not {path: length for path, length in lengths.items() if length > rules.MODULE_LINES_MAX}


def test_modules_say_what_lives_in_them() -> None:
    """Every module begins with a docstring."""
    assert not [path for path in tree.python_files() if ast.get_docstring(tree.parse(path)) is None]


def test_tests_state_a_fact() -> None:
    """Every test has a sentence that is true when it passes."""
    assert not findings(
        {path: rules.undocumented_tests(tree.parse(path)) for path in tree.python_files("tests")}
    )


def test_names_say_something() -> None:
    """No class and no module is named with a word that only says that it assists."""
    assert not findings({path: rules.empty_names(tree.parse(path)) for path in tree.python_files()})
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
