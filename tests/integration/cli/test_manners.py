"""Commands as processes: their readers, their interruption, and missing sources."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.logs.copied_folders import events_of, write_ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEGMENTS = 500
"""Their lines do not fit into a pipe."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manners") / "log"
    asyncio.run(write_ours(folder, events_of(range(SEGMENTS))))
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment without our variables and without one that changes buffering."""
    clean = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("RLMM_", "PYTHON")) or name == "PYTHONPATH"
    }
    return {**clean, "TERM": "xterm", "COLUMNS": "80", "HOME": str(tmp_path)}


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "rlmm", *map(str, words)]


def test_reader_who_has_seen_enough_ends_the_command_quietly(
    folder: Path, environment: dict[str, str]
) -> None:
    """`rlmm segments list | head -1` ends with an empty standard error and exit code 0."""
    for output in ("jsonl", "json", "table", "csv", "yaml"):
        process = subprocess.Popen(
            command("segments", "list", "--log-dirs", folder, "--output", output),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, bufsize=0,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
        process.stderr.close()


def test_interruption_ends_the_command_quietly_with_130(
    folder: Path, environment: dict[str, str]
) -> None:
    """Ctrl-C ends an endless command without an error line, with exit code 130."""
    process = subprocess.Popen(
        command("status", "--watch", "--interval", "1h", "--log-dirs", folder),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["is_caught_up"]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"")


@pytest.mark.parametrize(
    ("words", "exit_code", "part"),
    [
        (["status"], 3, "--sidecar"),
        (["status", "--sidecar", "127.0.0.1:1"], 3, "127.0.0.1:1"),
        (["status", "--bootstrap-server", "127.0.0.1:1", "--timeout", "1s"], 3, "127.0.0.1:1"),
        (["segments", "list", "--log-dirs", "nowhere"], 2, "nowhere"),
        (["segments", "list", "--log-dirs", "."], 2, "rlmm: config: "),
        (["segments", "list", "--at", "yesterday"], 2, "yesterday"),
    ],
)
def test_nothing_to_look_at_is_one_clear_line_and_the_right_exit_code(
    words: list[str], exit_code: int, part: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Each missing source gives one error line and its exit code."""
    (tmp_path / "something-else").mkdir()
    done = subprocess.run(
        command(*words), capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (exit_code, "")
    (line,) = done.stderr.splitlines()
    assert part in line


def test_output_that_is_closed_from_the_beginning_is_no_error(
    folder: Path, environment: dict[str, str]
) -> None:
    """A command whose output is closed from the start, as with `>&-`, is no error."""
    shell = " ".join(command("segments", "list", "--log-dirs", f"'{folder}'")) + " >&-"
    done = subprocess.run(
        ["/bin/sh", "-c", shell], capture_output=True, text=True, env=environment, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Open a pseudo-terminal: our end, and that of a process."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def shown_on(terminal: tuple[int, int], words: list[str], environment: dict[str, str]) -> str:
    ours, theirs = terminal
    process = subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # how a terminal says that nobody is at its other end
            break
        if not piece:
            break
        shown += piece
    assert process.wait(60) == 0
    return shown.decode()


@pytest.mark.parametrize("no_color", ["", "1"])
def test_terminal_shows_a_table_and_colours_only_where_they_are_wanted(
    folder: Path, environment: dict[str, str], terminal: tuple[int, int], no_color: str
) -> None:
    """A terminal gets a table and colours without a flag, and NO_COLOR removes even bold titles."""
    environment["NO_COLOR"] = no_color
    words = command("segments", "list", "--limit", "2", "--log-dirs", folder)
    shown = shown_on(terminal, words, environment)
    assert "SEGMENT ID" in shown
    assert ("\x1b[1m" in shown) is (no_color == "")
