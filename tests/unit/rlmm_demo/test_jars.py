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

ALL = ("java", "javac", "mvn")
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


@pytest.mark.parametrize(
    ("names", "java", "match"),
    [
        (("java",), JAVA_17, "not installed: javac, mvn"),
        (ALL, 'openjdk version "1.8.0_412"', "Java 17 or newer"),
        (ALL, JAVA_17, r"could not fetch Kafka: \[ERROR\] no route to host$"),
    ],
    ids=["missing", "too-old", "maven-fails"],
)
def test_jars_when_they_cannot_be_made_then_says_why_and_leaves_nothing_that_looks_whole(
    programs: Callable[..., object], tmp_path: Path, names: tuple[str, ...], java: str, match: str
) -> None:
    """The message names all missing programs, the version of Java, or the reason of Maven."""
    programs(*names, java=java, maven=lambda _: done(1, "[ERROR] no route to host\nmore"))
    with pytest.raises(EngineUnfit, match=match):
        jars.make_jars(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_jars_when_all_is_there_then_is_made_once(
    programs: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    """The first run fetches Kafka and builds our plugins; the next run does neither."""
    commands = programs(*ALL)
    assert not jars.is_made(tmp_path)
    made = jars.make_jars(tmp_path)
    assert jars.is_made(tmp_path)
    assert jars.make_jars(tmp_path) == made
    fetch, build = commands
    assert "-C" in fetch
    assert "-Dmaven.test.skip=true" in build
    assert made.metadata_manager.endswith("/metadata-manager/*")
    assert set(tmp_path.iterdir()) == {made.kafka, made.plugins}


def test_jars_when_made_twice_then_taken(programs: Callable[..., object], tmp_path: Path) -> None:
    """Two demonstrations may start at a time."""
    kafka, _ = jars._folders(tmp_path)

    def fetched_by_both(_: list[str]) -> subprocess.CompletedProcess[str]:
        kafka.mkdir(exist_ok=True)
        (kafka / "kafka.jar").write_bytes(b"whole")
        return done()

    programs(*ALL, maven=fetched_by_both)
    made = jars.make_jars(tmp_path)
    assert [path.name for path in made.kafka.iterdir()] == ["kafka.jar"]
    assert set(tmp_path.iterdir()) == {made.kafka, made.plugins}
