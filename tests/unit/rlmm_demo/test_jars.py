"""Where a broker cannot be had, the demonstration says why, and nothing half is kept."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import EngineUnfit
from rlmm_demo.broker import jars

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'


def done(status: int = 0, out: str = "", err: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, out, err)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Replace the installed programs; record the commands of Maven."""

    def install(*names: str, java: str = JAVA_17, maven: Any = None) -> list[list[str]]:
        commands: list[list[str]] = []

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            if command[1:] == ["-version"]:
                return done(err=java)
            commands.append(command)
            answer: subprocess.CompletedProcess[str] = (maven or (lambda _: done()))(command)
            return answer

        monkeypatch.setattr(shutil, "which", lambda name: name if name in names else None)
        monkeypatch.setattr(subprocess, "run", run)
        return commands

    return install


def test_jars_when_programs_are_missing_then_names_all_of_them(
    programs: Callable[..., object], tmp_path: Path
) -> None:
    """The message names all missing programs at once."""
    programs("java")
    with pytest.raises(EngineUnfit, match="not installed: javac, mvn"):
        jars.make_jars(tmp_path)


def test_jars_when_java_is_too_old_then_says_which_is_needed(
    programs: Callable[..., object], tmp_path: Path
) -> None:
    """The message names the required version of Java."""
    programs("java", "javac", "mvn", java='openjdk version "1.8.0_412"')
    with pytest.raises(EngineUnfit, match="Java 17 or newer"):
        jars.make_jars(tmp_path)


def test_jars_when_maven_fails_then_says_why_and_leaves_nothing_that_looks_whole(
    programs: Callable[..., object], tmp_path: Path
) -> None:
    """A failed fetch leaves no folder, so that the next run fetches again."""
    programs("java", "javac", "mvn", maven=lambda _: done(1, "[ERROR] no route to host\nmore"))
    with pytest.raises(EngineUnfit, match=r"could not fetch Kafka: \[ERROR\] no route to host"):
        jars.make_jars(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_jars_when_all_is_there_then_is_made_once(
    programs: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    """The first run fetches Kafka and builds our plugins; the next run does neither."""
    commands = programs("java", "javac", "mvn")
    assert not jars.is_made(tmp_path)
    made = jars.make_jars(tmp_path)
    assert jars.is_made(tmp_path)
    assert jars.make_jars(tmp_path) == made
    fetch, build = commands
    assert "-C" in fetch
    assert "-Dmaven.test.skip=true" in build
    assert made.metadata_manager.endswith("/metadata-manager/*")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [made.kafka.name, made.plugins.name]
    )


def test_jars_when_another_run_makes_the_same_meanwhile_then_takes_what_is_there(
    programs: Callable[..., object], tmp_path: Path
) -> None:
    """Two demonstrations may start at a time."""
    kafka, _ = jars._folders(tmp_path)

    def fetched_by_both(_: list[str]) -> subprocess.CompletedProcess[str]:
        kafka.mkdir(exist_ok=True)
        (kafka / "kafka.jar").write_bytes(b"whole")
        return done()

    programs("java", "javac", "mvn", maven=fetched_by_both)
    made = jars.make_jars(tmp_path)
    assert [path.name for path in made.kafka.iterdir()] == ["kafka.jar"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [made.kafka.name, made.plugins.name]
    )
